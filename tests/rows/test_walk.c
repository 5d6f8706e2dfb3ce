/* SPDX-License-Identifier: MIT
 *
 * Walks through a table of a few rows that stands here: what is sent in which order, checkpoints that
 * another table has left, and answers that fail at an exact point. Real tables are in walk.c, requests lost
 * on a real network in served_lost_rows.c, memory in memory_rows.c.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

/* ---- a table, and the checkpoint of one walk; both as they are, and as they were when the transaction and
 * the savepoint in it began */

enum { ROWS = 7, KEYS_MAX = 900 };

/* What a position begins with: of which table it is. */
#define HEAD "\"home\".\"prices\" (\"id\")\n"

struct tables {
    struct {
        bool there;
        int64_t n, version;
    } row[ROWS + 1]; /* from 1 on */
    bool begun;
    int64_t numbers[6]; /* step, walked, written, untouched, conflicts, failed */
    char position[KEYS_MAX], pending[KEYS_MAX];
};

static struct {
    struct tables now, begin, save;
    bool in_tx;
    int64_t meddle; /* with this row, after it was read */
    bool remove; /* that is what is done to it */
    int undone_commit; /* the so-manieth COMMIT is none */
} world;

static void give_cells(struct rlk_query *query, int64_t id)
{
    const rowlock_value cells[] = {rowlock_int(id), rowlock_int(world.now.row[id].n),
                                   rowlock_int(world.now.row[id].version)};
    query->each(query->context, cells, 3);
}

static int64_t after_of(const struct rlk_query *query)
{
    return query->count > 1 ? query->values[0].number : 0;
}

static void meddle(void)
{
    int64_t id = world.meddle;
    world.meddle = 0;
    if (id == 0)
        return;
    world.now.row[id].there = !world.remove;
    world.now.row[id].n += 100;
    world.now.row[id].version++;
}

static void give_page(struct rlk_query *query)
{
    int64_t left = query->values[query->count - 1].number;
    bool met = false;
    for (int64_t id = after_of(query) + 1; id <= ROWS && left > 0; id++) {
        if (!world.now.row[id].there)
            continue;
        give_cells(query, id);
        met = met || id == world.meddle;
        left--;
    }
    if (met)
        meddle();
}

static void give_count(struct rlk_query *query)
{
    int64_t count = 0;
    for (int64_t id = after_of(query) + 1; id <= ROWS; id++)
        count += world.now.row[id].there;
    const rowlock_value cell = rowlock_int(count);
    query->each(query->context, &cell, 1);
}

static void give_row(struct rlk_query *query)
{
    if (world.now.row[query->values[0].number].there)
        give_cells(query, query->values[0].number);
}

static void give_update(struct rlk_query *query)
{
    int64_t id = query->values[1].number;
    if (!world.now.row[id].there || world.now.row[id].version != query->values[2].number)
        return;
    world.now.row[id].n = query->values[0].number;
    const rowlock_value version = rowlock_int(++world.now.row[id].version);
    query->changed = 1;
    query->each(query->context, &version, 1);
}

static void give_checkpoint(struct rlk_query *query)
{
    const int64_t *n = world.now.numbers;
    const rowlock_value cells[] = {rowlock_int(n[0]),
                                   rowlock_text(world.now.position),
                                   rowlock_text(world.now.pending),
                                   rowlock_int(n[1]),
                                   rowlock_int(n[2]),
                                   rowlock_int(n[3]),
                                   rowlock_int(n[4]),
                                   rowlock_int(n[5])};
    if (world.now.begun)
        query->each(query->context, cells, sizeof cells / sizeof cells[0]);
}

static void take_checkpoint(struct rlk_query *query)
{
    const rowlock_value *v = query->values;
    world.now.begun = true;
    world.now.numbers[0] = v[1].number;
    snprintf(world.now.position, KEYS_MAX, "%.*s", (int)v[2].length, v[2].text);
    snprintf(world.now.pending, KEYS_MAX, "%.*s", (int)v[3].length, v[3].text);
    for (int i = 1; i <= 5; i++)
        world.now.numbers[i] = v[3 + i].number;
    query->changed = 1;
}

