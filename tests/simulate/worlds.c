/* SPDX-License-Identifier: MIT
 * The worlds: which clients and servers there are, and what happens to them and to the network.
 *
 * usage: simulate WORLD SEED GRANTS
 *   WORLD   one      plain handles of one database, which renew by themselves
 *           keepers  the same, renewed by a keeper of each client
 *           pool     clients whose threads share a pool
 *           quorum   locks over three databases
 *           rows     clients that write rows under versions, with once keys and walks
 *   TRACE=file in the environment: all that is told, a line each
 *   WITHOUT='late kill …': without these faults. CLIENTS=3: with so many clients. */
#include "simulate.h"

static const char *const world_names[WORLDS] = {"one", "keepers", "pool", "quorum", "rows"};

enum { CLIENTS_MOST = 64, CALM_MOST = 900 * SECOND, LEASES_END = 2000 * SECOND };

enum world sim_world;
bool sim_calm;
char sim_url[1000];
int sim_servers, sim_names;

static int clients, threads;
static bool over;
static int64_t wanted, calm_since, pause_most;
static int running, shares;
/* Of each server: it has a backup. One is being restored; one was. */
static bool saved[SERVERS_MOST], restoring, restored;

/* Allocations fail, or did: a call that began before the end of the faults may tell so after it. */
static bool memory_fails;

/* A handle may know for half a minute that a restored member has not joined yet. */
bool is_outage(int result)
{
    return (result == ROWLOCK_ESCHEMA && restored && sim_world == QUORUM) ||
           result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_EREADONLY ||
           result == ROWLOCK_ESERVER || (result == ROWLOCK_ENOMEM && memory_fails);
}

void sim_expect(const struct client *client, const rowlock_db *db, const char *call,
                const char *name, int result, bool fine)
{
    if (!fine && !is_outage(result))
        violation("client %d: %s of '%s' is %s: %s", client->process.number, call, name ? name : "",
                  rowlock_result_name(result), rowlock_db_error(db)->text);
}

static bool open_client(struct client *c)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = ROWLOCK_OK;
    if (sim_world == POOL)
        result = rowlock_pool_open(sim_url, NULL, &c->pool, &err);
    if (sim_world == KEEPERS)
        result = rowlock_db_open(sim_url, NULL, &c->keeper_db, &err);
    if (sim_world == KEEPERS && result == ROWLOCK_OK)
        result = rowlock_keeper_open(c->keeper_db, &c->keeper);
    if (result == ROWLOCK_OK)
        return true;
    rowlock_db_close(c->keeper_db);
    c->keeper_db = NULL;
    return false;
}

static void *begin(void *context)
{
    struct client *c = context;
    while (!open_client(c))
        sim_sleep(sim_spread(1000, SECOND));
    c->threads = threads;
    for (int i = 0; i < threads; i++)
        sim_start(&c->process, sim_world == ROWS ? rows_live : locking_live, c);
    return NULL;
}

void sim_ends(struct client *c)
{
    if (--c->threads > 0)
        return;
    rowlock_keeper_close(c->keeper);
    rowlock_db_close(c->keeper_db);
    rowlock_pool_close(c->pool);
    if (--running == 0)
        over = true;
}

static struct client *all[CLIENTS_MOST];
static int born;

/* What a killed one had stays where it is. */
static void start_client(int place)
{
    struct client *c = all[place] = calloc(1, sizeof *c);
    c->process.number = ++born;
    c->process.ahead_us = sim_random(1000 * SECOND);
    c->process.ppm = sim_random(201) - 100;
    sim_start(&c->process, begin, c);
}

/* ---- what happens */

/* Until when. */
static int64_t begin_pause(int who, const char *what, int64_t most)
{
    int64_t pause = sim_spread(MILLISECOND, most);
    tell(who, what, NULL, pause / MILLISECOND, 0);
    return sim_now() + pause;
}

