/* SPDX-License-Identifier: MIT
 *
 * Two sessions and one row: what we are told, and what becomes of the row, when another changes,
 * deletes, replaces, locks or makes it before our transaction begins, after its snapshot was
 * taken, or while our statement waits for it. Each such meeting is a line of a table. Nothing is
 * left to luck: where we are to wait, the other goes on when the server says that we do. */
#include "tables.h"
#include "scene.h"

/* ---- where: a database, and what is around our call */

enum stage {
    P_OWN, /* PostgreSQL, a connection of our own */
    P_EVERY, /* the same, all or nothing */
    P_RC, /* in the application's transaction: READ COMMITTED */
    P_RR,
    P_SE,
    M_OWN, /* MySQL and MariaDB */
    M_ALL,
    M_RC,
    M_RR,
    M_RX, /* with innodb_snapshot_isolation */
    M_SE,
    L_OWN, /* SQLite */
    L_ALL,
    L_DE,
    L_IM,
    STAGES
};

struct place {
    const char *database;
    const char *isolation; /* NULL: our own connection */
    const char *setting;
    bool all_or_nothing;
};

#define SNAPSHOTS(on) "SET SESSION innodb_snapshot_isolation = " on

static const struct place places[STAGES] = {
    [P_OWN] = {"postgres", NULL, NULL, false},
    [P_EVERY] = {"postgres", NULL, NULL, true},
    [P_RC] = {"postgres", "READ COMMITTED", NULL, false},
    [P_RR] = {"postgres", "REPEATABLE READ", NULL, false},
    [P_SE] = {"postgres", "SERIALIZABLE", NULL, false},
    [M_OWN] = {"mysql", NULL, NULL, false},
    [M_ALL] = {"mysql", NULL, NULL, true},
    [M_RC] = {"mysql", "READ COMMITTED", SNAPSHOTS("OFF"), false},
    [M_RR] = {"mysql", "REPEATABLE READ", SNAPSHOTS("OFF"), false},
    [M_RX] = {"mysql", "REPEATABLE READ", SNAPSHOTS("ON"), false},
    [M_SE] = {"mysql", "SERIALIZABLE", SNAPSHOTS("OFF"), false},
    [L_OWN] = {"sqlite", NULL, NULL, false},
    [L_ALL] = {"sqlite", NULL, NULL, true},
    [L_DE] = {"sqlite", "DEFERRED", NULL, false},
    [L_IM] = {"sqlite", "IMMEDIATE", NULL, false},
};

#define AT(stage) (1u << (stage))
#define FILES_OWN (AT(L_OWN) | AT(L_ALL))
#define NEWEST (AT(P_RC) | AT(M_RC) | AT(M_RR) | AT(M_SE)) /* a writer sees the newest row */
#define SNAPSHOT (AT(P_RR) | AT(P_SE) | AT(M_RX)) /* a row that changed since is a conflict */
#define ANYWHERE (AT(STAGES) - 1)
#define WAITERS (AT(P_OWN) | AT(P_EVERY) | AT(M_OWN) | AT(M_ALL) | FILES_OWN | NEWEST)
#define OLD (SNAPSHOT | AT(L_DE))

/* ---- who does what, and when */

#define ROW (AT(UPDATE) | AT(TOUCH) | AT(EXPECT) | AT(REMOVE))
#define NEW AT(INSERT)

enum deed { CHANGE, BACK, DELETE, REMAKE, LOCK, MAKE };
static const char *const deed_names[] = {
    "changes it", "changes it and back", "deletes it", "replaces it", "locks it", "makes it"};

enum moment { BEFORE, AFTER, WAITING, MOMENTS };
static const char *const moment_names[] = {"before", "after our snapshot", "while we wait"};

enum { COMMITS, ROLLS_BACK };

