/* SPDX-License-Identifier: MIT
 *
 * Walks through a table of a few rows that stands here: what each failure on the way leaves behind, and how
 * the next walk goes on. Real tables are in the contract tests.
 */
#include "backend_script.h"
#include "fail_alloc.h"
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
static rowlock_walk_options how;
static struct {
    int seen[ROWS + 1]; /* how often each row was asked for */
    int64_t leaves, stops; /* this row */
    int stops_with;
    int64_t told[20];
    int results[20], told_count;
    int progress, cancel_at;
    char text[200];
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
    if (id == walker.leaves)
        return 1;
    values[0].number++;
    return 0;
}

static void failed(void *context, const rowlock_row *row, int result, const char *text)
{
    (void)context;
    walker.told[walker.told_count] = row->key->number;
    walker.results[walker.told_count++] = result;
    snprintf(walker.text, sizeof walker.text, "%s", text);
}

static void progress(void *context, const rowlock_walk_report *so_far)
{
    (void)context;
    (void)so_far;
    if (++walker.progress == walker.cancel_at)
        rowlock_cancel(db);
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

static void set_options(void)
{
    rowlock_walk_options_init(&how);
    how.name = "reprice";
    how.each = each;
    how.failed = failed;
    how.progress = progress;
    how.chunk = 3;
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
    set_options();
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
    report = (rowlock_walk_report)ROWLOCK_WALK_REPORT_INIT;
    return rowlock_walk(table, &how, &report);
}

/* Each row that is there was written once; but this one was not, and that one was changed by another too. */
static void is_written(int64_t but, int64_t meddled, const char *what)
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
    tap_ok(all, "%s", what);
}

static void reports(int64_t rows, int64_t written, int64_t left, int64_t conflicts,
                    int64_t failures)
{
    tap_is_int(report.rows, rows, "rows walked by");
    tap_is_int(report.written, written, "written");
    tap_is_int(report.left, left, "left as they are");
    tap_is_int(report.conflicts, conflicts, "conflicts");
    tap_is_int(report.failed, failures, "failed");
}

#define CHUNK(updates) "rows_page begin guard walk_load save " updates " keep walk_save commit "

static void test_whole(void)
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
    is_written(0, 0, "each row is written once");
    reports(ROWS, ROWS, 0, 0, 0);
    tap_is_int(report.total, ROWS, "all were expected");
    tap_is_int(report.resumed, 0, "it was begun");
    tap_is_int(walker.progress, 3, "progress is told after each chunk");
    tap_ok(!world.now.begun, "no checkpoint is left");
    end();
    begin();
    walker.leaves = 4;
    tap_is_int(walk(), ROWLOCK_OK, "one row shall stay");
    is_written(4, 0, "the others are written");
    reports(ROWS, ROWS - 1, 1, 0, 0);
    end();
}

static void test_empty(void)
{
    begin();
    for (int64_t id = 1; id <= ROWS; id++)
        world.now.row[id].there = false;
    tap_is_int(walk(), ROWLOCK_OK, "an empty table");
    tap_is_str(script_calls(),
               "meta acquire begin walk_load commit rows_count rows_page walk_end release",
               "is nothing to write");
    reports(0, 0, 0, 0, 0);
    end();
}

/* ---- checkpoints */

static void set_checkpoint(const char *position, const char *pending)
{
    world.now.begun = true;
    world.now.numbers[0] = 4;
    world.now.numbers[1] = 3;
    world.now.numbers[2] = 1;
    world.now.numbers[3] = 1;
    snprintf(world.now.position, KEYS_MAX, "%s", position);
    snprintf(world.now.pending, KEYS_MAX, "%s", pending);
}

