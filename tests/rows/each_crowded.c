/* SPDX-License-Identifier: MIT
 *
 * Many processes on the versions of one table, on each database the same. What they were told they
 * changed is what the table holds in the end, row by row. No process has met a deadlock outside of
 * a transaction of its own.
 *
 * Sixteen change rows, and a walk goes through all of them, which is killed now and then. A process
 * that changes a row adds an amount to it and moves its version by one. It writes both down in a
 * ledger as soon as it knows that it is done. A walk that is killed can write nothing down: it counts
 * itself in a column of the row.
 *
 * Then two send batches of the same rows in opposite order, a thousand times at once. Row by row that ends in a
 * deadlock each time, as retry.c shows. */
#include "each.h"
#include "loads.h"

#include <limits.h>

/* How a process that has a connection of its own begins transactions. */
struct crowded_way {
    const char *setup; /* SQL for a new session, or NULL */
    const char *begin;
};

struct crowded {
    const char *database;
    const struct raw *raw;
    const struct crowded_way ways[3]; /* taken in turn; ends with a NULL begin */
    const char *const conflicts[4]; /* in the text of an error of the database's; ends with NULL */
    const char *prepare, *restore; /* SQL around all of it, or NULL */
    const char *begin_to_write; /* that no other can come between reading and writing */
    /* Brief, and whole: rows of the table, rounds of each process that sends batches. */
    int rows[2], rounds[2];
};

#define LEVEL "SET SESSION TRANSACTION ISOLATION LEVEL "

