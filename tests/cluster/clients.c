/* SPDX-License-Identifier: MIT
 *
 * Clients of the load; see load.h. Each writes down what it asks and what it is told. */
#include "load.h"

#include <spawn.h>

enum {
    /* One of so many holders works for longer than its first lease. */
    LONG_ONE_IN = 20,
    LONG_MS = TTL_MS + 2000,
    /* A third of the jobs: they must be ended if no lease can be renewed. */
    LONG_JOB_MS = 9000,
    /* One of so many holders without a keeper sleeps beyond its lease. */
    SLEEP_ONE_IN = 25,
    WAIT_MS = 3000,
    PAUSE_MS = 10,
    ERROR_PAUSE_MS = 50,
    LOOK_MS = 20,
    /* LOST comes early by at most this margin. */
    MARGIN_MS = 700,
    RETRY_MS = 4000,
    /* Result of an attempt: a newer token has written. */
    REFUSED = 100
};

extern char **environ;

/* ---- calls */

int heard(const struct client *c, const char *call, long long began_us, int64_t bound_ms,
          int result)
{
    tell("C %s %s %lld %lld", call, rowlock_result_name(result), (now_us() - began_us) / 1000,
         (long long)bound_ms);
    if (result < 0)
        tell("# %s %d: %s", c->name, c->number, why(c->db));
    tell_odd(call, result);
    return result;
}

/* As a program with an event loop does it. */
static int acquire_in_loop(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    int result = rowlock_acquire_start(lock, options);
    if (result == ROWLOCK_OK)
        result = ROWLOCK_PENDING;
    while (result == ROWLOCK_PENDING) {
        poll(&(struct pollfd){.fd = rowlock_acquire_fd(lock), .events = POLLIN}, 1, LOOK_MS);
        result = rowlock_acquire_step(lock);
    }
    return result;
}

int acquire(struct client *c, const rowlock_acquire_options *options)
{
    long long asked = now_us();
    int (*call)(rowlock_lock *, const rowlock_acquire_options *) =
        c->number % 2 ? acquire_in_loop : rowlock_acquire;
    /* After a wait another call may give a ticket back. */
    int64_t bound_ms = options->wait_ms ? 2 * CALL_MS + options->wait_ms : CALL_MS;
    int result = heard(c, "acquire", asked, bound_ms, call(c->lock, options));
    if (result == ROWLOCK_OK)
        tell_grant(c->name, c->lock, asked);
    return result;
}

static bool holds_still(struct client *c, long long *until)
{
    return tell_holding(c->name, c->lock, MARGIN_MS, until);
}

bool hold(struct client *c, int64_t ms)
{
    long long until = 0;
    int64_t end = clock_ms() + ms;
    bool held = true;
    while (held && clock_ms() < end && !c->load->over) {
        held = holds_still(c, &until);
        if (held)
            sleep_ms(end - clock_ms() < LOOK_MS ? 1 + rand_r(&c->seed) % 5 : LOOK_MS);
    }
    return held && holds_still(c, &until);
}

void release(struct client *c)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    long long token = rowlock_lock_token(c->lock), at = now_us();
    long long until = at + rowlock_lock_remaining_ms(c->lock) * 1000;
    int64_t give_up = clock_ms() + TTL_MS;
    tell("E %s %lld %lld", c->name, token, at);
    int result = heard(c, "release", at, CALL_MS, rowlock_release(c->lock));
    err = *rowlock_db_error(c->db);
    if (result == ROWLOCK_LOST && !err.answer_lost && until > now_us())
        tell("L %s %lld %lld %lld", c->name, token, now_us(), until);
    while (result < 0 && clock_ms() < give_up) {
        sleep_ms(ERROR_PAUSE_MS);
        at = now_us();
        result = heard(c, "release again", at, CALL_MS, rowlock_release(c->lock));
    }
    rowlock_forget(c->lock);
}

static void rest(struct client *c, int result)
{
    sleep_ms(result < 0 ? ERROR_PAUSE_MS : 1 + rand_r(&c->seed) % PAUSE_MS);
}

/* ---- exclusive locks under a keeper */

