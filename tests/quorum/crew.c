/* SPDX-License-Identifier: MIT
 *
 * Clients of a quorum that write down what they are told, and the judge of that. Used by the fault
 * scripts through crew.sh.
 *
 *   crew install URL…     makes rowlock's tables in each
 *   crew vote             makes CREW_URLS a quorum at once, by hand
 *   crew join             makes CREW_URLS a quorum, or lets its members vote again
 *   crew run FOLDER       runs until FOLDER/stop is there. Exits with 0 then.
 *   crew mark FOLDER WHAT writes down what the script did. See history.h.
 *   crew grants FOLDER    prints how many grants there are so far
 *   crew judge FOLDER     prints "ok - SENTENCE" or "not ok - SENTENCE" for each sentence of
 *                         judge.c for quorums, and figures after "# "
 *   crew ask URL SQL      prints what a SQLite file answers
 *   crew stick URL MS     holds the write lock of a SQLite file for so long: a member that is stuck
 *
 *   CREW_URLS             the members, with blanks between them
 *   CREW_FENCE_URL        the database of the fenced register
 *   CREW_VIEWS=MS         each process has its own faults on its ways to the members, with pauses
 *                         up to this
 *   CREW_DEATHS=1         processes are killed and stopped
 *   FOLDER/calm           while it is there, no process has a fault of its own, and all hold their
 *                         locks for long
 *
 *   ROWLOCK_TEST_LONG=1   four processes with four clients each, not three with two
 *
 * A process has a keeper and some clients. Each client has a handle of its own, waits or does
 * not, holds a lock for a moment, and shows its token to the register. Some sleep beyond their
 * leases. */
#include "faultproxy.h"
#include "history.h"
#include "judge.h"
#include "members.h"

#include <sys/prctl.h>

enum {
    PROCESSES_MOST = 4,
    THREADS_MOST = 4,
    NAMES = 6,
    MEMBERS_MOST = 5,
    SHORT_TTL_MS = 600,
    TTL_MS = 1500,
    WAIT_MS = 1500,
    STATEMENT_MS = 1000,
    /* LOST comes early by at most this margin. */
    MARGIN_MS = 400,
    ERROR_PAUSE_MS = 20
};

static const char *const names[NAMES] = {"crowded", "b", "c", "d", "e", "f"};

static struct {
    const char *urls[MEMBERS_MOST];
    int count;
    struct faultproxy *proxy[MEMBERS_MOST];
    const char *fence;
    rowlock_keeper *keeper;
} crew;

struct client {
    unsigned seed;
    rowlock_db *db, *fence;
    rowlock_lock *lock[NAMES];
    const char *name;
    struct helper *thread;
};

static int much(int everyday, int most)
{
    return getenv("ROWLOCK_TEST_LONG") ? most : everyday;
}

static bool is_there(const char *file)
{
    return access(history_path(file), F_OK) == 0;
}

static bool is_over(void)
{
    return is_there("stop");
}

/* ---- a client */

static int heard(const struct client *c, const char *call, int result)
{
    if (result < 0)
        tell("# %s: %s", call, why(c->db));
    tell_odd(call, result);
    return result;
}

static bool works(const struct client *c, rowlock_lock *lock, long long *until)
{
    return tell_holding(c->name, lock, MARGIN_MS, until);
}

static void show_token(struct client *c, rowlock_lock *lock)
{
    int64_t token = rowlock_lock_token(lock);
    int result = rowlock_fence(c->fence, c->name, token);
    if (result == ROWLOCK_OK || result == ROWLOCK_STALE)
        tell("W %s %lld %s 0 %lld", c->name, (long long)token, rowlock_result_name(result),
             now_us());
    else
        tell("# fence: %s", why(c->fence));
}

static void hold(struct client *c, rowlock_lock *lock, bool kept)
{
    long long until = now_us() + rowlock_lock_remaining_ms(lock) * 1000;
    int ms = rand_r(&c->seed) % 8;
    if (rand_r(&c->seed) % 400 == 0 || is_there("calm"))
        ms = 2 * TTL_MS;
    bool sleeps = ms > 100 && rand_r(&c->seed) % 2;
    for (int64_t end = clock_ms() + ms; clock_ms() < end && !is_over() && works(c, lock, &until);)
        sleep_ms(sleeps ? ms : 1 + rand_r(&c->seed) % 20);
    show_token(c, lock);
    if (!kept && works(c, lock, &until) && rand_r(&c->seed) % 4 == 0)
        heard(c, "renew", rowlock_renew(lock, 0));
    works(c, lock, &until);
}