static const struct meeting {
    unsigned where[MOMENTS];
    unsigned ops;
    enum deed deed;
    int end;
    int want;
} meetings[] = {
    {{ANYWHERE, NEWEST, WAITERS}, ROW, CHANGE, COMMITS, ROWLOCK_STALE},
    {{ANYWHERE, 0, WAITERS}, ROW, CHANGE, ROLLS_BACK, ROWLOCK_OK},
    {{ANYWHERE, NEWEST, WAITERS}, ROW, BACK, COMMITS, ROWLOCK_OK},
    {{ANYWHERE, NEWEST, WAITERS}, ROW, DELETE, COMMITS, ROWLOCK_GONE},
    {{0, 0, WAITERS}, ROW, DELETE, ROLLS_BACK, ROWLOCK_OK},
    {{ANYWHERE, NEWEST, WAITERS}, ROW, REMAKE, COMMITS, ROWLOCK_OK},
    {{0, 0, WAITERS}, ROW, LOCK, COMMITS, ROWLOCK_OK},
    {{0, 0, FILES_OWN}, NEW, LOCK, COMMITS, ROWLOCK_OK},
    {{ANYWHERE, NEWEST, WAITERS}, NEW, MAKE, COMMITS, ROWLOCK_EXISTS},
    {{ANYWHERE, 0, WAITERS}, NEW, MAKE, ROLLS_BACK, ROWLOCK_OK},
    {{ANYWHERE, NEWEST, 0}, NEW, CHANGE, COMMITS, ROWLOCK_EXISTS},
    {{ANYWHERE, NEWEST, WAITERS}, NEW, DELETE, COMMITS, ROWLOCK_OK},
    {{0, 0, WAITERS}, NEW, DELETE, ROLLS_BACK, ROWLOCK_EXISTS},

    {{0, OLD, OLD}, ROW, CHANGE, COMMITS, ROWLOCK_CONFLICT},
    {{0, OLD, SNAPSHOT}, ROW, CHANGE, ROLLS_BACK, ROWLOCK_OK},
    /* A session that has read there does not wait to write. */
    {{0, 0, AT(L_DE)}, ROW, CHANGE, ROLLS_BACK, ROWLOCK_CONFLICT},
    {{0, OLD, SNAPSHOT}, ROW, BACK, COMMITS, ROWLOCK_CONFLICT},
    {{0, OLD, SNAPSHOT}, ROW, DELETE, COMMITS, ROWLOCK_CONFLICT},
    {{0, 0, SNAPSHOT}, ROW, DELETE, ROLLS_BACK, ROWLOCK_OK},
    {{0, OLD, SNAPSHOT}, ROW, REMAKE, COMMITS, ROWLOCK_CONFLICT},
    {{0, 0, SNAPSHOT}, ROW, LOCK, COMMITS, ROWLOCK_OK},
    {{0, OLD, SNAPSHOT}, NEW, MAKE, COMMITS, ROWLOCK_CONFLICT},
    {{0, 0, SNAPSHOT}, NEW, MAKE, ROLLS_BACK, ROWLOCK_OK},
    {{0, AT(P_RR) | AT(P_SE), 0}, NEW, DELETE, COMMITS, ROWLOCK_OK},
    {{0, AT(M_RX), 0}, NEW, DELETE, COMMITS, ROWLOCK_CONFLICT},
};

enum { FIRST = 1, OURS = 7, THEIRS = 100, MET = 2 };

struct stagecraft {
    const struct contract *c;
    enum stage stage;
    const struct meeting *m;
    enum moment moment;
    enum op op;
    size_t rows; /* 1: the row itself; 3: one before and one behind it */
    struct site s;
    rowlock_table *t;
    rowlock_value keys[3], value;
    rowlock_change changes[3];
    int result;
    bool wrote; /* the application has written something before */
    _Atomic int thread; /* of our call */
    atomic_bool done;
};

static bool is_there_at_first(const struct stagecraft *k)
{
    return k->op != INSERT || (k->m->deed != MAKE && k->m->deed != LOCK);
}

static void set_the_stage(struct stagecraft *k)
{
    site_run(&k->s, "DELETE FROM int_rows");
    site_run(&k->s, "DELETE FROM int_log");
    for (int id = 1; id <= 3; id++)
        if (id == MET ? is_there_at_first(k) : k->op != INSERT)
            site_run(&k->s, "INSERT INTO int_rows VALUES (%d, 0, %d)", id, FIRST);
    k->value = rowlock_int(OURS);
    for (size_t i = 0; i < k->rows; i++) {
        k->keys[i] = rowlock_int(k->rows == 1 ? MET : (int64_t)i + 1);
        k->changes[i] = (rowlock_change){.key = &k->keys[i], .values = &k->value, .version = FIRST};
    }
    k->wrote = false;
    k->thread = 0;
    k->done = false;
}

static void other_begins(const struct stagecraft *k)
{
    site_run(&k->s, "%s", k->c->begin);
    switch (k->m->deed) {
    case CHANGE:
    case BACK:
        site_run(&k->s, "UPDATE int_rows SET n = n + %d, version = version + 1 WHERE id = %d",
                 THEIRS, MET);
        if (k->m->deed == BACK)
            site_run(&k->s, "UPDATE int_rows SET n = n - %d, version = version - 1 WHERE id = %d",
                     THEIRS, MET);
        break;
    case LOCK:
        site_run(&k->s, "SELECT * FROM int_rows WHERE id = %d %s", MET, k->c->lock);
        break;
    default:
        if (k->m->deed != MAKE)
            site_run(&k->s, "DELETE FROM int_rows WHERE id = %d", MET);
        if (k->m->deed != DELETE)
            site_run(&k->s, "INSERT INTO int_rows VALUES (%d, 0, %d)", MET, FIRST);
    }
}