static void test_resume(void)
{
    begin();
    set_checkpoint(HEAD "i3\n", "i2\n");
    tap_is_int(walk(), ROWLOCK_OK, "a walk that was cut short is gone on with");
    tap_is_int(report.resumed, 1, "which is told");
    tap_is_int(walker.seen[1] + walker.seen[3], 0, "what was walked by is not asked for again");
    tap_is_int(walker.seen[2], 1, "but what had met a conflict");
    reports(ROWS, ROWS - 1, 1, 0, 0);
    tap_is_int(report.total, ROWS, "all rows are in the total");
    end();
    begin();
    set_checkpoint(HEAD "i3\n", "i2\n");
    how.restart = 1;
    tap_is_int(walk(), ROWLOCK_OK, "or begun anew");
    tap_is_int(report.resumed, 0, "if that is wanted");
    is_written(0, 0, "each row is written once");
    end();
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

static void test_cancel(void)
{
    begin();
    walker.cancel_at = 2;
    tap_is_int(walk(), ROWLOCK_CANCELLED, "cancelled after two chunks");
    tap_ok(world.now.begun, "there is a checkpoint");
    tap_is_str(world.now.position, HEAD "i6\n", "behind the last row");
    reports(6, 6, 0, 0, 0);
    tap_is_int(walk(), ROWLOCK_OK, "the next walk goes on");
    tap_is_int(report.resumed, 1, "from there");
    is_written(0, 0, "each row is written once");
    end();
}

static void test_stopping(void)
{
    begin();
    walker.stops = 5;
    walker.stops_with = -117;
    tap_is_int(walk(), -117, "stopped at a row");
    tap_is_int(world.now.row[4].n, 0, "nothing of its chunk is written");
    tap_is_str(world.now.position, HEAD "i3\n", "the one before is");
    tap_is_int(report.written, 3, "and counted");
    walker.stops = 0;
    tap_is_int(walk(), ROWLOCK_OK, "the next walk goes on");
    is_written(0, 0, "each row is written once");
    end();
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

/* ---- rows that others change */

static void test_conflict(void)
{
    begin();
    world.meddle = 2;
    tap_is_int(walk(), ROWLOCK_OK, "a row that another changes between reading and writing");
    is_written(0, 2, "is written in the end, and once");
    tap_is_int(walker.seen[2], 2, "it was asked for again");
    reports(ROWS, ROWS, 0, 1, 0);
    end();
    begin();
    world.meddle = 2;
    walker.cancel_at = 1;
    tap_is_int(walk(), ROWLOCK_CANCELLED, "cancelled before the end");
    tap_is_str(world.now.pending, "i2\n", "it is in the checkpoint");
    tap_is_int(walk(), ROWLOCK_OK, "so that the next walk writes it");
    is_written(0, 2, "once");
    end();
}

static void test_gone(void)
{
    begin();
    world.meddle = 2;
    world.remove = true;
    tap_is_int(walk(), ROWLOCK_OK, "a row that another removes between reading and writing");
    is_written(0, 0, "the others are written");
    tap_is_int(walker.told_count, 1, "it is told of");
    tap_is_int(walker.told[0], 2, "by its key");
    tap_is_int(walker.results[0], ROWLOCK_GONE, "as GONE");
    reports(ROWS, ROWS - 1, 0, 0, 1);
    end();
    begin();
    set_checkpoint(HEAD "i7\n", "i2\n");
    world.now.row[2].there = false;
    tap_is_int(walk(), ROWLOCK_OK, "one that was removed before it came late");
    tap_is_int(walker.told[0], 2, "is told of");
    tap_is_int(walker.results[0], ROWLOCK_GONE, "as GONE");
    tap_is_int(report.failed, 1, "and counted");
    end();
}

/* r: a constraint refuses this update; any other letter: it is made. */
static void updates_go(const char *plan)
{
    for (; *plan; plan++)
        script_next(OP_ROW_UPDATE, *plan == 'r' ? ANSWER(.class = RLK_REFUSED, .text = "too dear",
                                                         .sqlstate = "23514")
                                                : ANSWER(.give = give_update));
}

static void test_refused(void)
{
    begin();
    updates_go("...."
               "r"
               ".r.");
    tap_is_int(walk(), ROWLOCK_OK, "a row that a constraint refuses");
    is_written(5, 0, "all others are written, those of its chunk too");
    tap_is_int(walker.told_count, 1, "it is told of");
    tap_is_int(walker.told[0], 5, "by its key");
    tap_is_int(walker.results[0], ROWLOCK_ESERVER, "with the result");
    tap_ok(strstr(walker.text, "too dear") != NULL, "and the reason: %s", walker.text);
    tap_is_int(walker.seen[4], 1, "rows are not computed again for that");
    reports(ROWS, ROWS - 1, 0, 0, 1);
    end();
    begin();
    set_checkpoint(HEAD "i7\n", "i2\ni3\n");
    updates_go("r"
               "r.");
    tap_is_int(walk(), ROWLOCK_OK, "one that comes late");
    tap_is_int(walker.told[0], 2, "is told of");
    tap_is_int(world.now.row[3].n, 1, "the other is written");
    end();
}

/* A transaction that is begun again does not tell twice. */
static void test_told_once(void)
{
    begin();
    updates_go("...."
               "r"
               ".r."
               ".r.");
    world.meddle = 6;
    world.remove = true;
    script_next(OP_COMMIT, ANSWER(.class = RLK_DONE)); /* of the checkpoint's reading */
    script_next(OP_COMMIT, ANSWER(.class = RLK_DONE)); /* of the first chunk */
    script_next(OP_COMMIT, FAILS(RLK_UNSENT));
    world.undone_commit = 3;
    tap_is_int(walk(), ROWLOCK_OK, "the commit of a chunk is lost before it is sent");
    tap_is_int(walker.told_count, 2, "its rows that failed are told of once");
    reports(ROWS, ROWS - 2, 0, 0, 2);
    end();
}

/* ---- locks and connections that are lost */

static void test_lost_lock(void)
{
    begin();
    script_next(OP_GUARD, ANSWER(.token = 1));
    script_next(OP_GUARD, ANSWER(.token = 2));
    tap_is_int(walk(), ROWLOCK_LOST, "the lock is granted again on the way");
    tap_is_str(world.now.position, HEAD "i3\n", "what was written before is saved");
    tap_is_int(world.now.row[4].n, 0, "after that nothing is written");
    tap_is_int(script_count(OP_ROW_UPDATE), 3, "nor tried");
    tap_is_int(script_count(OP_WALK_SAVE), 1, "nor saved");
    end();
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    tap_is_int(walk(), ROWLOCK_BUSY, "another walks");
    tap_is_str(script_calls(), "meta acquire", "nothing is read");
    end();
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

static void test_uncertain_commit(void)
{
    for (int undone = 0; undone <= 1; undone++) {
        begin();
        world.undone_commit = undone ? 2 : 0; /* the one of the first chunk */
        script_next(OP_COMMIT, ANSWER(.class = RLK_DONE));
        script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
        world.meddle = 2;
        tap_is_int(walk(), ROWLOCK_OK, "a commit without an answer, %s",
                   undone ? "which was none" : "but carried out");
        is_written(0, 2, "each row is written once");
        reports(ROWS, ROWS, 0, 1, 0);
        tap_is_int(walker.seen[1], 1, "rows are not computed again for that");
        end();
    }
}

static void test_uncertain_for_ever(void)
{
    begin();
    world.undone_commit = 2;
    script_next(OP_COMMIT, ANSWER(.class = RLK_DONE));
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(walk(), ROWLOCK_ECONN, "a connection that is lost at a commit, for good");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    tap_is_int(walk(), ROWLOCK_OK, "the next walk goes on, wherever that was");
    is_written(0, 0, "each row is written once");
    end();
}

static void test_lost_connection(void)
{
    static const enum script_op ops[] = {OP_ROWS_PAGE, OP_GUARD,    OP_ROW_UPDATE, OP_WALK_SAVE,
                                         OP_COMMIT,    OP_WALK_END, OP_ROWS_COUNT, OP_BEGIN};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        begin();
        script_next(ops[i], FAILS(RLK_UNSENT));
        tap_is_int(walk(), ROWLOCK_OK, "a connection that is lost at step %d", (int)ops[i]);
        is_written(0, 0, "each row is written once");
        reports(ROWS, ROWS, 0, 0, 0);
        end();
    }
    begin();
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    tap_is_int(walk(), ROWLOCK_OK, "a deadlock");
    is_written(0, 0, "each row is written once");
    reports(ROWS, ROWS, 0, 0, 0);
    end();
}

/* Two rows come, and then the answer is cut. */
static void give_part(struct rlk_query *query)
{
    give_cells(query, 1);
    give_cells(query, 2);
}

static void test_cut_page(void)
{
    begin();
    script_next(OP_ROWS_PAGE, ANSWER(.class = RLK_UNCERTAIN, .give = give_part));
    tap_is_int(walk(), ROWLOCK_OK, "a page that was cut");
    is_written(0, 0, "is read anew, and each row is written once");
    reports(ROWS, ROWS, 0, 0, 0);
    end();
}

static void test_misuse(void)
{
    begin();
    how.each = NULL;
    tap_is_int(walk(), ROWLOCK_EINVAL, "nobody to hand rows to");
    set_options();
    how.name = NULL;
    tap_is_int(walk(), ROWLOCK_EINVAL, "no name");
    set_options();
    how.chunk = -1;
    tap_is_int(walk(), ROWLOCK_EINVAL, "no such chunk");
    tap_is_int(rowlock_walk(NULL, &how, NULL), ROWLOCK_EMISUSE, "no table");
    tap_is_str(script_calls(), "", "nothing was sent");
    end();
}

static void test_no_memory(void)
{
    int nth = 1, result = ROWLOCK_ENOMEM;
    fail_alloc_at(0);
    int before = fail_alloc_live();
    for (; nth < 400 && result != ROWLOCK_OK; nth++) {
        begin();
        world.meddle = 2;
        fail_alloc_at(nth);
        result = walk();
        bool met = fail_alloc_asked() >= nth;
        fail_alloc_at(0);
        if (met && result != ROWLOCK_ENOMEM)
            tap_is_int(result, ROWLOCK_OK, "memory that runs out at piece %d: %s", nth, why(db));
        if (result != ROWLOCK_OK && walk() != ROWLOCK_OK)
            tap_ok(false, "after piece %d the next walk goes on: %s", nth, why(db));
        world.meddle = 0;
        is_written(0, world.now.row[2].n > 100 ? 2 : 0, "each row is written once");
        end();
        if (fail_alloc_live() != before)
            tap_is_int(fail_alloc_live(), before, "nothing leaks at piece %d", nth);
        if (met && result == ROWLOCK_OK)
            result = ROWLOCK_ENOMEM; /* it could do without */
    }
    tap_ok(nth > 20 && nth < 400, "which were all pieces: %d", nth - 2);
}

/* ---- keys of all kinds */

static const struct script_column keyed[] = {
    {.name = "i", .category = "int", .most = INT64_MAX, .uniques = "pk/6"},
    {.name = "t", .category = "text", .uniques = "pk/6"},
    {.name = "x", .category = "bytes", .uniques = "pk/6"},
    {.name = "b", .category = "bool", .uniques = "pk/6"},
    {.name = "d", .category = "decimal", .uniques = "pk/6"},
    {.name = "m", .category = "time", .uniques = "pk/6"},
    {.name = "version", .category = "int", .most = INT64_MAX},
    {.name = NULL},
};
enum { KEYS = 6 };
static rowlock_value kinds[KEYS + 1];

static void give_once(struct rlk_query *query)
{
    if (query->count == 1)
        query->each(query->context, kinds, KEYS + 1);
}

static bool same(const rowlock_value *a, const rowlock_value *b)
{
    return a->kind == b->kind && a->number == b->number && a->length == b->length &&
           (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static int leave_all(void *context, const rowlock_row *row, rowlock_value *values)
{
    (void)context;
    (void)row;
    (void)values;
    return 1;
}

/* What is remembered of a key is read back by the next walk, and sent as the place to begin behind. */
static void remembers(const rowlock_value *key, const char *what)
{
    static const char *const names[] = {"i", "t", "x", "b", "d", "m", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    begin();
    rowlock_table_close(table);
    script.columns = keyed;
    about.name = "keyed";
    about.key = names;
    tap_is_int(rowlock_table_open(db, &about, &table), ROWLOCK_OK, "%s", what);
    memcpy(kinds, key, KEYS * sizeof *key);
    kinds[KEYS] = rowlock_int(1);
    answer(OP_ROWS_PAGE, give_once);
    how.each = leave_all;
    walker.cancel_at = 1;
    tap_is_int(walk(), ROWLOCK_CANCELLED, "a walk that is cancelled");
    script_next(OP_ROWS_COUNT, FAILS(RLK_DENIED));
    tap_is_int(walk(), ROWLOCK_EDENIED, "and gone on with");
    const struct script_query *query = script_query(0);
    static const int first_of[KEYS] = {0, 2, 4, 6, 8, 10};
    for (int i = 0; i < KEYS; i++)
        tap_ok(same(&query->values[first_of[i]], &key[i]), "its key's part %d comes back", i + 1);
    end();
}

static void test_keys(void)
{
    char all_bytes[256];
    for (int i = 0; i < 256; i++)
        all_bytes[i] = (char)i;
    remembers((const rowlock_value[]){rowlock_int(INT64_MIN), rowlock_text(""),
                                      rowlock_bytes(all_bytes, 50), rowlock_bool(1),
                                      rowlock_decimal("-0.10"), rowlock_time("2024-02-29 00:00")},
              "a key of all kinds");
    remembers((const rowlock_value[]){rowlock_int(INT64_MAX),
                                      rowlock_text(" \n i7 t\t\xF0\x9F\x94\x92"),
                                      rowlock_bytes("", 0), rowlock_bool(0),
                                      rowlock_decimal("123456789012345678901234567890"),
                                      rowlock_time("10:00:00")},
              "another one");
    remembers((const rowlock_value[]){rowlock_int(0), rowlock_text("0x7f"),
                                      rowlock_bytes(all_bytes + 50, 100), rowlock_bool(0),
                                      rowlock_decimal("1"), rowlock_time("x")},
              "a third one");
    remembers((const rowlock_value[]){rowlock_int(-1), rowlock_text("n"),
                                      rowlock_bytes(all_bytes + 150, 106), rowlock_bool(0),
                                      rowlock_decimal("1"), rowlock_time("x")},
              "a fourth one");
}

int main(void)
{
    script_home("sqlite");
    test_whole();
    test_empty();
    test_resume();
    test_other_shapes();
    test_cancel();
    test_stopping();
    test_stopping_late();
    test_conflict();
    test_gone();
    test_refused();
    test_told_once();
    test_lost_lock();
    test_carried_on();
    test_uncertain_commit();
    test_uncertain_for_ever();
    test_lost_connection();
    test_cut_page();
    test_misuse();
    test_no_memory();
    test_keys();
    return tap_done();
}