static void end_checkpoint(struct rlk_query *query)
{
    query->changed = world.now.begun;
    world.now.begun = false;
}

static void undo(void)
{
    if (world.in_tx)
        world.now = world.begin;
    world.in_tx = false;
}

/* Before each answer. A connection that is made anew has lost its transaction. */
static void keep_world(enum script_op op)
{
    if (op == OP_BEGIN)
        world.begin = world.now;
    if (op == OP_SAVE)
        world.save = world.now;
    if (op == OP_UNDO)
        world.now = world.save;
    bool none = op == OP_COMMIT && script_count(OP_COMMIT) == world.undone_commit;
    if (op == OP_ROLLBACK || op == OP_OPEN || none)
        undo();
    world.in_tx = op == OP_BEGIN || (world.in_tx && op != OP_COMMIT);
}

/* ---- a walk */

static rowlock_db *db;
static rowlock_table *table;
static rowlock_walk_report report;
static struct {
    int seen[ROWS + 1]; /* how often each row was asked for */
    int64_t stops; /* at this row */
    int stops_with;
    int64_t told; /* the sum of the ids */
} walker;

static void start_world(void)
{
    memset(&world, 0, sizeof world);
    memset(&walker, 0, sizeof walker);
    for (int64_t id = 1; id <= ROWS; id++) {
        world.now.row[id].there = true;
        world.now.row[id].version = 10 * id;
    }
}

static int each(void *context, const rowlock_row *row, rowlock_value *values)
{
    int64_t id = row->key->number;
    (void)context;
    walker.seen[id]++;
    if (id == walker.stops)
        return walker.stops_with;
    values[0].number++;
    return 0;
}

static void failed(void *context, const rowlock_row *row, int result, const char *text)
{
    (void)context;
    (void)result;
    (void)text;
    walker.told += row->key->number;
}

static void answer(enum script_op op, void (*give)(struct rlk_query *query))
{
    script_always(op, ANSWER(.give = give));
}

static void must_table(void)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"n", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
}

