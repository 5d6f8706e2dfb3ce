/* SPDX-License-Identifier: MIT
 * What a thread of a client does with rows under versions, once keys and walks. Four sentences are
 * proven when all is over:
 *   - A transfer between two accounts is done exactly once if its client was told OK, and not at all
 *     if it was told something else but EUNCERTAIN. Each one leaves a row in the ledger.
 *   - A counter has gone up as often as clients were told OK, and at most once more for each of its
 *     changes that is EUNCERTAIN.
 *   - A key's work is done once, however many clients claim it.
 *   - Walks that went to their end have written each row equally often. */
#include "simulate.h"

enum { FUNDS = 1000, WORKS_MOST = 1 << 22, ROWS_MOST = 64, BATCH_MOST = 10, CHUNK = 7 };

enum outcome { UNKNOWN, DONE, UNDONE };
/* Of each work by its number. A client that was killed was not told. */
static unsigned char outcomes[WORKS_MOST];
static int works;
/* How often a counter went up: surely, and perhaps. */
static int64_t up[ROWS_MOST + 1], perhaps[ROWS_MOST + 1];

struct thread {
    struct client *client;
    rowlock_db *db;
    rowlock_table *accounts, *ledger, *counters, *counted, *walked, *posts;
    /* Of the transfer or of the key's work that is under way. */
    int number, from, to, key;
    rowlock_once *once;
};

static const struct place {
    size_t at;
    const char *name;
    rowlock_table_options options;
} places[] = {
    {offsetof(struct thread, accounts),
     "accounts",
     {.columns = (const char *const[]){"balance", NULL}}},
    {offsetof(struct thread, ledger),
     "ledger",
     {.columns = (const char *const[]){"origin", "target", "amount", NULL}}},
    {offsetof(struct thread, counters), "counters", {.set = "n = n + ?"}},
    {offsetof(struct thread, counted), "counters", {.columns = (const char *const[]){"n", NULL}}},
    {offsetof(struct thread, walked), "counters", {.columns = (const char *const[]){"w", NULL}}},
    {offsetof(struct thread, posts), "posts", {.columns = (const char *const[]){"k", NULL}}},
};
enum { PLACES = sizeof places / sizeof places[0] };

static rowlock_table **table_of(struct thread *t, int place)
{
    return (rowlock_table **)(void *)((char *)t + places[place].at);
}

void rows_install(void)
{
    static const char *const tables[] = {
        "accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, version INTEGER NOT NULL)",
        "counters (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, w INTEGER NOT NULL, version INTEGER "
        "NOT NULL)",
        "ledger (id INTEGER PRIMARY KEY, origin INTEGER, target INTEGER, amount INTEGER, version "
        "INTEGER NOT NULL)",
        "posts (id INTEGER PRIMARY KEY, k INTEGER, version INTEGER NOT NULL)"};
    sim_names = 2 + sim_names % (ROWS_MOST - 1);
    for (int i = 0; i < 4; i++)
        network_sql(0, "CREATE TABLE %s", tables[i]);
    for (int id = 1; id <= sim_names; id++) {
        network_sql(0, "INSERT INTO accounts VALUES (%d, %d, 1)", id, FUNDS);
        network_sql(0, "INSERT INTO counters VALUES (%d, 0, 0, 1)", id);
    }
}

static void expect(const struct thread *t, const char *call, int result, bool fine)
{
    tell(t->client->process.number, call, NULL, t->number, result);
    sim_expect(t->client, t->db, call, NULL, result, fine);
    judge_grants += result == ROWLOCK_OK;
}

static void close_handles(struct thread *t)
{
    for (int i = 0; i < PLACES; i++)
        rowlock_table_close(*table_of(t, i));
    rowlock_db_close(t->db);
    *t = (struct thread){.client = t->client};
}

static bool open_handles(struct thread *t)
{
    static const char *const key[] = {"id", NULL};
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.pool = t->client->pool;
    int result = rowlock_db_open(options.pool ? NULL : sim_url, &options, &t->db, NULL);
    for (int i = 0; i < PLACES && result == ROWLOCK_OK; i++) {
        rowlock_table_options of_table = places[i].options;
        of_table.size = sizeof of_table;
        result = rowlock_table_open(t->db, places[i].name, key, &of_table, table_of(t, i));
    }
    if (result == ROWLOCK_OK)
        return true;
    sim_expect(t->client, t->db, "opening", NULL, result, false);
    close_handles(t);
    return false;
}

/* ---- a transfer */

/* A number that no work had before. */
static int new_work(void)
{
    if (++works == WORKS_MOST)
        violation("there are too many works");
    return works;
}