static void release(struct client *c, rowlock_lock *lock)
{
    tell("E %s %lld %lld", c->name, (long long)rowlock_lock_token(lock), now_us());
    int result = heard(c, "release", rowlock_release(lock));
    for (int i = 0; i < 3 && result < 0; i++) {
        sleep_ms(ERROR_PAUSE_MS);
        result = heard(c, "release again", rowlock_release(lock));
    }
    rowlock_forget(lock);
}

static void take_turn(struct client *c)
{
    bool kept = rand_r(&c->seed) % 4 == 0;
    /* Most want the first name. */
    int which = rand_r(&c->seed) % 2 ? 0 : rand_r(&c->seed) % NAMES;
    rowlock_lock *lock = c->lock[which];
    c->name = names[which];
    rowlock_acquire_options how = *OPTIONS(acquire, .ttl_ms = kept ? TTL_MS : SHORT_TTL_MS,
                                           .keeper = kept ? crew.keeper : NULL,
                                           .wait_ms = rand_r(&c->seed) % 3 ? WAIT_MS : 0);
    long long asked = now_us();
    int result = heard(c, "acquire", rowlock_acquire(lock, &how));
    if (result == ROWLOCK_OK) {
        tell_grant(c->name, lock, asked);
        hold(c, lock, kept);
        release(c, lock);
    }
    /* Time: a pause between two turns, of any length. */
    sleep_ms(result < 0 ? ERROR_PAUSE_MS : rand_r(&c->seed) % 5);
}

static rowlock_db_options impatient(void)
{
    int64_t ms = slow_ms(STATEMENT_MS);
    return *OPTIONS(db, .statement_timeout_ms = ms, .connect_timeout_ms = ms, .reconnect_ms = ms);
}

static int live(void *argument)
{
    struct client *c = argument;
    rowlock_db_options options = impatient();
    rowlock_error err = ROWLOCK_ERROR_INIT;
    while (!is_over() && rowlock_db_open(url_list(crew.urls, (size_t)crew.count).text, &options,
                                         &c->db, &err) != ROWLOCK_OK)
        sleep_ms(ERROR_PAUSE_MS);
    if (!c->db)
        return 0;
    c->fence = must_open(crew.fence);
    for (int i = 0; i < NAMES; i++)
        c->lock[i] = must_lock(c->db, names[i]);
    while (!is_over())
        take_turn(c);
    close_each_lock(c->lock, NAMES);
    close_dbs(c->db, c->fence);
    return 0;
}

/* ---- a process */

static void disturb(unsigned *seed)
{
    struct faultproxy *proxy = crew.proxy[rand_r(seed) % crew.count];
    struct fault lost = {.kind = FAULT_CUT, .side = rand_r(seed) % 2 ? ON_ANSWER : ON_REQUEST};
    if (!proxy)
        return;
    switch (rand_r(seed) % 5) {
    case 0:
        faultproxy_cut(proxy);
        break;
    case 1:
        faultproxy_arm(proxy, 1 + rand_r(seed) % 20, lost);
        break;
    case 2:
        faultproxy_slow(proxy, rand_r(seed) % 5 * 1000);
        break;
    case 3:
        faultproxy_blackhole(proxy);
        /* Time: shorter or longer than a lease, by the real clock. The judge allows both. */
        sleep_ms(rand_r(seed) % (2 * SHORT_TTL_MS));
        faultproxy_heal(proxy);
        break;
    default:
        faultproxy_refuse(proxy);
        faultproxy_cut(proxy);
        /* Time: the member is away for a moment, of any length. */
        sleep_ms(rand_r(seed) % SHORT_TTL_MS);
        faultproxy_accept(proxy);
    }
}

static void use_proxies(void)
{
    for (int i = 0; i < crew.count; i++) {
        char *through = NULL;
        crew.proxy[i] =
            strncmp(crew.urls[i], "sqlite", 6) ? faultproxy_start(crew.urls[i], &through) : NULL;
        if (through)
            crew.urls[i] = through;
    }
}

static int be_process(void *argument)
{
    struct client clients[THREADS_MOST] = {{0}};
    int threads = much(2, THREADS_MOST);
    rowlock_db_options options = impatient();
    rowlock_error err = ROWLOCK_ERROR_INIT;
    unsigned seed = *(unsigned *)argument;
    const char *views = getenv("CREW_VIEWS");
    int pause_ms = views ? atoi(views) : 200;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (views)
        use_proxies();
    while (!is_over() && open_keeper_at(url_list(crew.urls, (size_t)crew.count).text, &options,
                                        &crew.keeper, &err) != ROWLOCK_OK)
        sleep_ms(ERROR_PAUSE_MS);
    for (int i = 0; i < threads; i++) {
        clients[i].seed = seed + (unsigned)i * 7919;
        clients[i].thread = helper_start(live, &clients[i]);
    }
    while (!is_over()) {
        sleep_ms(20 + rand_r(&seed) % pause_ms);
        if (views && !is_there("calm"))
            disturb(&seed);
    }
    for (int i = 0; i < threads; i++)
        helper_join(clients[i].thread);
    rowlock_keeper_close(crew.keeper);
    for (int i = 0; i < crew.count; i++)
        if (crew.proxy[i])
            faultproxy_stop(crew.proxy[i]);
    return 0;
}