static int live_with_keeper(void *argument)
{
    struct client *c = argument;
    while (!c->load->over) {
        int result = acquire(c, OPTIONS(acquire, .ttl_ms = TTL_MS, .keeper = c->keeper,
                                        .wait_ms = rand_r(&c->seed) % 2 ? WAIT_MS : 0));
        if (result == ROWLOCK_OK) {
            hold(c, rand_r(&c->seed) % LONG_ONE_IN ? rand_r(&c->seed) % 60 : LONG_MS);
            release(c);
        }
        rest(c, result);
    }
    return 0;
}

/* ---- money: balances are read before the transaction, but for pools (GUARDING), and guarded */

struct transfer {
    struct client *c;
    long long id, token;
    int source, target, cents;
    int64_t balance[2];
    bool guard_first;
};

static int guard(struct transfer *t)
{
    long long began = now_us();
    return heard(t->c, "guard", began, CALL_MS, rowlock_guard(t->c->lock, t->c->db));
}

static int read_account(struct client *c, int account, rowlock_row *row)
{
    long long began = now_us();
    return heard(c, "read", began, CALL_MS, read_row(c->accounts, account, 0, row));
}

/* The version is the one of this moment: it refuses nothing that the guard lets pass. */
static int write_account(struct client *c, int account, int64_t cents)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    int result = read_account(c, account, &row);
    if (result != ROWLOCK_OK)
        return result;
    long long began = now_us();
    return heard(c, "update", began, CALL_MS,
                 update_row(c->accounts, account, rowlock_int(cents), row.version));
}

static int write_journal(struct transfer *t)
{
    rowlock_value key = rowlock_int(t->id);
    rowlock_value values[] = {rowlock_int(t->source), rowlock_int(t->target), rowlock_int(t->cents),
                              rowlock_int(t->token)};
    rowlock_change change = {.key = &key, .values = values};
    long long began = now_us();
    return heard(t->c, "insert", began, CALL_MS, rowlock_insert(t->c->journal, &change, 1, NULL));
}

static int read_balances(struct transfer *t)
{
    int accounts[] = {t->source, t->target}, result = ROWLOCK_OK;
    for (int i = 0; i < 2 && result == ROWLOCK_OK; i++) {
        rowlock_row row = ROWLOCK_ROW_INIT;
        result = read_account(t->c, accounts[i], &row);
        t->balance[i] = result == ROWLOCK_OK ? row.values[0].number : 0;
    }
    return result;
}

static int transfer_once(void *context, const rowlock_attempt *attempt)
{
    struct transfer *t = context;
    int result = t->guard_first ? guard(t) : ROWLOCK_OK;
    if (result == ROWLOCK_OK && t->c->pooled)
        result = read_balances(t);
    if (result == ROWLOCK_OK)
        result = write_account(t->c, t->source, t->balance[0] - t->cents);
    if (result == ROWLOCK_OK)
        result = write_account(t->c, t->target, t->balance[1] + t->cents);
    if (result == ROWLOCK_OK)
        result = write_journal(t);
    return result == ROWLOCK_OK && !t->guard_first ? guard(t) : result;
}

/* A deadline for all attempts, and a call and a commit that were just begun then. */
static int retry(struct client *c, const char *what, int (*once)(void *, const rowlock_attempt *),
                 void *context)
{
    long long began = now_us();
    return heard(
        c, what, began, RETRY_MS + 2 * CALL_MS,
        rowlock_retry(c->db, once, context, OPTIONS(retry, .deadline_ms = RETRY_MS), NULL));
}

static void think(struct client *c)
{
    sleep_ms(rand_r(&c->seed) % SLEEP_ONE_IN ? rand_r(&c->seed) % 5 : SHORT_TTL_MS + 200);
}

static void transfer(struct client *c)
{
    int branch = c->name[strlen(c->name) - 1] - '0';
    struct transfer t = {.c = c, .token = rowlock_lock_token(c->lock)};
    t.id = now_us() * 100 + c->number;
    t.source = branch + BRANCHES * (rand_r(&c->seed) % (ACCOUNTS / BRANCHES));
    t.target = (t.source + BRANCHES) % ACCOUNTS;
    t.cents = 1 + rand_r(&c->seed) % 10000;
    t.guard_first = rand_r(&c->seed) % 2;
    if (!c->pooled && read_balances(&t) != ROWLOCK_OK)
        return;
    think(c);
    tell("T %lld %d %d %d %lld", t.id, t.source, t.target, t.cents, t.token);
    int result = retry(c, "transfer", transfer_once, &t);
    tell("%c %lld", result == ROWLOCK_OK ? 'Y' : result == ROWLOCK_EUNCERTAIN ? 'U' : 'F', t.id);
}

