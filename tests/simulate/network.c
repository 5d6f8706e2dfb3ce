/* SPDX-License-Identifier: MIT
 * The place of src/api/drivers.c and of src/drivers/sqlite/wakeup.c: a driver whose requests travel
 * to a server and back. The server carries out each one with SQLite's own driver, on a database in
 * memory. Wake-ups are messages that may be lost. */
#include "simulate.h"

#include "api/api.h"
#include "core/db.h"
#include "core/port.h"
#include "core/statements.h"
#include "drivers/sqlite/driver.h"
#include "quorum/ballot.h"

enum {
    QUICKEST = 30,
    SLOWEST = 2 * MILLISECOND,
    /* of a slow request, and of one that arrives late */
    LATEST = 20 * SECOND,
    EPOCH_S = 1700000000,
    IDLE_MOST = 8192
};

struct faults faults;
int64_t network_requests;
struct server_state network_state[SERVERS_MOST];

/* A session of a server. It stays until both sides have ended it. */
struct session {
    struct session *next;
    int64_t number;
    int server;
    /* The client has ended it, the server has, requests are on the way. */
    bool closed, dead;
    int travelling;
    bool framed;
    /* The connection of SQLite. */
    struct conn *lite;
    /* A wake-up has come for it, and the alarm of the handle that awaits it. */
    bool woken;
    const void *awaits;
    /* What its next COMMIT proves. */
    bool guards;
    struct holding proven;
};

static struct server {
    char url[200];
    struct session *sessions;
    struct conn *idle[IDLE_MOST];
    int idle_count;
    sqlite3 *backup;
    int64_t backup_schema; /* its version: statements stay prepared as long as that stays */
} servers[SERVERS_MOST];
static int server_count;
/* A pooler is in between: sessions have no names, so a client cannot end an earlier one. */
static bool pooled;

/* The server that SQLite runs for, and the session. */
static int at_server;
static struct session *at_session;
static struct rlk_texts texts;
/* The disk takes so many more pages of this transaction. Below 0: all. */
static int pages_left = -1;

extern const struct rlk_driver rlk_driver_sqlite;

/* ---- the file system of SQLite: memory, and the clock of the server */

/* In microseconds since 1970, of whole milliseconds. */
static int64_t server_clock(int server)
{
    return (int64_t)EPOCH_S * SECOND +
           (sim_now() + network_state[server].ahead_us) / MILLISECOND * MILLISECOND;
}

static int read_clock(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    *out = 210866760000000 + server_clock(at_server) / MILLISECOND;
    return SQLITE_OK;
}

static int draw(sqlite3_vfs *vfs, int size, char *out)
{
    for (int i = 0; i < size; i++)
        out[i] = (char)sim_random(256);
    return size;
}

static sqlite3_io_methods methods;
static int (*open_memory)(sqlite3_vfs *, sqlite3_filename, sqlite3_file *, int, int *);
static int (*write_memory)(sqlite3_file *, const void *, int, sqlite3_int64);

/* A full disk refuses a page once. Going back to the old pages needs no room. */
static int write_page(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    return pages_left >= 0 && pages_left-- == 0 ? SQLITE_FULL : write_memory(file, bytes, size, at);
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *out)
{
    int result = open_memory(vfs, name, file, flags, out);
    if (result != SQLITE_OK || !file->pMethods)
        return result;
    methods = *file->pMethods;
    write_memory = methods.xWrite == write_page ? write_memory : methods.xWrite;
    methods.xWrite = write_page;
    file->pMethods = &methods;
    return result;
}

static void use_memory(void)
{
    static sqlite3_vfs vfs;
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_initialize();
    vfs = *sqlite3_vfs_find("memdb");
    vfs.zName = "simulated";
    vfs.xCurrentTimeInt64 = read_clock;
    vfs.xRandomness = draw;
    open_memory = vfs.xOpen;
    vfs.xOpen = open_file;
    sqlite3_vfs_register(&vfs, 1);
}