static void begin(void)
{
    static const struct script_column described[] = {
        {.name = "id", .category = "int", .most = INT64_MAX, .uniques = "pk/1"},
        {.name = "n", .category = "int", .most = INT64_MAX},
        {.name = "version", .category = "int", .most = INT64_MAX},
        {.name = NULL},
    };
    script_reset();
    script_jump();
    script.columns = described;
    start_world();
    db = script_open(NULL);
    must_table();
    script_hook(keep_world);
    answer(OP_ROWS_PAGE, give_page);
    answer(OP_ROWS_COUNT, give_count);
    answer(OP_ROW_READ, give_row);
    answer(OP_ROW_UPDATE, give_update);
    answer(OP_WALK_LOAD, give_checkpoint);
    answer(OP_WALK_SAVE, take_checkpoint);
    answer(OP_WALK_END, end_checkpoint);
    script_calls();
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

static int walk(void)
{
    rowlock_walk_options how = ROWLOCK_WALK_OPTIONS_INIT;
    how.name = "reprice";
    how.each = each;
    how.failed = failed;
    how.chunk = 3;
    report = (rowlock_walk_report)ROWLOCK_WALK_REPORT_INIT;
    return rowlock_walk(table, &how, &report);
}

/* Each row that is there was written once; but this one was not, and that one was changed by another too. */
static void is_written(int64_t but, int64_t meddled)
{
    bool all = true;
    for (int64_t id = 1; id <= ROWS; id++) {
        int64_t times = (id != but) + (id == meddled);
        int64_t n = (id != but) + (id == meddled ? 100 : 0);
        if (!world.now.row[id].there ||
            (world.now.row[id].n == n && world.now.row[id].version == 10 * id + times))
            continue;
        tap_note("row %d: n %d, version %d", (int)id, (int)world.now.row[id].n,
                 (int)world.now.row[id].version);
        all = false;
    }
    tap_ok(all, "each row is written once");
}

#define CHUNK(updates) "rows_page begin guard walk_load save " updates " keep walk_save commit "

static void test_order(void)
{
    begin();
    tap_is_int(walk(), ROWLOCK_OK, "a table is walked");
    tap_is_str(
        script_calls(),
        "meta acquire begin walk_load commit rows_count " CHUNK("row_update row_update row_update")
            CHUNK("row_update row_update row_update") "rows_page begin guard walk_load "
                                                      "row_update walk_save commit "
                                                      "rows_page walk_end release",
        "in chunks, each with its checkpoint in one transaction under the guard");
    is_written(0, 0);
    end();
}

/* ---- checkpoints */

static void set_checkpoint(const char *position, const char *pending)
{
    world.now.begun = true;
    world.now.numbers[0] = 4;
    snprintf(world.now.position, KEYS_MAX, "%s", position);
    snprintf(world.now.pending, KEYS_MAX, "%s", pending);
}

static void test_other_shapes(void)
{
    static const struct {
        const char *position, *pending;
    } all[] = {{HEAD "i3 i4\n", ""},
               {HEAD "t33\n", ""},
               {HEAD "i3\n", "t33\n"},
               {HEAD "x00\n", ""},
               {HEAD "i3", ""},
               {HEAD "i3 \n", ""},
               {HEAD "zebra\n", ""},
               {HEAD "\n", ""},
               {HEAD "i3\n", "i2 "},
               {HEAD "i\n", ""},
               {HEAD "i3x\n", ""},
               {HEAD "n\n", ""},
               {"\"home\".\"prices\" (\"id\")", ""},
               {"\"home\".\"prices\" (\"id\", \"b\")\ni3\n", ""},
               {"\"home\".\"price\" (\"id\")\ni3\n", ""},
               {"\"away\".\"prices\" (\"id\")\ni3\n", ""},
               {"i3\n", ""},
               {"", ""}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        begin();
        set_checkpoint(all[i].position, all[i].pending);
        tap_is_int(walk(), ROWLOCK_EINVAL, "checkpoint %zu is of another table or key", i);
        tap_ok(strstr(why(db), "restart") != NULL, "what can be done is said");
        tap_is_int(script_count(OP_ROW_UPDATE), 0, "nothing is written");
        tap_ok(world.now.begun, "it is left as it is");
        end();
    }
}

/* What each() says is not taken for a result of the database. */
static void test_stopping_late(void)
{
    static const int answers[] = {-117, ROWLOCK_EUNCERTAIN, ROWLOCK_ECONN, ROWLOCK_EINVAL,
                                  ROWLOCK_ESERVER};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        begin();
        set_checkpoint(HEAD "i7\n", "i2\n");
        walker.stops = 2;
        walker.stops_with = answers[i];
        tap_is_int(walk(), answers[i], "stopped with %d at a row that comes late", answers[i]);
        tap_is_int(walker.seen[2], 1, "which was asked for once");
        tap_is_int(script_count(OP_WALK_SAVE), 0, "nothing is saved");
        tap_is_str(world.now.pending, "i2\n", "it is still to be done");
        end();
    }
}

static void carry_on(enum script_op op)
{
    if (op == OP_ROWS_PAGE && script_count(OP_ROWS_PAGE) == 2)
        world.now.numbers[0]++;
    keep_world(op);
}

static void test_carried_on(void)
{
    begin();
    script_hook(carry_on);
    tap_is_int(walk(), ROWLOCK_LOST, "a checkpoint that another has carried on");
    tap_is_int(world.now.row[4].n, 0, "nothing is written after that");
    end();
}