static void other_ends(const struct stagecraft *k)
{
    site_run(&k->s, k->m->end == COMMITS ? "COMMIT" : "ROLLBACK");
}

static void other_acts(const struct stagecraft *k)
{
    other_begins(k);
    other_ends(k);
}

/* The application's transaction has a snapshot, and where that does not keep all others out has written. */
static void we_begin(struct stagecraft *k)
{
    const struct place *p = &places[k->stage];
    const struct contract *c = k->c;
    if (!p->isolation)
        return;
    begin_at(c, k->s.session, p->isolation);
    raw_run(c->raw, k->s.session, "SELECT count(*) FROM int_log");
    k->wrote = c->has_server || k->moment == BEFORE;
    if (k->wrote)
        raw_run(c->raw, k->s.session, "INSERT INTO int_log VALUES ('before')");
}

static int call(void *argument)
{
    struct stagecraft *k = argument;
    k->thread = gettid();
    k->result = change_rows(k->t, k->op, k->changes, k->rows,
                            OPTIONS(change, .all_or_nothing = places[k->stage].all_or_nothing));
    k->done = true;
    return 0;
}

/* A file has no server to ask: is our thread asleep? */
static bool is_asleep(int thread)
{
    char line[300] = "";
    FILE *f = thread ? fopen(textf("/proc/self/task/%d/stat", thread), "r") : NULL;
    if (!f)
        return false;
    bool read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    char *end = strrchr(line, ')');
    return read && end && strncmp(end, ") S", 3) == 0;
}

/* InnoDB's list of waiters is made anew ten times a second at most. How many wait it counts at once:
 * one does, and our statement is being carried out. */
#define MYSQL_WAITS(schema)                                                              \
    "SELECT (SELECT variable_value FROM " schema ".global_status WHERE variable_name = " \
    "'Innodb_row_lock_current_waits') > 0 AND EXISTS (SELECT 1 FROM "                    \
    "information_schema.processlist WHERE info LIKE '%rowlock:row%int_rows%' AND id <> " \
    "connection_id())"
static const char *const mysql_waits[] = {MYSQL_WAITS("information_schema"),
                                          MYSQL_WAITS("performance_schema"), NULL};

static const char *const postgres_waits[] = {
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
    "AND query LIKE '%rowlock:row%int_rows%'",
    NULL,
};

static bool we_wait(const struct stagecraft *k, void *session)
{
    char number[100];
    if (!k->c->has_server)
        return is_asleep(k->thread);
    ask_any(k->c, session, is_mysql(k->c) ? mysql_waits : postgres_waits, number, sizeof number);
    return atoi(number) > 0;
}

static void until_we_wait(const struct stagecraft *k, void *session)
{
    if (!EVENTUALLY(k->done || we_wait(k, session)))
        raw_failed("interleave", "our statement neither waits nor ends");
}

static void meet(struct stagecraft *k)
{
    if (k->moment == BEFORE)
        other_acts(k);
    we_begin(k);
    if (k->moment == AFTER)
        other_acts(k);
    if (k->moment != WAITING) {
        call(k);
        return;
    }
    OWNED(session) void *watcher = k->c->has_server ? k->c->raw->open(k->c->url) : NULL;
    other_begins(k);
    struct helper *helper = helper_start(call, k);
    until_we_wait(k, watcher);
    if (k->m->want != ROWLOCK_CONFLICT || k->c->has_server)
        tap_ok(!k->done, "we wait for the other");
    other_ends(k);
    helper_join(helper);
}

/* ---- what has become of it */

static int64_t version_wanted(const struct stagecraft *k)
{
    bool moved = k->m->deed == CHANGE && k->m->end == COMMITS;
    switch (k->m->want) {
    case ROWLOCK_STALE:
    case ROWLOCK_EXISTS:
        return moved ? FIRST + 1 : FIRST;
    case ROWLOCK_OK:
        return k->op == REMOVE ? 0 : k->op == UPDATE || k->op == TOUCH ? FIRST + 1 : FIRST;
    default:
        return 0;
    }
}

static void each_is_told(const struct stagecraft *k)
{
    int others = ROWLOCK_OK;
    int ours = k->rows == 1 ? 0 : 1;
    if (places[k->stage].all_or_nothing && k->m->want != ROWLOCK_OK && k->op != EXPECT)
        others = ROWLOCK_UNDONE;
    if (k->m->want == ROWLOCK_CONFLICT) {
        bool none = true;
        for (size_t i = 0; i < k->rows; i++)
            none = none && k->changes[i].result != ROWLOCK_OK;
        tap_ok(none, "no row is said to be applied");
        return;
    }
    tap_is_result(k->changes[ours].result, k->m->want, "the row says so");
    tap_is_int(k->changes[ours].current, version_wanted(k), "with its version");
    if (k->rows == 3)
        tap_ok(k->changes[0].result == others && k->changes[2].result == others,
               "the others are %s", rowlock_result_name(others));
}