/* ---- wake-ups */

static void arrive_wakeup(void *context)
{
    int64_t number = *(int64_t *)context;
    free(context);
    for (int i = 0; i < server_count; i++)
        for (struct session *s = servers[i].sessions; s; s = s->next)
            if (s->number == number) {
                s->woken = true;
                if (s->awaits)
                    sim_wake(s->awaits);
                return;
            }
}

void lite_wake(struct conn *conn, const char *wakeup)
{
    int64_t *number = malloc(sizeof *number);
    if (sscanf(wakeup, "session %lld", (long long *)number) != 1 || sim_once_in(faults.deaf)) {
        free(number);
        return;
    }
    sim_at(sim_now() + sim_spread(QUICKEST, SLOWEST), arrive_wakeup, number);
}

void lite_open_wakeup(struct conn *conn)
{
    snprintf(conn->wakeup, sizeof conn->wakeup, "session %lld", (long long)at_session->number);
}

void lite_close_wakeup(struct conn *conn)
{
    conn->wakeup[0] = '\0';
}

bool lite_tell(void *state, struct rlk_call *call, enum rlk_news news,
               const struct rlk_request *request, int64_t number)
{
    return news == RLK_ENQUEUED && number != 0;
}

enum rlk_class lite_await(void *state, struct rlk_call *call, const struct rlk_request *request,
                          int wake, enum rlk_wakeup *out)
{
    struct session *s = *(struct session **)state;
    int64_t until = sim_true(call->deadline_us);
    bool rings;
    s->awaits = sim_alarm(wake, &rings);
    while (!rings && !s->woken && sim_now() < until) {
        sim_wait(s->awaits ? s->awaits : s, until);
        sim_alarm(wake, &rings);
    }
    s->awaits = NULL;
    *out = rings ? RLK_INTERRUPTED : s->woken ? RLK_WAKEUP : RLK_SILENT;
    s->woken = false;
    return RLK_DONE;
}

/* No client waits for a file. */
#define NO_TURN(name, ...) \
    void name(__VA_ARGS__) \
    {                      \
    }
NO_TURN(lite_name_turn, struct conn *conn)
NO_TURN(lite_await_turn, struct conn *conn, int64_t waited_us)
NO_TURN(lite_end_turn, struct conn *conn)
NO_TURN(lite_pass_turn, struct conn *conn)
NO_TURN(lite_let_pass, struct conn *conn)

/* ---- sessions */

/* A server does not wait for its file: a request is CONTENTION then, and the client asks again.
 * NULL: a new connection is needed, and another one writes. */
static struct conn *open_lite(int server)
{
    struct server *on = &servers[server];
    if (on->idle_count > 0)
        return on->idle[--on->idle_count];
    struct conn *lite = calloc(1, sizeof *lite);
    struct rlk_call call = {.deadline_us = 0};
    struct rlk_hello hello = {0};
    const struct rlk_target target = {.url = on->url};
    at_server = server;
    if (lite_open(lite, &call, &target, &texts, &hello) != RLK_DONE) {
        free(lite);
        return NULL;
    }
    sqlite3_busy_handler(lite->db, NULL, NULL);
    return lite;
}

static void roll_back(struct session *s)
{
    struct rlk_call call = {.deadline_us = INT64_MAX};
    if (!s->framed)
        return;
    s->framed = false;
    at_server = s->server;
    if (rlk_driver_sqlite.frame(s->lite, &call, RLK_ROLLBACK) != RLK_DONE)
        violation("a transaction cannot be rolled back: %s", call.text);
    sim_wake(&servers[s->server]);
}

/* The server ends the session: nothing that is on the way is done any more. */
static void end_session(struct session *s)
{
    if (!s->dead)
        roll_back(s);
    s->dead = true;
}