static void stop_client(int place)
{
    struct process *p = &all[place]->process;
    p->stopped_until = begin_pause(p->number, "stands still", 60 * SECOND);
}

static void kill_client(int place)
{
    struct process *p = &all[place]->process;
    tell(p->number, "is killed", NULL, 0, 0);
    p->dead = true;
    start_client(place);
}

static void set_clock(int place)
{
    struct process *p = &all[place]->process;
    p->set_us += sim_random(2000 * SECOND) - 1000 * SECOND;
    tell(p->number, "has another time of day", NULL, p->set_us, 0);
}

static void stop_server(int server)
{
    network_stop(server, begin_pause(-1 - server, "stops", 30 * SECOND));
}

static void freeze_server(int server)
{
    network_state[server].frozen_until = begin_pause(-1 - server, "stands still", 30 * SECOND);
}

static void fill_server(int server)
{
    network_state[server].full_until = begin_pause(-1 - server, "has a full disk", 5 * SECOND);
}

static void cut_server(int server)
{
    tell(-1 - server, "loses its connections", NULL, 0, 0);
    network_cut(server);
}

static void set_server_clock(int server)
{
    int64_t ahead_us = sim_random(40 * SECOND);
    tell(-1 - server, "has another time", NULL, ahead_us, 0);
    network_state[server].ahead_us = ahead_us;
    judge_excuses();
}

/* Its tables become those of the next release, and clients of this one go on. */
static void upgrade_server(int server)
{
    if (network_upgrade(server))
        tell(-1 - server, "is upgraded", NULL, 0, 0);
}

/* ---- a server is restored */

static void save_server(int server)
{
    if (sim_world == ROWS || restoring || !network_save(server))
        return;
    saved[server] = true;
    tell(-1 - server, "is saved", NULL, 0, 0);
}

static int raise_tokens(int64_t *highest, rowlock_error *err)
{
    rowlock_db *db = NULL;
    int result = rowlock_db_open(sim_url, NULL, &db, err);
    if (result == ROWLOCK_OK)
        result = rowlock_raise_tokens(db, 1000000, highest);
    rowlock_db_close(db);
    return result;
}

/* The operator of docs/QUORUM.md, who has removed the mark before, or of docs/OPERATIONS.md: a server
 * that has lost its newest commits stays closed until the tokens are raised. */
static void *repair(void *unused)
{
    int result = ROWLOCK_ECONN;
    int64_t highest = 0;
    while (result != ROWLOCK_OK) {
        rowlock_error err = ROWLOCK_ERROR_INIT;
        sim_sleep(sim_spread(MILLISECOND, 30 * SECOND));
        result = sim_world == QUORUM ? rowlock_quorum_join(sim_url, 0, NULL, &err)
                                     : raise_tokens(&highest, &err);
        tell(0, "repairs", NULL, result, highest);
        if (result == ROWLOCK_ESCHEMA || (result != ROWLOCK_OK && !is_outage(result)))
            violation("the operator is told %s: %s", rowlock_result_name(result), err.text);
    }
    judge_raises(highest);
    network_state[0].closed = false;
    restoring = false;
    return unused;
}

static void restore_server(int server)
{
    static struct process operator;
    if (!saved[server] || restoring)
        return;
    restoring = restored = true;
    network_stop(server, sim_now() + sim_spread(MILLISECOND, 30 * SECOND));
    network_restore(server);
    tell(-1 - server, "is restored", NULL, 0, 0);
    if (sim_world != QUORUM) {
        /* A raise that is lost again would have to be raised by twice as much. */
        saved[server] = false;
        network_state[server].closed = true;
        judge_excuses();
    }
    sim_start(&operator, repair, NULL);
}