static struct crowded crowds[] = {
    /* A deadlock is looked for after a second by default, in which none of the others gets on. */
    {
        .database = "postgres",
        .ways = {{NULL, "BEGIN"}, {NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ"}},
        .conflicts = {"could not serialize", "deadlock detected"},
        .prepare = "ALTER ROLE CURRENT_USER SET deadlock_timeout = '20ms'",
        .restore = "ALTER ROLE CURRENT_USER RESET deadlock_timeout",
        .begin_to_write = "BEGIN",
        .rows = {10000, 100000},
        .rounds = {4, 30},
    },
    /* A deadlock, a lock timeout, and a row newer than the snapshot where the server minds that. */
    {
        .database = "mysql",
        .ways = {{LEVEL "REPEATABLE READ", "BEGIN"}, {LEVEL "READ COMMITTED", "BEGIN"}},
        .conflicts = {"1213 ", "1205 ", "1020 "},
        .begin_to_write = "BEGIN",
        .rows = {10000, 100000},
        .rounds = {4, 20},
    },
    /* Fewer rows: a file has one writer at a time, which sends them one by one. All others wait for it. */
    {
        .database = "sqlite",
        .ways = {{NULL, "BEGIN"}, {NULL, "BEGIN IMMEDIATE"}},
        .conflicts = {"database is locked"},
        .begin_to_write = "BEGIN IMMEDIATE",
        .rows = {4000, 10000},
        .rounds = {4, 15},
    },
};

enum {
    PEOPLE = 16,
    ROWS_MAX = 100000,
    HOT = 2000, /* the first rows, which are changed most */
    HOTTEST = 40,
    BATCH_LEAST = 500,
    BATCH_MOST = 1000,
    ABSENT = 5, /* rows in a batch that are not there */
    WHOLE_ATTEMPTS = 10, /* of a batch that is to be done wholly or not at all */
    ROW_ROUNDS = 10, /* for each round of those that send batches */
    WALK_AMOUNT = 1000000,
    WALK_CHUNKS = 200,
    WALK_TTL_MS = 300,
    BRIEF_KILLS = 2,
    WHOLE_KILLS = 6,
    PATIENCE = 1000, /* rounds */
    FEW = 50 /* rows of the two */
};

/* What all processes see. Versions are as a client was told last, and may be old. */
struct crowd {
    const struct crowded *how;
    const char *url;
    int rows, rounds, kills;
    int64_t began_ms;
    atomic_int odd; /* answers that none should get */
    atomic_int applied, stale, gone, undone, conflicts, victims, attempts, hindered;
    atomic_int chunks; /* that the walk has done, in all its lives */
    atomic_int gate; /* how many it may do until it is killed again */
    atomic_bool walked; /* the walk has come to an end */
    rowlock_walk_report report;
    atomic_int changes[ROWS_MAX]; /* the ledger: since the start, what the walk does left out */
    atomic_llong amounts[ROWS_MAX];
    atomic_int versions[ROWS_MAX];
    pthread_barrier_t barrier; /* of the two */
    bool inside; /* they have transactions of their own */
    int results[2][FEW]; /* of their round; each writes its own */
    int both, neither; /* changed a row */
};

enum kind { IN_PARTS, WHOLLY, INSIDE, BY_RETRY, BY_HAND };

struct person {
    struct crowd *crowd;
    int number;
    enum kind kind;
    unsigned seed;
    const struct crowded_way *way;
    void *session;
    rowlock_db *db;
    rowlock_table *table;
};

struct batch {
    size_t count;
    rowlock_value keys[BATCH_MOST], values[BATCH_MOST];
    rowlock_change changes[BATCH_MOST];
};

static int at_random(struct person *p, int below)
{
    return (int)((unsigned)rand_r(&p->seed) % (unsigned)below);
}

static void odd(struct person *p, const char *what, int result, const char *text)
{
    if (p->crowd->odd++ < 10)
        tap_note("%d: %s: %s: %s", p->number, what, rowlock_result_name(result), text);
}

/* ---- the ledger */

static void write_down(struct crowd *crowd, int64_t row, int64_t amount, int64_t version)
{
    crowd->changes[row]++;
    crowd->amounts[row] += amount;
    crowd->versions[row] = (int)version;
}

static void book(struct crowd *crowd, const struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->changes[i].result == ROWLOCK_OK) {
            write_down(crowd, b->keys[i].number, b->values[i].number, b->changes[i].current);
            crowd->applied++;
        }
}

/* ---- batches */

/* Different rows, in no order: as many as there are numbers prime to a span that ends in zeros. */
static void fill_batch(struct person *p, struct batch *b, bool with_absent)
{
    const struct crowd *crowd = p->crowd;
    int span = at_random(p, 2) ? crowd->rows : HOT;
    int row = at_random(p, span), step = 10 * at_random(p, span / 10) + 3;
    b->count = (size_t)(BATCH_LEAST + at_random(p, BATCH_MOST - BATCH_LEAST + 1));
    for (size_t i = 0; i < b->count; i++) {
        bool absent = with_absent && i < ABSENT;
        row = (row + step) % span;
        b->keys[i] = rowlock_int(absent ? ROWS_MAX + (int)i : row);
        b->values[i] = rowlock_int(1 + at_random(p, 1000));
        b->changes[i] =
            (rowlock_change){.key = &b->keys[i],
                             .values = &b->values[i],
                             .version = absent ? 1 : atomic_load(&crowd->versions[row])};
    }
}

static bool is_as_it_should_be(const rowlock_change *change, bool whole)
{
    switch (change->result) {
    case ROWLOCK_OK:
        return change->current == change->version + 1;
    case ROWLOCK_STALE:
        return change->current > 0 && change->current != change->version;
    case ROWLOCK_GONE:
        return change->key->number >= ROWS_MAX && change->current == 0;
    case ROWLOCK_UNDONE:
        return whole && change->current == change->version;
    default:
        return false;
    }
}

/* Every row is applied or named. What is stale tells how it is now. */
static void check_batch(struct person *p, struct batch *b, bool whole, int result)
{
    struct crowd *crowd = p->crowd;
    size_t good = 0;
    for (size_t i = 0; i < b->count; i++) {
        const rowlock_change *change = &b->changes[i];
        if (!is_as_it_should_be(change, whole) && crowd->odd++ < 10)
            tap_note("%d: row %lld of version %lld: %s, current %lld", p->number,
                     (long long)change->key->number, (long long)change->version,
                     rowlock_result_name(change->result), (long long)change->current);
        good += change->result == ROWLOCK_OK;
        crowd->stale += change->result == ROWLOCK_STALE;
        crowd->gone += change->result == ROWLOCK_GONE;
        crowd->undone += change->result == ROWLOCK_UNDONE;
        if (change->result == ROWLOCK_STALE)
            crowd->versions[change->key->number] = (int)change->current;
    }
    if ((result == ROWLOCK_OK) != (good == b->count) || (whole && good > 0 && good < b->count))
        odd(p, "the sum of it", result, "is not what the rows say");
}

static bool is_answer(int result)
{
    return result == ROWLOCK_OK || result == ROWLOCK_STALE || result == ROWLOCK_GONE;
}

static int send_batch(struct person *p, struct batch *b, bool whole)
{
    int result = rowlock_update(
        p->table, b->changes, b->count,
        OPTIONS(change, .all_or_nothing = whole, .chunk = at_random(p, 4) == 0 ? 300 : 0));
    if (is_answer(result))
        check_batch(p, b, whole, result);
    return result;
}

/* What can be applied is. */
static void change_in_parts(struct person *p, struct batch *b)
{
    fill_batch(p, b, true);
    int result = send_batch(p, b, false);
    if (is_answer(result))
        book(p->crowd, b);
    else
        odd(p, "in parts", result, why(p->db));
}

/* All of it or nothing, again with the versions that were told until it fits. */
static void change_wholly(struct person *p, struct batch *b)
{
    int result = ROWLOCK_STALE;
    fill_batch(p, b, at_random(p, 8) == 0);
    for (int i = 0; i < WHOLE_ATTEMPTS && result == ROWLOCK_STALE; i++) {
        result = send_batch(p, b, true);
        for (size_t k = 0; k < b->count && result == ROWLOCK_STALE; k++)
            if (b->changes[k].result == ROWLOCK_STALE)
                b->changes[k].version = b->changes[k].current;
    }
    p->crowd->hindered += result != ROWLOCK_OK;
    if (result == ROWLOCK_OK)
        book(p->crowd, b);
    else if (!is_answer(result))
        odd(p, "wholly", result, why(p->db));
}

/* ---- within transactions of its own */

static bool is_known(const struct crowd *crowd, const char *text)
{
    for (const char *const *known = crowd->how->conflicts; *known; known++)
        if (strstr(text, *known))
            return true;
    return false;
}

/* False: another was in the way. All else is odd. */
static bool say(struct person *p, const char *sql)
{
    char text[300] = "";
    if (p->crowd->how->raw->run(p->session, sql, text, sizeof text))
        return true;
    if (is_known(p->crowd, text))
        p->crowd->victims++;
    else
        odd(p, sql, ROWLOCK_ESERVER, text);
    return false;
}

static void roll_back(struct person *p)
{
    char ignored[300]; /* the database may have done so already */
    p->crowd->how->raw->run(p->session, "ROLLBACK", ignored, sizeof ignored);
}

/* One batch, or two, whose orders together are none: then the transaction may be a deadlock's victim. */
static void change_inside(struct person *p, struct batch b[2])
{
    int count = 1 + (at_random(p, 4) == 0), result = ROWLOCK_OK, done = 0;
    if (!say(p, p->way->begin)) {
        roll_back(p);
        return;
    }
    for (; done < count; done++) {
        fill_batch(p, &b[done], at_random(p, 2));
        result = send_batch(p, &b[done], at_random(p, 2));
        if (!is_answer(result))
            break;
    }
    p->crowd->conflicts += result == ROWLOCK_CONFLICT;
    if (!is_answer(result) && result != ROWLOCK_CONFLICT)
        odd(p, "inside", result, why(p->db));
    bool committed = is_answer(result) && at_random(p, 6) > 0 && say(p, "COMMIT");
    if (!committed)
        roll_back(p);
    for (int i = 0; i < done && committed; i++)
        book(p->crowd, &b[i]);
}

/* ---- by SQL that knows of versions, and nothing of rowlock */

/* The version is moved first: then no other can come between reading and writing. */
static bool change_one_by_hand(struct person *p, int row, long long amount)
{
    const struct raw *raw = p->crowd->how->raw;
    if (!say(p, textf("UPDATE crowded SET version = version + 1 WHERE id = %d", row)))
        return false;
    amount += raw_int(raw, p->session, "SELECT amount FROM crowded WHERE id = %d", row);
    return say(p, textf("UPDATE crowded SET amount = %lld WHERE id = %d", amount, row));
}

static void change_by_hand(struct person *p)
{
    int rows[4], count = 1 + at_random(p, 4), span = at_random(p, 2) ? p->crowd->rows : HOTTEST;
    long long amount = 1 + at_random(p, 1000);
    rows[0] = at_random(p, span - 8);
    for (int i = 1; i < count; i++)
        rows[i] = rows[i - 1] + 1 + at_random(p, 2);
    bool good = say(p, p->crowd->how->begin_to_write);
    for (int i = 0; i < count && good; i++)
        good = change_one_by_hand(p, rows[i], amount);
    if (good && at_random(p, 20) == 0)
        usleep(2000);
    good = good && at_random(p, 8) > 0 && say(p, "COMMIT");
    if (!good)
        roll_back(p);
    for (int i = 0; i < count && good; i++) {
        write_down(p->crowd, rows[i], amount, atomic_load(&p->crowd->versions[rows[i]]) + 1);
        p->crowd->applied++;
    }
}

struct sum {
    struct person *p;
    int rows[2];
    int64_t amount;
    rowlock_change changes[2];
};

/* Written are sums, not differences: a client that works with an old one loses what another has added. */
static int add_up(void *context, const rowlock_attempt *attempt)
{
    struct sum *s = context;
    rowlock_value keys[2], values[2];
    for (int i = 0; i < 2; i++) {
        rowlock_row row = ROWLOCK_ROW_INIT;
        keys[i] = rowlock_int(s->rows[i]);
        int result = rowlock_read(s->p->table, &keys[i], attempt->lock, &row);
        if (result != ROWLOCK_OK)
            return result;
        values[i] = rowlock_int(row.values[0].number + s->amount);
        s->changes[i] =
            (rowlock_change){.key = &keys[i], .values = &values[i], .version = row.version};
    }
    return rowlock_update(s->p->table, s->changes, 2, NULL);
}

static void change_by_retry(struct person *p)
{
    rowlock_retry_report report = ROWLOCK_RETRY_REPORT_INIT;
    struct sum s = {.p = p, .amount = 1 + at_random(p, 1000)};
    s.rows[0] = at_random(p, HOTTEST);
    s.rows[1] = (s.rows[0] + 1 + at_random(p, HOTTEST - 1)) % HOTTEST;
    int result = rowlock_retry(p->db, add_up, &s,
                               OPTIONS(retry, .attempts = 1000, .deadline_ms = 100000), &report);
    p->crowd->attempts += report.attempts;
    if (result != ROWLOCK_OK)
        odd(p, "retry", result, why(p->db));
    for (int i = 0; i < 2 && result == ROWLOCK_OK; i++) {
        write_down(p->crowd, s.rows[i], s.amount, s.changes[i].current);
        p->crowd->applied++;
    }
}

/* ---- a person's life */

static void describe(struct person *p, const char *const *read, const char *set)
{
    static const char *const key[] = {"id", NULL};
    if (open_table(p->db, ABOUT(.name = "crowded", .key = key, .columns = read, .set = set),
                   &p->table) != ROWLOCK_OK)
        raw_failed("table", why(p->db));
}

/* A row may be changed by all the others first. */
static const rowlock_db_options patient = {.size = sizeof patient, .statement_timeout_ms = 600000};

static void come_in(struct person *p)
{
    const struct raw *raw = p->crowd->how->raw;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    enum kind kind = p->kind;
    if (kind == BY_HAND || kind == INSIDE) {
        p->session = raw->open(p->crowd->url);
        if (p->way->setup)
            raw_run(raw, p->session, "%s", p->way->setup);
    }
    if (kind == BY_HAND)
        return;
    if (kind != INSIDE)
        p->db = must_open_with(p->crowd->url, &patient);
    else if (raw->adopt(&p->db, p->session, &patient, &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    if (kind == BY_RETRY)
        describe(p, (const char *const[]){"amount", NULL}, NULL);
    else
        describe(p, NULL, "amount = amount + ?");
}

static void go_home(struct person *p)
{
    rowlock_table_close(p->table);
    rowlock_db_close(p->db);
    if (p->session)
        p->crowd->how->raw->close(p->session);
}

static void take_turn(struct person *p)
{
    static struct batch batches[2];
    switch (p->kind) {
    case IN_PARTS:
        change_in_parts(p, &batches[0]);
        break;
    case WHOLLY:
        change_wholly(p, &batches[0]);
        break;
    case INSIDE:
        change_inside(p, batches);
        break;
    default:
        for (int i = 0; i < ROW_ROUNDS; i++)
            (p->kind == BY_HAND ? change_by_hand : change_by_retry)(p);
    }
}

/* All rounds, and then until rows were named in each way. */
static bool goes_on(const struct crowd *crowd, int round)
{
    bool named = crowd->stale > 0 && crowd->gone > 0 && crowd->undone > 0;
    return crowd->odd == 0 && (round < crowd->rounds || !load_has_lasted(crowd->began_ms, 0) ||
                               (!named && round < PATIENCE));
}

static int live(void *argument)
{
    struct person *p = argument;
    child_of_load();
    const struct crowded_way *ways = p->crowd->how->ways;
    p->kind = p->number < 4 ? BY_HAND : (enum kind)(p->number % 4);
    p->way = ways;
    for (int i = 0; i < p->number / 4; i++)
        p->way = p->way[1].begin ? p->way + 1 : ways;
    come_in(p);
    for (int round = 0; goes_on(p->crowd, round); round++)
        take_turn(p);
    go_home(p);
    return 0;
}

/* ---- the walk */

enum { AMOUNT, WALKED };

static int walk_by(void *context, const rowlock_row *row, rowlock_value *values)
{
    values[AMOUNT] = rowlock_int(row->values[AMOUNT].number + WALK_AMOUNT);
    values[WALKED] = rowlock_int(row->values[WALKED].number + 1);
    return 0;
}

static void count_chunk(void *context, const rowlock_walk_report *so_far)
{
    struct crowd *crowd = context;
    crowd->chunks++;
    while (crowd->chunks >= crowd->gate)
        sleep_ms(1);
}

static int walk(void *argument)
{
    struct person *p = argument;
    struct crowd *crowd = p->crowd;
    p->db = must_open_with(crowd->url, &patient);
    describe(p, (const char *const[]){"amount", "walked", NULL}, NULL);
    /* The walk after a dead one waits until its lease is over. */
    int result = walk_table(p->table,
                            WALK(.name = "crowded", .each = walk_by, .progress = count_chunk,
                                 .context = crowd, .chunk = crowd->rows / WALK_CHUNKS,
                                 .ttl_ms = WALK_TTL_MS, .wait_ms = 60000),
                            &crowd->report);
    if (result != ROWLOCK_OK)
        odd(p, "walk", result, why(p->db));
    crowd->walked = true;
    go_home(p);
    return result == ROWLOCK_OK ? 0 : 1;
}

static struct {
    struct person people[PEOPLE], walker;
    pid_t pids[PEOPLE], walker_pid;
    int kills, ended_badly;
} all;

/* Each time some chunks later than the time before, and at any moment of a chunk. */
static void kill_walk(struct crowd *crowd, unsigned *seed)
{
    for (int next = 5; all.kills < crowd->kills && crowd->odd == 0;
         next += WALK_CHUNKS / crowd->kills - 5) {
        crowd->gate = next + 8; /* a fast one would be through before it was killed so often */
        while (crowd->chunks < next && !crowd->walked && crowd->odd == 0)
            sleep_ms(1);
        usleep((useconds_t)(rand_r(seed) % 20000));
        kill(all.walker_pid, SIGKILL);
        bool killed = child_join(all.walker_pid) == 256 + SIGKILL;
        all.walker_pid = 0;
        all.kills += killed;
        if (!killed)
            break;
        all.walker_pid = child_start(walk, &all.walker);
    }
    crowd->gate = INT_MAX;
}

static void run_all(struct crowd *crowd, unsigned seed)
{
    for (int i = 0; i < PEOPLE; i++) {
        all.people[i] =
            (struct person){.crowd = crowd, .number = i, .seed = (unsigned)rand_r(&seed)};
        all.pids[i] = child_start(live, &all.people[i]);
    }
    all.walker = (struct person){.crowd = crowd, .number = PEOPLE};
    crowd->gate = WALK_CHUNKS;
    all.walker_pid = child_start(walk, &all.walker);
    kill_walk(crowd, &seed);
    for (int i = 0; i < PEOPLE; i++) {
        all.ended_badly += child_join(all.pids[i]) != 0;
        all.pids[i] = 0;
    }
    if (all.walker_pid > 0)
        all.ended_badly += child_join(all.walker_pid) != 0;
    all.walker_pid = 0;
}

/* ---- the books */

/* As the ledger has it; which is empty at first. */
static void store(const struct crowd *crowd, const char *table)
{
    enum { AT_ONCE = 1000, CAP = AT_ONCE * 60 };
    const struct raw *raw = crowd->how->raw;
    OWNED(session) void *session = raw->open(crowd->url);
    OWNED(text) char *list = malloc(CAP);
    if (!list)
        abort();
    raw_run(raw, session, "DROP TABLE IF EXISTS %s", table);
    raw_run(raw, session,
            "CREATE TABLE %s (id INTEGER NOT NULL PRIMARY KEY, amount BIGINT NOT NULL, "
            "walked INTEGER NOT NULL, version BIGINT NOT NULL)",
            table);
    raw_run(raw, session, "BEGIN");
    for (int row = 0; row < crowd->rows; row += AT_ONCE) {
        int used = 0;
        for (int i = row; i < row + AT_ONCE && i < crowd->rows; i++)
            used += snprintf(list + used, (size_t)(CAP - used), "%s(%d, %lld, 0, %d)",
                             i > row ? ", " : "", i, (long long)crowd->amounts[i],
                             1 + crowd->changes[i]);
        raw_run(raw, session, "INSERT INTO %s VALUES %s", table, list);
    }
    raw_run(raw, session, "COMMIT");
}

static int wrong_rows(const struct crowd *crowd, const char *what)
{
    return (int)db_int(crowd->how->raw, crowd->url,
                       "SELECT COUNT(*) FROM crowded c JOIN crowded_ledger l ON l.id = c.id "
                       "WHERE %s",
                       what);
}

static const char wrong_amount[] = "c.amount <> l.amount + c.walked * 1000000";
static const char wrong_version[] = "c.version <> l.version + c.walked";

static void judge(const struct crowd *crowd)
{
    store(crowd, "crowded_ledger");
    tap_is_int(db_int(crowd->how->raw, crowd->url, "SELECT COUNT(*) FROM crowded"), crowd->rows,
               "%d rows are there", crowd->rows);
    tap_is_int(wrong_rows(crowd, wrong_amount), 0,
               "every row holds the sum of what was applied to it: nothing is lost, nothing twice");
    tap_is_int(wrong_rows(crowd, wrong_version), 0,
               "and its version has moved by one with each of these changes");
    tap_is_int(wrong_rows(crowd, "c.walked <> 1"), 0, "the walk has changed every row once");
    /* So that the above is known to show something. */
    db_exec(crowd->how->raw, crowd->url, "UPDATE crowded SET amount = amount - 1 WHERE id = 17");
    db_exec(crowd->how->raw, crowd->url, "UPDATE crowded SET version = version + 1 WHERE id < 3");
    tap_ok(wrong_rows(crowd, wrong_amount) == 1 && wrong_rows(crowd, wrong_version) == 3,
           "what is not in the ledger would be found");
}

static void judge_people(const struct crowd *crowd)
{
    tap_is_int(crowd->odd, 0,
               "no client is told of a deadlock, or of anything else that it should not be");
    tap_is_int(all.ended_badly, 0, "each client that is not killed comes to its end");
    tap_is_int(all.kills, crowd->kills, "the walk was killed %d times", crowd->kills);
    tap_ok(crowd->report.resumed == 1, "and has gone on where it was");
    tap_is_int(crowd->report.rows, crowd->rows, "until it was through");
    tap_is_int(crowd->report.written, crowd->rows, "and counts every row as written");
    tap_is_int(crowd->report.failed, 0, "and none as failed");
    tap_ok(crowd->stale > 0 && crowd->gone > 0 && crowd->undone > 0,
           "rows were named as stale (%d), gone (%d), undone (%d)", crowd->stale, crowd->gone,
           crowd->undone);
    tap_note("%d changes applied; %d batches hindered, %d transactions in conflict, %d victims "
             "among those by hand, %d attempts for %d sums or more; the walk met %lld conflicts",
             crowd->applied, crowd->hindered, crowd->conflicts, crowd->victims, crowd->attempts,
             crowd->rounds * ROW_ROUNDS * 3, (long long)crowd->report.conflicts);
}

static struct crowd *new_crowd(const struct crowded *how, const char *url, int rows, int rounds)
{
    struct crowd *crowd = load_memory(sizeof *crowd);
    crowd->how = how;
    crowd->url = url;
    crowd->rows = rows;
    crowd->rounds = rounds;
    crowd->report = (rowlock_walk_report)ROWLOCK_WALK_REPORT_INIT;
    for (int i = 0; i < crowd->rows; i++)
        crowd->versions[i] = 1;
    return crowd;
}

static void run_crowd(const struct crowded *how, const char *url)
{
    unsigned seed = load_seed();
    int rows = load_count(how->rows[0], how->rows[1], how->rows[0]);
    int rounds = load_count(how->rounds[0], how->rounds[1], 3);
    struct crowd *crowd = new_crowd(how, url, rows, rounds);
    crowd->began_ms = clock_ms();
    crowd->kills = load_count(BRIEF_KILLS, WHOLE_KILLS, BRIEF_KILLS);
    store(crowd, "crowded");
    run_all(crowd, seed);
    judge_people(crowd);
    judge(crowd);
    tap_note("%d rows, %d people: %lld ms", crowd->rows, PEOPLE,
             (long long)(clock_ms() - crowd->began_ms));
    db_exec(how->raw, url, "DROP TABLE crowded");
    db_exec(how->raw, url, "DROP TABLE crowded_ledger");
}

/* ---- two in opposite order */

/* One begins with the first row, the other with the last. */
static void send_opposite(struct person *p, int64_t version)
{
    struct crowd *crowd = p->crowd;
    rowlock_value keys[FEW], amount = rowlock_int(1);
    rowlock_change changes[FEW];
    for (int i = 0; i < FEW; i++) {
        keys[i] = rowlock_int(p->number == 0 ? i : FEW - 1 - i);
        changes[i] = (rowlock_change){.key = &keys[i], .values = &amount, .version = version};
    }
    if (crowd->inside)
        raw_run(crowd->how->raw, p->session, "%s", crowd->how->begin_to_write);
    int result = rowlock_update(p->table, changes, FEW, NULL);
    if (crowd->inside)
        raw_run(crowd->how->raw, p->session, "COMMIT");
    if (result != ROWLOCK_OK && result != ROWLOCK_STALE)
        odd(p, "opposite", result, why(p->db));
    for (int i = 0; i < FEW; i++)
        crowd->results[p->number][changes[i].key->number] = changes[i].result;
}

static int oppose(void *argument)
{
    struct person *p = argument;
    struct crowd *crowd = p->crowd;
    come_in(p);
    for (int round = 0; round < crowd->rounds; round++) {
        pthread_barrier_wait(&crowd->barrier);
        send_opposite(p, 1 + round);
        pthread_barrier_wait(&crowd->barrier);
        for (int i = 0; i < FEW && p->number == 0; i++) {
            bool one = crowd->results[0][i] == ROWLOCK_OK,
                 other = crowd->results[1][i] == ROWLOCK_OK;
            crowd->both += one && other;
            crowd->neither += !one && !other;
        }
    }
    go_home(p);
    return 0;
}

static void run_two(const struct crowded *how, const char *url, bool inside, int rounds)
{
    static const struct crowded_way as_it_is;
    const char *who = inside ? "in transactions of their own" : "in opposite order";
    struct crowd *crowd = new_crowd(how, url, FEW, rounds);
    struct person two[2];
    pid_t pids[2];
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&crowd->barrier, &shared, 2);
    crowd->inside = inside;
    store(crowd, "crowded");
    for (int i = 0; i < 2; i++) {
        two[i] = (struct person){
            .crowd = crowd, .number = i, .kind = inside ? INSIDE : IN_PARTS, .way = &as_it_is};
        pids[i] = child_start(oppose, &two[i]);
    }
    tap_is_int(child_join(pids[0]) + child_join(pids[1]), 0,
               "two send the same rows %s, %d times at once", who, crowd->rounds);
    tap_is_int(crowd->odd, 0, "%s: neither is told of a deadlock", who);
    tap_is_int(crowd->both, 0, "%s: no row is changed by both", who);
    tap_is_int(crowd->neither, 0, "%s: none by neither", who);
    tap_is_int(db_int(how->raw, url,
                      "SELECT COUNT(*) FROM crowded WHERE version = %d AND amount = %d",
                      1 + crowd->rounds, crowd->rounds),
               FEW, "%s: each row was changed once in every round", who);
    db_exec(how->raw, url, "DROP TABLE crowded");
}

static int run(const struct raw *raw, const char *url)
{
    struct crowded *how = crowds;
    while (strcmp(how->database, raw->name) != 0)
        how++;
    how->raw = raw;
    must_install(url);
    db_exec(how->raw, url, "DELETE FROM rowlock_walks WHERE name = 'crowded'");
    if (how->prepare)
        db_exec(how->raw, url, "%s", how->prepare);
    run_crowd(how, url);
    run_two(how, url, false, load_count(100, 1000, 20));
    run_two(how, url, true, load_count(40, 200, 20));
    if (how->restore)
        db_exec(how->raw, url, "%s", how->restore);
    return tap_done();
}

EACH_MAIN(run)