static void free_session(struct session *s)
{
    struct server *server = &servers[s->server];
    struct session **at = &server->sessions;
    if (!s->closed || s->travelling > 0)
        return;
    end_session(s);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    lite_close_wakeup(s->lite);
    if (server->idle_count < IDLE_MOST)
        server->idle[server->idle_count++] = s->lite;
    free(s);
}

void network_cut(int server)
{
    for (struct session *s = servers[server].sessions; s; s = s->next)
        end_session(s);
}

void network_stop(int server, int64_t until)
{
    network_cut(server);
    network_state[server].down_until = until;
}

/* ---- a request */

/* One of the server's operations. */
struct request {
    struct session *session;
    enum rlk_frame frame;
    struct rlk_query *query;
};

/* LOCKED: a transaction is writing. */
static const int64_t LOCKED = INT64_MIN;
static int64_t ask_number(sqlite3 *db, char *sql)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    int64_t number = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    if (result == SQLITE_BUSY || result == SQLITE_LOCKED)
        number = LOCKED;
    else if (result != SQLITE_ROW && result != SQLITE_DONE)
        violation("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_free(sql);
    return number;
}

/* ---- the order of waiters */

enum { UNFAIR = TICKET + 1, ORDER_LOOKS = 8 };

/* A parameter of a step. Values are in the order in which the text has them. */
static const rowlock_value *parameter(const struct request *r, int index)
{
    const struct rlk_order *order = &texts.order[r->query->step];
    for (size_t i = 0; i < order->count; i++)
        if (order->from[i] == index)
            return &r->query->values[i];
    violation("%s has no parameter %d", rlk_steps[r->query->step].name, index);
}

/* How many waiters are before a request that is fair and has no grant, and the newest token. Not each
 * is looked at. */
static int64_t count_ahead(const struct request *r, int64_t *token)
{
    static unsigned looks;
    if (!r->query || r->query->step != RLK_STEP_ACQUIRE || looks++ % ORDER_LOOKS ||
        parameter(r, UNFAIR)->number)
        return 0;
    int64_t now_us = server_clock(r->session->server), ticket = parameter(r, TICKET)->number;
    *token = ask_number(r->session->lite->db,
                        sqlite3_mprintf("SELECT max(token) FROM rowlock_tokens WHERE name = %Q",
                                        parameter(r, NAME)->text));
    return ask_number(
        r->session->lite->db,
        sqlite3_mprintf("SELECT count(*) FROM rowlock_waiters w WHERE name = %Q AND expires > %lld "
                        "AND (%lld = 0 OR (ticket, request) < (%lld, %lld)) AND NOT EXISTS "
                        "(SELECT 1 FROM rowlock_locks WHERE name = w.name AND owner = %Q AND "
                        "expires > %lld)",
                        parameter(r, NAME)->text, now_us, ticket, ticket,
                        parameter(r, REQUEST)->number, parameter(r, OWNER)->text, now_us));
}

/* The request's row is a new grant if its token is: a clock that was set back leaves rows of the
 * future. */
static void check_order(const struct request *r, int64_t ahead, int64_t token)
{
    if (ahead > 0 &&
        ask_number(r->session->lite->db,
                   sqlite3_mprintf("SELECT count(*) FROM rowlock_locks WHERE name = %Q AND owner = "
                                   "%Q AND request = %lld AND token > %lld",
                                   parameter(r, NAME)->text, parameter(r, OWNER)->text,
                                   parameter(r, REQUEST)->number, token)) > 0)
        violation("'%s' is granted, and %" PRId64 " waiters are before that request",
                  parameter(r, NAME)->text, ahead);
}

static bool removes(const struct request *r)
{
    return r->query && (r->query->step == RLK_STEP_RETRACT || r->query->step == RLK_STEP_RELEASE);
}

/* ---- what a member of a quorum has done, in the words of tests/model/trace.awk */

/* What the caller gets of an answer: its rows, and of the first the first cell. */
struct heard {
    rlk_cells_fn *each;
    void *context;
    int64_t rows, number;
};