/* What happens now and then. The first three happen to clients. Each seed has shares of its own. */
static struct event {
    const char *name;
    void (*happens)(int place);
    int share;
} events[] = {
    {"stop", stop_client, 26},      {"kill", kill_client, 14},     {"clock", set_clock, 5},
    {"down", stop_server, 12},      {"freeze", freeze_server, 13}, {"cutall", cut_server, 12},
    {"full", fill_server, 4},       {"jump", set_server_clock, 3}, {"save", save_server, 6},
    {"restore", restore_server, 5}, {"upgrade", upgrade_server, 1}};
enum { EVENTS = sizeof events / sizeof events[0], OF_CLIENTS = 3 };

static void end_faults(void)
{
    sim_calm = true;
    calm_since = sim_now();
    faults = (struct faults){.memory = 0};
    tell(0, "the faults are over", NULL, judge_grants, 0);
}

static void disturb(void *unused)
{
    int at = 0, chance = (int)sim_random(shares);
    if (judge_grants >= wanted && !sim_calm)
        end_faults();
    if (sim_calm && !over && sim_now() - calm_since > CALM_MOST)
        violation("%d clients had no grant in %d s without faults", running, CALM_MOST / SECOND);
    while (chance >= events[at].share)
        chance -= events[at++].share;
    if (!sim_calm && events[at].happens)
        events[at].happens((int)sim_random(at < OF_CLIENTS ? clients : sim_servers));
    sim_at(sim_now() + sim_spread(SECOND / 10, pause_most), disturb, unused);
}

/* ---- the whole */

bool sim_without(const char *name)
{
    const char *at = getenv("WITHOUT");
    for (size_t length = strlen(name); at && *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && strncmp(at, name, length) == 0)
            return true;
        at += word;
    }
    return false;
}

/* A crash, an endless run that somebody ends. */
static void end_by_signal(int number)
{
    signal(number, SIG_DFL);
    violation("it ends by signal %d", number);
}

/* The command that makes this run again comes first: a run that is killed must not take it along. */
static void announce(char **argv)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM};
    const char *without = getenv("WITHOUT"), *most = getenv("CLIENTS");
    snprintf(judge_command, sizeof judge_command,
             "%s%s%s%s%s%smake simulate WORLD=%s SEED=%s GRANTS=%s", without ? "WITHOUT='" : "",
             without ? without : "", without ? "' " : "", most ? "CLIENTS=" : "", most ? most : "",
             most ? " " : "", argv[1], argv[2], argv[3]);
    fprintf(stderr, "%s\n", judge_command);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], end_by_signal);
}

/* False: it is none, or too large. */
static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19;
}

static void choose(void)
{
    const struct {
        const char *name;
        int64_t *fault, least, most;
    } of_requests[] = {{"lost", &faults.lost, 50, 2400},        {"late", &faults.late, 50, 2400},
                       {"mute", &faults.mute, 50, 2400},        {"slow", &faults.slow, 25, 1200},
                       {"cut", &faults.cut, 50, 2400},          {"deaf", &faults.deaf, 10, 120},
                       {"memory", &faults.memory, 2000, 200000}};
    pause_most = sim_spread(4 * SECOND, 20 * SECOND);
    for (size_t i = 0; i < sizeof of_requests / sizeof of_requests[0]; i++) {
        int64_t many = sim_spread(of_requests[i].least, of_requests[i].most);
        *of_requests[i].fault = sim_without(of_requests[i].name) ? 0 : many;
    }
    for (int i = 0; i < EVENTS; i++) {
        if (sim_without(events[i].name))
            events[i].happens = NULL;
        events[i].share = (int)sim_spread(1, (i < OF_CLIENTS ? 1 : 5) * events[i].share);
        shares += events[i].share;
    }
    sim_servers = sim_world == QUORUM ? 3 : 1;
    threads = sim_world == POOL || sim_world == KEEPERS ? 1 + (int)sim_random(8) : 1;
    /* A database has one writer, and transactions of rows are long. */
    int most = sim_world == ROWS ? 12 : sim_world == QUORUM ? 8 : CLIENTS_MOST;
    clients = 3 + (int)sim_random(most - 2);
    sim_names = 1 + (int)sim_random(clients * threads);
    const char *fewer = getenv("CLIENTS");
    if (fewer && atoi(fewer) > 0 && atoi(fewer) < clients)
        clients = atoi(fewer);
}