static bool session_runs(const struct stagecraft *k, const char *sql)
{
    char ignored[200];
    return k->c->raw->run(k->s.session, sql, ignored, sizeof ignored);
}

/* Does the application's transaction go on, with all that was written in it? As the library has said. */
static void transaction_ends(const struct stagecraft *k)
{
    bool over = error_of(k->s.db).transaction_over;
    if (k->m->want != ROWLOCK_CONFLICT)
        tap_ok(!over, "the transaction can go on");
    bool wrote = session_runs(k, "INSERT INTO int_log VALUES ('after')");
    bool committed = session_runs(k, "COMMIT");
    if (!committed)
        session_runs(k, "ROLLBACK");
    bool stands = !k->wrote || int_on(k->c, "SELECT count(*) FROM int_log WHERE w = 'before'") == 1;
    if (k->stage != L_DE || k->moment != WAITING || k->m->end == ROLLS_BACK)
        tap_is_int(wrote && committed && stands, !over, "transaction_over says the truth");
    else /* when we were told the other had not committed yet */
        tap_ok(!wrote, "the other's commit has put an end to it");
}

/* The row as the other left it, and then as we did, if it was ours to change. */
static void row_stands(const struct stagecraft *k)
{
    bool theirs = k->m->end == COMMITS, there = is_there_at_first(k);
    int n = 0, version = FIRST;
    if (theirs && k->m->deed == CHANGE)
        n = THEIRS, version = FIRST + 1;
    if (theirs && k->m->deed == DELETE)
        there = false;
    if (theirs && k->m->deed == MAKE)
        there = true;
    if (k->m->want == ROWLOCK_OK) {
        n = k->op == UPDATE || k->op == INSERT ? OURS : n;
        version += k->op == UPDATE || k->op == TOUCH;
        there = k->op == INSERT || (there && k->op != REMOVE);
    }
    site_finds(&k->s, there ? textf("%d", n * 1000 + version) : NULL, "the row is as it should be",
               "SELECT n * 1000 + version FROM int_rows WHERE id = %d", MET);
}

static void play(struct stagecraft *k)
{
    set_the_stage(k);
    meet(k);
    is_result(k->s.db, k->result, k->m->want, "%s%s: %s of %zu: another %s %s, and %s",
              places[k->stage].isolation ? places[k->stage].isolation : "our own connection",
              places[k->stage].all_or_nothing ? ", all or nothing" : "", op_names[k->op], k->rows,
              deed_names[k->m->deed], moment_names[k->moment],
              k->m->end == COMMITS ? "commits" : "rolls back");
    if (k->result == k->m->want)
        each_is_told(k);
    if (places[k->stage].isolation)
        transaction_ends(k);
    if (k->result == k->m->want)
        row_stands(k);
}

static bool open_stage(struct stagecraft *k, const struct contract *c, enum stage stage)
{
    const struct place *p = &places[stage];
    char why_not[200];
    k->c = c;
    k->stage = stage;
    k->s = p->isolation ? site_adopt(c) : site_open(c);
    if (p->setting && !c->raw->run(k->s.session, p->setting, why_not, sizeof why_not) &&
        stage == M_RX) {
        tap_skip(1, "this server has no innodb_snapshot_isolation");
        site_close(&k->s);
        return false;
    }
    k->t = must_describe(&k->s, ABOUT(.name = "int_rows", .key = NAMES("id"), .columns = NAMES("n"),
                                      .first_version = FIRST));
    return true;
}

/* A row of a file that is only expected is read, and not waited for. */
static bool is_played(const struct stagecraft *k)
{
    bool only_read = k->moment == WAITING && k->op == EXPECT && (FILES_OWN & AT(k->stage));
    return (k->m->where[k->moment] & AT(k->stage)) && (k->m->ops & AT(k->op)) && !only_read;
}

static void play_all(const struct contract *c, enum stage stage)
{
    static struct stagecraft k;
    if (!open_stage(&k, c, stage))
        return;
    for (k.moment = BEFORE; k.moment < MOMENTS; k.moment++)
        for (k.m = meetings; k.m < meetings + COUNT(meetings); k.m++)
            for (k.op = UPDATE; k.op <= REMOVE; k.op++)
                for (k.rows = 1; k.rows <= 3 && is_played(&k); k.rows += 2)
                    play(&k);
    rowlock_table_close(k.t);
    site_close(&k.s);
}

void contract_interleave(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "int_rows", "id INT PRIMARY KEY, n INT, version BIGINT NOT NULL");
    site_table(&s, "int_log", "w VARCHAR(20)");
    for (int stage = 0; stage < STAGES; stage++)
        if (strcmp(places[stage].database, c->raw->name) == 0)
            play_all(c, (enum stage)stage);
}