static int hear_row(void *context, const rowlock_value *cells, size_t count)
{
    struct heard *heard = context;
    if (heard->rows++ == 0)
        heard->number = cells[0].kind == ROWLOCK_INT ? cells[0].number : 0;
    return heard->each ? heard->each(heard->context, cells, count) : 0;
}

static void tell_done(const struct request *r, const struct heard *heard)
{
    enum rlk_step step = r->query->step;
    bool tops_up = step == RLK_STEP_ACQUIRE && strncmp(parameter(r, OWNER)->text, "top-up", 6) == 0;
    const char *what = NULL;
    int64_t token = 0;
    if (step == RLK_STEP_ACQUIRE && heard->number > 0)
        what = tops_up ? "tops-up" : "claims", token = heard->number;
    else if (step == RLK_STEP_LIFT && heard->rows > 0)
        what = "lifts", token = parameter(r, 4)->number;
    else if (step == RLK_STEP_RENEW && heard->rows > 0)
        what = "renews", token = parameter(r, HELD_TOKEN)->number;
    else if (removes(r) && r->query->changed > 0)
        what = "removes", token = parameter(r, HELD_TOKEN)->number;
    if (what)
        tell(-1 - r->session->server, what, parameter(r, NAME)->text,
             sim_process ? sim_process->number : 0, token);
}

static enum rlk_class carry_out_step(const struct request *r, struct rlk_call *call)
{
    struct heard heard = {r->query->each, r->query->context, 0, 0};
    if (sim_world != QUORUM)
        return rlk_driver_sqlite.query(r->session->lite, call, r->query);
    r->query->each = hear_row;
    r->query->context = &heard;
    enum rlk_class class = rlk_driver_sqlite.query(r->session->lite, call, r->query);
    r->query->each = heard.each;
    r->query->context = heard.context;
    if (class == RLK_DONE && r->query->step)
        tell_done(r, &heard);
    return class;
}

/* The server carries it out, in no time. */
static enum rlk_class carry_out(const struct request *r, struct rlk_call *call)
{
    struct session *s = r->session;
    int64_t deadline_us = call->deadline_us;
    enum rlk_class class;
    at_server = s->server;
    at_session = s;
    pages_left = network_state[s->server].full_until > sim_now() ? (int)sim_random(4) : -1;
    call->deadline_us = INT64_MAX;
    int64_t token = 0, ahead = count_ahead(r, &token);
    if (r->frame)
        class = rlk_driver_sqlite.frame(s->lite, call, r->frame);
    else
        class = carry_out_step(r, call);
    call->deadline_us = deadline_us;
    pages_left = -1;
    check_order(r, ahead, token);
    if (class == RLK_DONE && removes(r) && r->query->step == RLK_STEP_RELEASE &&
        r->query->changed && texts.order[RLK_STEP_RELEASE].count > HELD_TOKEN)
        judge_removes(parameter(r, NAME)->text, parameter(r, HELD_TOKEN)->number);
    if (r->frame == RLK_COMMIT && class == RLK_DONE && s->guards)
        judge_commits(&s->proven);
    s->guards = s->guards && !r->frame;
    s->framed = s->lite->db && !sqlite3_get_autocommit(s->lite->db);
    if (r->frame && !s->framed)
        sim_wake(&servers[s->server]);
    return class;
}

/* ---- a request that arrives after its client has given up */

struct late {
    struct request request;
    /* The newest token of the lock when it was sent. */
    int64_t newest;
    struct rlk_query query;
    struct rlk_call call;
    struct rlk_copies in;
};

/* Of the lock of such a request. what: a count or so of the columns of a table. */
static int64_t ask_lock(const struct request *r, const char *what, int64_t above)
{
    return ask_number(r->session->lite->db,
                      sqlite3_mprintf("SELECT %s WHERE name = %Q AND token > %lld", what,
                                      parameter(r, NAME)->text, above));
}