/* ---- a register that refuses tokens older than the newest that has written */

struct write {
    struct client *c;
    long long token, before;
    bool refused;
};

static int write_once(void *context, const rowlock_attempt *attempt)
{
    struct write *w = context;
    rowlock_row row = ROWLOCK_ROW_INIT;
    long long began = now_us();
    int result =
        heard(w->c, "fence", began, CALL_MS, rowlock_fence(w->c->db, w->c->name, w->token));
    if (result == ROWLOCK_STALE)
        return REFUSED;
    if (result == ROWLOCK_OK)
        result = read_account(w->c, REGISTER, &row);
    if (result == ROWLOCK_OK) {
        w->before = row.values[0].number;
        result = write_account(w->c, REGISTER, w->token);
    }
    return result;
}

static void write_register(struct client *c)
{
    struct write w = {.c = c, .token = rowlock_lock_token(c->lock)};
    think(c);
    int result = retry(c, "write", write_once, &w);
    tell("W %s %lld %s %lld %lld", c->name, w.token,
         result == REFUSED ? "ROWLOCK_STALE" : rowlock_result_name(result), w.before, now_us());
}

/* What such a holder believes of its lease does not matter. Others believe it is over by then. */
static int live_without_keeper(struct client *c, void (*work)(struct client *c))
{
    while (!c->load->over) {
        int result = acquire(c, OPTIONS(acquire, .ttl_ms = SHORT_TTL_MS, .wait_ms = WAIT_MS));
        if (result == ROWLOCK_OK) {
            hold(c, 0);
            work(c);
            release(c);
        }
        rest(c, result);
    }
    return 0;
}

static int live_by_transfers(void *argument)
{
    return live_without_keeper(argument, transfer);
}

static int live_by_writes(void *argument)
{
    return live_without_keeper(argument, write_register);
}

/* ---- the command, and Python */

static pid_t spawn(const char *file, char **arguments)
{
    pid_t child = 0;
    if (posix_spawn(&child, file, NULL, NULL, arguments, environ) != 0)
        abort();
    return child;
}

static pid_t start_job(struct client *c, char *verb, char *option, char *value)
{
    const char *command = getenv("ROWLOCK_TEST_COMMAND");
    char self[400] = "", ms[20], ttl[20];
    char *url = (char *)c->url, *name = (char *)c->name, *folder = (char *)c->load->folder;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        abort();
    int works_ms = rand_r(&c->seed) % 3 ? 100 + rand_r(&c->seed) % 1500 : LONG_JOB_MS;
    snprintf(ms, sizeof ms, "%d", works_ms);
    snprintf(ttl, sizeof ttl, "%dms", TTL_MS);
    /* Some children do not heed SIGTERM, and must be killed. */
    char *deaf = rand_r(&c->seed) % 2 ? "deaf" : "heeds";
    /* clang-format off */
    return spawn(command ? command : "build/rowlock", (char *[]){
        "rowlock", "--url", url, verb, "--ttl", ttl, option, value, name,
        "--", self, "child", folder, name, ms, deaf, NULL});
    /* clang-format on */
}

static int live_by_command(struct client *c, char *verb, char *option, char *value)
{
    bool leads = strcmp(verb, "lead") == 0;
    while (!c->load->over) {
        pid_t child = start_job(c, verb, option, value);
        while (leads && !c->load->over)
            sleep_ms(LOOK_MS);
        if (leads)
            kill(child, SIGTERM);
        int status = child_join(child);
        tell("# %s: %s ended with %d", c->name, verb, status);
        if (status == 64 || status == 77 || status == 126 || status == 127)
            tell("O %s %d", verb, status);
        rest(c, status == 0 ? 0 : -1);
    }
    return 0;
}

static int live_by_jobs(void *argument)
{
    return live_by_command(argument, "run", "--wait", "20s");
}