/* Runs it in a fiber of its own, to its end. */
static void run_alone(void *(*run)(void *ended))
{
    static struct process alone;
    bool ended = false;
    sim_start(&alone, run, &ended);
    sim_run(&ended);
    if (!ended)
        violation("nothing can happen any more");
}

static void *join(void *ended)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (rowlock_quorum_join(sim_url, 0, NULL, &err) != ROWLOCK_OK)
        violation("the databases do not become a quorum: %s", err.text);
    *(bool *)ended = true;
    return NULL;
}

/* A sweep removes all that ended clients have left. */
static void *sweep_all(void *ended)
{
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    options.idle_ms = 1;
    sim_sleep(LEASES_END);
    for (int i = 0; i < sim_servers; i++) {
        rowlock_db *db = NULL;
        if (rowlock_db_open(network_url(i), NULL, &db, NULL) != ROWLOCK_OK ||
            rowlock_sweep(db, &options, NULL) != ROWLOCK_OK)
            violation("the last sweep: %s", rowlock_db_error(db)->text);
        rowlock_db_close(db);
        int64_t left = network_sql(i, "SELECT (SELECT count(*) FROM rowlock_locks) + "
                                      "(SELECT count(*) FROM rowlock_waiters)");
        if (left > 0)
            violation("%" PRId64 " rows are left on server %d after the last sweep", left, i);
    }
    *(bool *)ended = true;
    return NULL;
}

static void finish(void)
{
    if (!over)
        violation("nothing can happen any more, and %d clients wait", running);
    if (sim_world == ROWS) {
        run_alone(rows_end_walk);
        rows_judge();
    }
    run_alone(sweep_all);
    printf("%s: %" PRId64 " grants, %" PRId64
           " requests in %.0f s, %d clients, %d names, sum %016" PRIx64
           ", %.1f s of processor time\n",
           world_names[sim_world], judge_grants, network_requests, (double)sim_now() / SECOND, born,
           sim_names, judge_sum(), (double)clock() / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
    const char *folder = getenv("TMPDIR");
    const char *fewer = getenv("CLIENTS");
    bool numbers = argc == 4 && is_number(argv[2]) && is_number(argv[3]);
    wanted = numbers ? strtoll(argv[3], NULL, 10) : 0;
    numbers = numbers && (!fewer || (is_number(fewer) && atoi(fewer) > 0));
    while (argc == 4 && sim_world < WORLDS && strcmp(argv[1], world_names[sim_world]) != 0)
        sim_world++;
    if (!numbers || sim_world == WORLDS || wanted <= 0) {
        fputs("usage: simulate one|keepers|pool|quorum|rows SEED GRANTS\n"
              "These and CLIENTS are numbers above 0 of at most 18 digits.\n",
              stderr);
        return 64;
    }
    program_invocation_short_name = "simulate";
    announce(argv);
    sim_seed(strtoull(argv[2], NULL, 10));
    choose();
    struct faults chosen = faults;
    faults = (struct faults){.memory = 0};
    network_open(folder ? folder : "/tmp", sim_servers);
    for (int i = 0; i < sim_servers; i++)
        snprintf(sim_url + strlen(sim_url), sizeof sim_url - strlen(sim_url), "%s%s", i ? " " : "",
                 network_url(i));
    if (sim_world == QUORUM)
        run_alone(join);
    if (sim_world == ROWS)
        rows_install();
    faults = chosen;
    memory_fails = chosen.memory > 0;
    running = clients;
    for (int i = 0; i < clients; i++)
        start_client(i);
    sim_at(sim_now() + SECOND, disturb, NULL);
    sim_run(&over);
    finish();
    return 0;
}