/* What removes the row of a grant removes none that was made since it was sent. */
static enum rlk_class carry_out_late(struct late *late)
{
    static const char rows[] = "count(*) FROM rowlock_locks";
    const struct request *r = &late->request;
    int64_t before = removes(r) ? ask_lock(r, rows, late->newest) : 0;
    enum rlk_class class = carry_out(r, &late->call);
    if (before > 0 && class == RLK_DONE && ask_lock(r, rows, late->newest) < before)
        violation("a %s that came late has removed a grant that was made since it was sent",
                  rlk_steps[r->query->step].name);
    return class;
}

static void arrive_late(void *context)
{
    struct late *late = context;
    struct session *s = late->request.session;
    int64_t frozen_until = network_state[s->server].frozen_until;
    if (!s->dead && frozen_until > sim_now()) {
        sim_at(frozen_until, arrive_late, late);
        return;
    }
    if (!s->dead) {
        enum rlk_class class = carry_out_late(late);
        tell(-1 - s->server, "does what came late", late->call.text, s->number, class);
    }
    rlk_copies_clear(&late->in);
    free(late);
    s->travelling--;
    free_session(s);
}

/* Only steps outside of transactions, and COMMIT. Others end with their session. */
static void send_late(const struct request *r, const struct rlk_call *call, int64_t time)
{
    struct session *s = r->session;
    bool commits = r->frame == RLK_COMMIT;
    if (s->dead || (s->framed && !commits) || !(commits || (r->query && r->query->step)))
        return;
    struct late *late = calloc(1, sizeof *late);
    late->request = *r;
    late->call = *call;
    if (removes(r))
        late->newest = ask_lock(r, "max(token) FROM rowlock_tokens", 0);
    if (late->newest == LOCKED)
        late->newest = INT64_MAX;
    if (r->query) {
        late->query = *r->query;
        late->request.query = &late->query;
        late->query.each = NULL;
        if (!rlk_copies_take(&late->in, r->query->values, r->query->count)) {
            /* No memory for it: it is lost. */
            rlk_copies_clear(&late->in);
            free(late);
            return;
        }
        late->query.values = late->in.value;
        if (late->query.own)
            late->query.own = late->in.value + (r->query->own - r->query->values);
        late->query.wakes = NULL;
    }
    s->travelling++;
    sim_at(time, arrive_late, late);
}

/* ---- the way */

static int64_t way(void)
{
    return sim_once_in(faults.slow) ? sim_spread(SLOWEST, LATEST) : sim_spread(QUICKEST, SLOWEST);
}

/* The client hears no more of it. A reset comes early, else it waits until its deadline. */
static enum rlk_class hear_nothing(const struct request *r, struct rlk_call *call, int64_t until)
{
    struct session *s = r->session;
    tell(sim_process->number, "hears nothing", r->query ? rlk_steps[r->query->step].name : "frame",
         s->number, until - sim_now());
    sim_wait(NULL, sim_random(2) ? until : sim_now() + sim_random(until - sim_now() + 1));
    if (!s->travelling)
        end_session(s);
    return rlk_refuse(call, RLK_UNCERTAIN, "no answer came");
}