static int live_by_periods(void *argument)
{
    return live_by_command(argument, "run", "--every", "2s");
}

static int live_by_terms(void *argument)
{
    return live_by_command(argument, "lead", "--grace", "1s");
}

/* Needs `make python`. */
static int live_in_python(void *argument)
{
    const struct client *c = argument;
    char ttl[20], *url = (char *)c->url, *name = (char *)c->name;
    snprintf(ttl, sizeof ttl, "%d", TTL_MS / 1000);
    int status =
        child_join(spawn("tests/cluster/client.sh",
                         (char *[]){"client.sh", (char *)c->load->folder, name, ttl, url, NULL}));
    if (status != 0)
        tell("O python %d", status);
    return 0;
}

/* ---- all */

enum { CLIENTS = 20 };

static const struct role {
    const char *name;
    int (*live)(void *argument);
    int count;
} roles[] = {
    {"exclusive-0", live_with_keeper, 2}, {"exclusive-1", live_with_keeper, 2},
    {"branch-0", live_by_transfers, 2},   {"branch-1", live_by_transfers, 2},
    {"register", live_by_writes, 3},      {"job-0", live_by_jobs, 2},
    {"job-1", live_by_jobs, 1},           {"period", live_by_periods, 2},
    {"term", live_by_terms, 2},           {"python", live_in_python, 2},
};

const char *const lock_names[] = {"exclusive-0", "exclusive-1", "branch-0", "branch-1",
                                  "register",    "queue",       "job-0",    "job-1",
                                  "period",      "term",        "python",   NULL};

static struct client clients[CLIENTS];
static struct helper *threads[CLIENTS];

void await_server(const char *url)
{
    rowlock_db *db = NULL;
    int64_t give_up = clock_ms() + slow_ms(60000);
    while (rowlock_db_open(url, NULL, &db, NULL) != ROWLOCK_OK && clock_ms() < give_up)
        sleep_ms(100);
    rowlock_db_close(db);
}

rowlock_db *load_open(const char *url)
{
    await_server(url);
    return must_open_with(url, OPTIONS(db, .connect_timeout_ms = CONNECT_MS,
                                       .statement_timeout_ms = STATEMENT_MS,
                                       .reconnect_ms = RECONNECT_MS));
}

static rowlock_table *describe(rowlock_db *db, const char *name, const char *const *columns)
{
    static const char *const key[] = {"id", NULL};
    rowlock_table *table = NULL;
    if (open_table(db, ABOUT(.name = name, .key = key, .columns = columns), &table) != ROWLOCK_OK) {
        printf("Bail out! %s: %s\n", name, why(db));
        exit(1);
    }
    return table;
}

rowlock_table *open_accounts(rowlock_db *db)
{
    static const char *const columns[] = {"cents", NULL};
    return describe(db, "load_accounts", columns);
}

rowlock_table *open_journal(rowlock_db *db)
{
    static const char *const columns[] = {"source", "target", "cents", "token", NULL};
    return describe(db, "load_journal", columns);
}

void client_open(struct client *c, struct load *load, int number, const char *name)
{
    int which = number % load->url_count;
    *c = (struct client){.load = load,
                         .number = number,
                         .seed = (unsigned)(now_us() + number),
                         .name = name,
                         .url = load->urls[which],
                         .keeper = load->keepers[which]};
    quick_pooled = c->pooled = number / load->url_count % 2 || getenv("ROWLOCK_TEST_POOL");
    c->db = load_open(c->url);
    c->lock = must_lock(c->db, name);
}

void client_close(struct client *c)
{
    rowlock_table_close(c->accounts);
    rowlock_table_close(c->journal);
    rowlock_lock_close(c->lock);
    rowlock_db_close(c->db);
}

void clients_start(struct load *load)
{
    int count = 0;
    for (int r = 0; r < COUNT(roles); r++)
        for (int i = 0; i < roles[r].count; i++, count++) {
            struct client *c = &clients[count];
            client_open(c, load, count, roles[r].name);
            c->accounts = open_accounts(c->db);
            c->journal = open_journal(c->db);
            threads[count] = helper_start(roles[r].live, c);
        }
}

void clients_end(void)
{
    for (int i = 0; i < CLIENTS; i++)
        helper_join(threads[i]);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
}