/* ---- one answer that goes wrong */

/* Two rows come, and then the answer is cut. */
static void give_part(struct rlk_query *query)
{
    give_cells(query, 1);
    give_cells(query, 2);
}

/* r: a constraint refuses this update; any other letter: it is made. */
static void updates_go(const char *plan)
{
    for (; *plan; plan++)
        script_next(OP_ROW_UPDATE, *plan == 'r' ? ANSWER(.class = RLK_REFUSED, .text = "too dear",
                                                         .sqlstate = "23514")
                                                : ANSWER(.give = give_update));
}

static const struct failure {
    const char *what;
    enum script_op op;
    int nth; /* call of it, from 1 */
    enum rlk_class as;
    void (*give)(struct rlk_query *query);
    bool undone; /* a commit that was none */
    int64_t meddle; /* with this row, after it was read */
    bool remove;
    const char *updates; /* see updates_go(); they refuse row 5 */
} failures[] = {
    {"a lost connection: a page", OP_ROWS_PAGE, 1, .as = RLK_UNSENT},
    {"a lost connection: the guard", OP_GUARD, 1, .as = RLK_UNSENT},
    {"a lost connection: a row", OP_ROW_UPDATE, 1, .as = RLK_UNSENT},
    {"a lost connection: the checkpoint", OP_WALK_SAVE, 1, .as = RLK_UNSENT},
    {"a lost connection: a commit", OP_COMMIT, 1, .as = RLK_UNSENT},
    {"a lost connection: its end", OP_WALK_END, 1, .as = RLK_UNSENT},
    {"a lost connection: the count", OP_ROWS_COUNT, 1, .as = RLK_UNSENT},
    {"a lost connection: a beginning", OP_BEGIN, 1, .as = RLK_UNSENT},
    {"a deadlock", OP_ROW_UPDATE, 1, .as = RLK_CONTENTION},
    {"a page that was cut", OP_ROWS_PAGE, 1, .as = RLK_UNCERTAIN, .give = give_part},
    {"a commit without an answer, but carried out", OP_COMMIT, 2, .as = RLK_UNCERTAIN, .meddle = 2},
    {"a commit without an answer, which was none", OP_COMMIT, 2, .as = RLK_UNCERTAIN, .meddle = 2,
     .undone = true},
    {"a commit of rows that failed, lost before it is sent", OP_COMMIT, 3, .as = RLK_UNSENT,
     .undone = true, .meddle = 6, .remove = true, .updates = "....r.r..r."},
};

static void test_failure(const struct failure *f)
{
    bool conflict = f->meddle && !f->remove;
    begin();
    world.meddle = f->meddle;
    world.remove = f->remove;
    world.undone_commit = f->undone ? f->nth : 0;
    updates_go(f->updates ? f->updates : "");
    for (int i = 1; i < f->nth; i++)
        script_next(f->op, ANSWER(.class = RLK_DONE));
    script_next(f->op, ANSWER(.class = f->as, .give = f->give, .text = "the server's own words"));
    tap_is_int(walk(), ROWLOCK_OK, "%s: the walk comes to its end", f->what);
    is_written(f->updates ? 5 : 0, conflict ? f->meddle : 0);
    tap_is_int(report.rows, ROWS, "rows walked by");
    tap_is_int(report.written, f->remove ? ROWS - 2 : ROWS, "written");
    tap_is_int(report.conflicts, conflict, "conflicts");
    tap_is_int(walker.seen[1], 1, "rows are not computed again for that");
    tap_is_int(walker.told, f->remove ? 5 + 6 : 0, "rows that failed are told of once");
    tap_is_int(report.failed, f->remove ? 2 : 0, "and counted so");
    end();
}

int main(void)
{
    script_home("sqlite");
    test_order();
    test_other_shapes();
    test_stopping_late();
    test_carried_on();
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        test_failure(&failures[i]);
    return tap_done();
}