/* Sends it, and brings the answer back. */
static enum rlk_class travel(const struct request *r, struct rlk_call *call)
{
    struct session *s = r->session;
    const struct server_state *state = &network_state[s->server];
    int64_t until = sim_true(call->deadline_us);
    network_requests++;
    if (sim_once_in(faults.cut))
        end_session(s);
    if (s->dead)
        tell(sim_process->number, "has lost its session", NULL, s->number, 0);
    if (s->dead)
        return rlk_refuse(call, RLK_UNSENT, "the connection is gone");
    int64_t arrives = sim_now() + way();
    if (arrives < state->frozen_until)
        arrives = state->frozen_until + sim_random(SLOWEST);
    if (sim_once_in(faults.lost))
        return hear_nothing(r, call, until);
    if (sim_once_in(faults.late) || arrives >= until) {
        send_late(r, call, arrives + (arrives < until ? sim_spread(SLOWEST, LATEST) : 0));
        return hear_nothing(r, call, until);
    }
    sim_wait(NULL, arrives);
    bool mute = sim_once_in(faults.mute), waits = false;
    enum rlk_class class;
    struct rlk_query unheard;
    struct request what = *r;
    if (mute && r->query) {
        unheard = *r->query;
        unheard.each = NULL;
        what.query = &unheard;
    }
    /* Mostly it waits for a transaction that is in its way, as in a server. */
    do {
        if (waits)
            sim_wait(&servers[s->server], until);
        if (s->dead || state->down_until > sim_now())
            return hear_nothing(r, call, until);
        class = carry_out(&what, call);
        waits = class == RLK_CONTENTION && !s->framed && sim_random(8) && sim_now() < until;
    } while (waits);
    arrives = sim_now() + way();
    if (!mute && arrives < until) {
        sim_wait(NULL, arrives);
        return class;
    }
    class = hear_nothing(r, call, until);
    end_session(s);
    return class;
}

/* ---- the driver */

static enum rlk_class turned_away(struct rlk_call *call, int server, const char *why)
{
    tell(sim_process->number, "does not connect", why, server, 0);
    return rlk_refuse(call, RLK_UNSENT, "%s", why);
}

static enum rlk_class sim_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                               const struct rlk_texts *unused, struct rlk_hello *hello)
{
    static int64_t numbers;
    int server = atoi(strrchr(target->url, '/') + 1);
    int64_t until = sim_true(call->deadline_us), arrives = sim_now() + 2 * way();
    struct server *on = &servers[server];
    const struct server_state *state = &network_state[server];
    if (state->frozen_until > arrives)
        arrives = state->frozen_until;
    sim_wait(NULL, arrives < until ? arrives : until);
    if (arrives >= until || state->down_until > sim_now() ||
        (state->closed && sim_process->number > 0))
        return turned_away(call, server, "the server is away");
    for (struct session *s = on->sessions, *next; s && target->lingering[0]; s = next) {
        next = s->next;
        if (s->number == atoll(target->lingering))
            end_session(s);
    }
    struct conn *lite = open_lite(server);
    if (!lite)
        return turned_away(call, server, "the server takes no connection at this moment");
    struct session *s = calloc(1, sizeof *s);
    *s =
        (struct session){.next = on->sessions, .number = ++numbers, .server = server, .lite = lite};
    on->sessions = s;
    *(struct session **)conn = s;
    snprintf(hello->schema, sizeof hello->schema, "main");
    if (!pooled)
        snprintf(hello->session, sizeof hello->session, "%lld", (long long)s->number);
    hello->takes_writes = true;
    return RLK_DONE;
}

static void sim_close(void *conn, bool in_child)
{
    struct session *s = *(struct session **)conn;
    if (!s)
        return;
    s->closed = true;
    if (!s->travelling)
        end_session(s);
    free_session(s);
    *(struct session **)conn = NULL;
}

static enum rlk_class sim_query(void *conn, struct rlk_call *call, struct rlk_query *query)
{
    *sim_mine() = *(struct session **)conn;
    return travel(&(struct request){.session = *(struct session **)conn, .query = query}, call);
}

static enum rlk_class sim_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct session *s = *(struct session **)conn;
    call->inside = s && s->framed;
    if (what == RLK_LOOK)
        return RLK_DONE;
    return travel(&(struct request){.session = s, .frame = what}, call);
}

static struct rlk_driver driver;

const struct rlk_driver *rlk_driver_find(const char *scheme, bool *known)
{
    *known = strcmp(scheme, "sqlite") == 0;
    return *known ? &driver : NULL;
}

/* ---- the servers */

/* Only of clients, at a moment that the seed chooses. */
static void *allocate(size_t size)
{
    return sim_process && sim_once_in(faults.memory) ? NULL : calloc(1, size);
}