static void note_outcome(const struct thread *t, int result)
{
    if (result != ROWLOCK_EUNCERTAIN)
        outcomes[t->number] = result == ROWLOCK_OK ? DONE : UNDONE;
}

static int transfer(void *context, const rowlock_attempt *attempt)
{
    struct thread *t = context;
    const rowlock_value keys[] = {rowlock_int(t->from), rowlock_int(t->to)};
    const int64_t amount = 1 + t->number % 50;
    rowlock_value balances[2];
    rowlock_change changes[2] = {{.key = &keys[0], .values = &balances[0]},
                                 {.key = &keys[1], .values = &balances[1]}};
    for (int i = 0; i < 2; i++) {
        rowlock_row row = ROWLOCK_ROW_INIT;
        int result = rowlock_read(t->accounts, &keys[i], attempt->lock, &row);
        if (result != ROWLOCK_OK)
            return result;
        balances[i] = rowlock_int(row.values[0].number + (i ? amount : -amount));
        changes[i].version = row.version;
    }
    int result = rowlock_update(t->accounts, changes, 2, NULL);
    if (result != ROWLOCK_OK)
        return result;
    const rowlock_value number = rowlock_int(t->number);
    const rowlock_value values[] = {keys[0], keys[1], rowlock_int(amount)};
    rowlock_change entry = {.key = &number, .values = values};
    return rowlock_insert(t->ledger, &entry, 1, NULL);
}

static int make_transfer(struct thread *t)
{
    t->number = new_work();
    t->from = 1 + (int)sim_random(sim_names);
    t->to = 1 + (t->from + (int)sim_random(sim_names - 1)) % sim_names;
    int result = rowlock_retry(t->db, transfer, t, NULL, NULL);
    note_outcome(t, result);
    expect(t, "transfers", result,
           result == ROWLOCK_STALE || result == ROWLOCK_CONFLICT || !result);
    return result;
}

/* ---- many rows at once */

struct count {
    rowlock_change changes[BATCH_MOST];
    rowlock_value values[BATCH_MOST];
};

static int keep_count(void *context, size_t index, const rowlock_row *row)
{
    struct count *c = context;
    c->changes[index].version = row ? row->version : 0;
    c->values[index] = rowlock_int(row ? row->values[0].number + 1 : 1);
    return 0;
}

/* Adds one to what is there, or writes one more than it has read. */
static int count_up(struct thread *t)
{
    struct count c;
    rowlock_value keys[BATCH_MOST], one = rowlock_int(1);
    rowlock_change *changes = c.changes;
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    int count = 1 + (int)sim_random(sim_names < BATCH_MOST ? sim_names : BATCH_MOST);
    int first = (int)sim_random(sim_names);
    bool adds = sim_once_in(2);
    for (int i = 0; i < count; i++) {
        keys[i] = rowlock_int(1 + (first + i) % sim_names);
        changes[i] = (rowlock_change){.key = &keys[i], .values = adds ? &one : &c.values[i]};
    }
    int result = rowlock_read_many(t->counted, keys, (size_t)count, 0, keep_count, &c);
    expect(t, "reads", result, !result);
    if (result != ROWLOCK_OK)
        return result;
    options.all_or_nothing = sim_once_in(2);
    options.chunk = 1 + (int)sim_random(BATCH_MOST);
    sim_sleep(sim_spread(10, 10000));
    for (int i = 0; i < count; i++)
        perhaps[keys[i].number]++;
    result = rowlock_update(adds ? t->counters : t->counted, changes, (size_t)count, &options);
    for (int i = 0; i < count; i++) {
        perhaps[keys[i].number] -= changes[i].result != ROWLOCK_EUNCERTAIN;
        up[keys[i].number] += changes[i].result == ROWLOCK_OK;
    }
    expect(t, "counts up", result,
           result == ROWLOCK_STALE || result == ROWLOCK_CONFLICT || !result);
    return result;
}

/* ---- a walk */

static int write_once(void *context, const rowlock_row *row, rowlock_value *values)
{
    values[0].number++;
    return 0;
}

static int walk(struct thread *t)
{
    rowlock_walk_options options = ROWLOCK_WALK_OPTIONS_INIT;
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    options.chunk = 1 + (int)sim_random(CHUNK);
    options.ttl_ms = sim_spread(500, 20000);
    options.wait_ms = sim_spread(1, 30000);
    int result = rowlock_walk(t->walked, "raise", write_once, NULL, &options, &report);
    expect(t, "walks", result,
           result == ROWLOCK_BUSY || result == ROWLOCK_TIMEOUT || result == ROWLOCK_LOST ||
               result == ROWLOCK_CONFLICT || !result);
    if (result == ROWLOCK_OK && report.failed > 0)
        violation("client %d: a walk could not write %" PRId64 " rows", t->client->process.number,
                  report.failed);
    return result;
}