/* ---- the commands */

static void die(const char *what, const char *why_so)
{
    fprintf(stderr, "crew: %s: %s\n", what, why_so);
    exit(1);
}

static void read_urls(void)
{
    static char text[2000];
    const char *urls = getenv("CREW_URLS");
    snprintf(text, sizeof text, "%s", urls ? urls : "");
    for (char *url = strtok(text, " "); url && crew.count < MEMBERS_MOST; url = strtok(NULL, " "))
        crew.urls[crew.count++] = url;
    crew.fence = getenv("CREW_FENCE_URL");
    if (crew.count == 0 || !crew.fence)
        die("CREW_URLS, CREW_FENCE_URL", "are not set");
}

/* One process at a time dies, or stands still for longer than its leases. */
static void strike(pid_t *child, unsigned *seed)
{
    if (rand_r(seed) % 2) {
        kill(*child, SIGKILL);
        child_join(*child);
        *child = child_start(be_process, seed);
    } else {
        kill(*child, SIGSTOP);
        /* Time: longer than the leases, by the real clock. The judge allows any length. */
        sleep_ms(SHORT_TTL_MS + rand_r(seed) % TTL_MS);
        kill(*child, SIGCONT);
    }
}

static int run(void)
{
    pid_t children[PROCESSES_MOST];
    int processes = much(3, PROCESSES_MOST);
    const char *seed_text = getenv("ROWLOCK_TEST_SEED");
    unsigned seed = seed_text ? (unsigned)strtoul(seed_text, NULL, 10) : (unsigned)getpid();
    bool deaths = getenv("CREW_DEATHS") != NULL;
    int failed = 0;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    read_urls();
    tell("# seed %u", seed);
    tell("P %d", TTL_MS);
    for (int i = 0; i < processes; i++) {
        rand_r(&seed);
        children[i] = child_start(be_process, &seed);
    }
    while (!is_over()) {
        sleep_ms(100 + rand_r(&seed) % 900);
        if (deaths && !is_over() && !is_there("calm"))
            strike(&children[rand_r(&seed) % processes], &seed);
    }
    for (int i = 0; i < processes; i++)
        failed += child_join(children[i]) != 0;
    return failed ? 1 : 0;
}

static void print_verdict(void)
{
    static struct judgement j;
    judge(history_path("history"), 0, &j);
    print_sentences(&j, quorum_sentences, "");
    printf("# judged: %d grants, %d writes, %d refused, %d outages\n", j.grants, j.writes,
           j.refusals, j.outages);
}

static void stick(const char *url, int ms)
{
    void *session = raw_sqlite.open(url);
    raw_run(&raw_sqlite, session, "BEGIN IMMEDIATE");
    /* Time: the file is locked for a moment, of any length. */
    sleep_ms(ms);
    raw_run(&raw_sqlite, session, "ROLLBACK");
    raw_sqlite.close(session);
}

static void ask(const char *url, const char *sql)
{
    char out[200] = "";
    void *session = raw_sqlite.open(url);
    raw_sqlite.ask(session, sql, out, sizeof out);
    raw_sqlite.close(session);
    puts(out);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(what, "install") == 0) {
        for (int i = 2; i < argc; i++)
            must_install(argv[i]);
        return 0;
    }
    if (strcmp(what, "join") == 0) {
        rowlock_error err = ROWLOCK_ERROR_INIT;
        read_urls();
        if (rowlock_quorum_join(url_list(crew.urls, (size_t)crew.count).text, 0, NULL, &err) !=
            ROWLOCK_OK)
            die("join", err.text);
        return 0;
    }
    if (strcmp(what, "vote") == 0) {
        read_urls();
        members_vote(crew.urls);
        return 0;
    }
    if (strcmp(what, "stick") == 0 && argc == 4) {
        stick(argv[2], atoi(argv[3]));
        return 0;
    }
    if (strcmp(what, "ask") == 0 && argc == 4) {
        ask(argv[2], argv[3]);
        return 0;
    }
    if (argc < 3)
        die("usage", "see crew.c");
    history_open(argv[2]);
    if (strcmp(what, "run") == 0)
        return run();
    if (strcmp(what, "mark") == 0 && argc == 4)
        tell("M %lld %s", now_us(), argv[3]);
    else if (strcmp(what, "grants") == 0)
        printf("%d\n", history_count("G"));
    else if (strcmp(what, "judge") == 0)
        print_verdict();
    else
        die("usage", "see crew.c");
    return 0;
}