static void install(int server)
{
    struct rlk_call call = {.deadline_us = INT64_MAX};
    struct conn *lite = open_lite(server);
    if (!lite || rlk_driver_sqlite.script(lite, &call, texts.sql[RLK_STEP_SCHEMA]) != RLK_DONE)
        violation("install: %s", call.text);
    servers[server].idle[servers[server].idle_count++] = lite;
}

void network_open(const char *folder, int count)
{
    use_memory();
    rlk_memory.alloc = allocate;
    driver = rlk_driver_sqlite;
    driver.conn_size = sizeof(struct session *);
    driver.local = sim_random(2);
    pooled = sim_random(3) == 0;
    driver.open = sim_open;
    driver.close = sim_close;
    driver.query = sim_query;
    driver.frame = sim_frame;
    snprintf(texts.schema, sizeof texts.schema, "main");
    snprintf(texts.prefix, sizeof texts.prefix, "rowlock_");
    if (rlk_texts_fill(&texts, &driver) != 0)
        violation("no memory for the texts");
    server_count = count;
    for (int i = 0; i < count; i++) {
        snprintf(servers[i].url, sizeof servers[i].url, "sqlite:%s/%d", folder, i);
        FILE *file = fopen(strchr(servers[i].url, '/'), "w");
        if (!file || fclose(file) != 0)
            violation("cannot make %s", servers[i].url);
        install(i);
    }
}

const char *network_url(int server)
{
    return servers[server].url;
}

void network_guard(const struct holding *holding)
{
    struct session *s = *sim_mine();
    s->guards = true;
    s->proven = *holding;
}

int64_t network_sql(int server, const char *format, ...)
{
    at_server = server;
    struct conn *lite = open_lite(server);
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (!lite)
        violation("%s: no connection", sql);
    int64_t number = ask_number(lite->db, sql);
    if (number == LOCKED)
        violation("a transaction is writing, and a question was asked");
    servers[server].idle[servers[server].idle_count++] = lite;
    return number;
}

/* As tests/upgrade/make-level2 does it. False: it is done, or a transaction is writing. */
bool network_upgrade(int server)
{
    static const char change[] = "ALTER TABLE rowlock_tokens ADD COLUMN extra INTEGER;"
                                 "UPDATE rowlock_meta SET version = 2, code = 2";
    struct conn *lite = open_lite(server);
    bool done = lite && sqlite3_exec(lite->db, change, NULL, NULL, NULL) == SQLITE_OK;
    if (lite)
        servers[server].idle[servers[server].idle_count++] = lite;
    return done;
}

/* False: a transaction is writing. */
static bool copy_all(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int result = backup ? sqlite3_backup_step(backup, -1) : SQLITE_ERROR;
    sqlite3_backup_finish(backup);
    if (result != SQLITE_DONE && result != SQLITE_BUSY && result != SQLITE_LOCKED)
        violation("a backup: %s", sqlite3_errmsg(to));
    return result == SQLITE_DONE;
}

bool network_save(int server)
{
    struct server *on = &servers[server];
    struct conn *lite = open_lite(server);
    if (!lite)
        return false;
    if (!on->backup && sqlite3_open(":memory:", &on->backup) != SQLITE_OK)
        violation("no room for a backup");
    bool copied = copy_all(on->backup, lite->db);
    on->backup_schema = ask_number(lite->db, sqlite3_mprintf("PRAGMA schema_version"));
    on->idle[on->idle_count++] = lite;
    return copied;
}

void network_restore(int server)
{
    struct server *on = &servers[server];
    network_cut(server);
    struct conn *lite = open_lite(server);
    if (!copy_all(lite->db, on->backup))
        violation("a transaction goes on after its end");
    sqlite3_db_config(lite->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    ask_number(lite->db, sqlite3_mprintf("PRAGMA schema_version = %lld", on->backup_schema));
    on->idle[on->idle_count++] = lite;
    network_sql(server, "DELETE FROM rowlock_members");
}