/* ---- the work of a key */

static int post(void *context, const rowlock_attempt *attempt)
{
    struct thread *t = context;
    const rowlock_value number = rowlock_int(t->number), key = rowlock_int(t->key);
    rowlock_change entry = {.key = &number, .values = &key};
    int result = rowlock_insert(t->posts, &entry, 1, NULL);
    return result == ROWLOCK_OK ? rowlock_once_complete(t->once, t->db, "done", 4) : result;
}

/* Its claim may be over before the work is done. */
static int do_once(struct thread *t)
{
    static int keys;
    char key[40];
    rowlock_once_options options = ROWLOCK_ONCE_OPTIONS_INIT;
    keys += sim_once_in(4);
    t->key = keys - (int)sim_random(sim_once_in(8) ? keys + 1 : 8);
    snprintf(key, sizeof key, "key-%d", t->key);
    options.fingerprint = key;
    options.ttl_ms = sim_spread(100, 60000);
    int result = rowlock_once_claim(t->db, key, &options, &t->once);
    expect(t, "claims", result, result == ROWLOCK_DONE || result == ROWLOCK_BUSY || !result);
    if (result == ROWLOCK_OK) {
        sim_sleep(sim_spread(10, SECOND));
        t->number = new_work();
        result = rowlock_retry(t->db, post, t, NULL, NULL);
        note_outcome(t, result);
        expect(t, "posts", result, result == ROWLOCK_LOST || result == ROWLOCK_CONFLICT || !result);
        if (result < 0 && sim_once_in(2)) {
            result = rowlock_once_abandon(t->once, 0, NULL, 0);
            expect(t, "abandons", result, !result);
        }
    }
    rowlock_once_close(t->once);
    t->once = NULL;
    return result;
}

/* ---- the whole */

void *rows_live(void *client)
{
    struct thread *t = calloc(1, sizeof *t);
    bool served = false;
    t->client = client;
    while (!served) {
        if (!open_handles(t)) {
            sim_sleep(sim_spread(1000, SECOND));
            continue;
        }
        for (int i = (int)sim_random(20); i >= 0 && !served; i--) {
            int act = sim_calm ? 0 : (int)sim_random(40);
            int result = act == 39   ? walk(t)
                         : act >= 30 ? do_once(t)
                         : act >= 15 ? count_up(t)
                                     : make_transfer(t);
            served = sim_calm && act < 15 && result == ROWLOCK_OK;
            sim_sleep(sim_spread(10, 20000));
        }
        close_handles(t);
    }
    sim_ends(t->client);
    free(t);
    return NULL;
}

static void must_be_none(const char *sql, const char *what)
{
    int64_t count = network_sql(0, "%s", sql);
    if (count > 0)
        violation("%" PRId64 " %s", count, what);
}

/* A walk that was killed goes on to its end. */
void *rows_end_walk(void *ended)
{
    static struct client last;
    struct thread t = {.client = &last};
    while (!open_handles(&t) || walk(&t) != ROWLOCK_OK)
        ;
    close_handles(&t);
    *(bool *)ended = true;
    return NULL;
}

void rows_judge(void)
{
    must_be_none("SELECT count(DISTINCT w) - 1 FROM counters", "rows were walked more often");
    must_be_none("SELECT count(*) - count(DISTINCT k) FROM posts", "keys were done twice");
    must_be_none("SELECT count(*) FROM accounts a LEFT JOIN (SELECT id, sum(n) AS n FROM (SELECT "
                 "target AS id, amount AS n FROM ledger UNION ALL SELECT origin, -amount FROM "
                 "ledger) GROUP BY id) l ON l.id = a.id WHERE balance <> 1000 + coalesce(n, 0)",
                 "accounts differ from the ledger");
    for (int i = 1; i <= works; i++) {
        int64_t found = network_sql(0,
                                    "SELECT (SELECT count(*) FROM ledger WHERE id = %d) + "
                                    "(SELECT count(*) FROM posts WHERE id = %d)",
                                    i, i);
        if ((outcomes[i] == DONE && !found) || (outcomes[i] == UNDONE && found))
            violation("work %d was told %s, and the tables say otherwise", i,
                      outcomes[i] == DONE ? "done" : "undone");
    }
    for (int id = 1; id <= sim_names; id++) {
        int64_t n = network_sql(0, "SELECT n FROM counters WHERE id = %d", id);
        if (n < up[id] || n > up[id] + perhaps[id])
            violation("counter %d is %" PRId64 ", and should be %" PRId64 " to %" PRId64, id, n,
                      up[id], up[id] + perhaps[id]);
    }
}
