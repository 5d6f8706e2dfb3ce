/* SPDX-License-Identifier: MIT
 *
 * Walks through a table of a few rows that stands here: what is sent in which order, checkpoints
 * that another table has left, and answers that no server gives. Real tables are in walk.c,
 * requests lost on a real network in lost_rows.c, memory in memory_rows.c. */
#include "backend_script.h"

enum { ROWS = 7, VERSION = 10 };

/* What a position begins with: of which table it is. */
#define HEAD "\"home\".\"prices\" (\"id\")\n"

/* The checkpoint, and how often each row was asked for, and written. */
static struct {
    bool begun;
    int64_t step;
    const char *position, *pending;
    int seen[ROWS + 1], written[ROWS + 1]; /* from 1 on */
    int64_t stops; /* at this row */
    int stops_with;
} world;

static rowlock_db *db;
static rowlock_table *table;

static void give_cells(struct rlk_query *query, int64_t id)
{
    const rowlock_value cells[] = {rowlock_int(id), rowlock_int(0), rowlock_int(VERSION)};
    query->each(query->context, cells, 3);
}

static void give_page(struct rlk_query *query)
{
    int64_t after = query->count > 1 ? query->values[0].number : 0;
    int64_t left = query->values[query->count - 1].number;
    for (int64_t id = after + 1; id <= ROWS && left > 0; id++, left--)
        give_cells(query, id);
}

/* Two rows come, and then the answer is cut. */
static void give_part(struct rlk_query *query)
{
    give_cells(query, 1);
    give_cells(query, 2);
}

static void give_count(struct rlk_query *query)
{
    const rowlock_value cell = rowlock_int(ROWS);
    query->each(query->context, &cell, 1);
}

static void give_row(struct rlk_query *query)
{
    give_cells(query, query->values[0].number);
}

static void give_update(struct rlk_query *query)
{
    const rowlock_value version = rowlock_int(VERSION + 1);
    world.written[query->values[1].number]++;
    query->changed = 1;
    query->each(query->context, &version, 1);
}

static void give_checkpoint(struct rlk_query *query)
{
    rowlock_value cells[8] = {rowlock_int(world.step), rowlock_text(world.position),
                              rowlock_text(world.pending)};
    for (int i = 3; i < COUNT(cells); i++)
        cells[i] = rowlock_int(0);
    if (world.begun)
        query->each(query->context, cells, COUNT(cells));
}

static void take_checkpoint(struct rlk_query *query)
{
    world.begun = true;
    world.step = query->values[1].number;
    world.position = world.pending = "";
    query->changed = 1;
}

static void end_checkpoint(struct rlk_query *query)
{
    query->changed = world.begun;
    world.begun = false;
}

static int each(void *context, const rowlock_row *row, rowlock_value *values)
{
    int64_t id = row->key->number;
    world.seen[id]++;
    values[0].number++;
    return id == world.stops ? world.stops_with : 0;
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
    table = NULL;
    db = NULL;
}

/* Ends the test before. */
static void begin(void)
{
    static const struct script_column described[] = {
        {.name = "id", .category = "int", .most = INT64_MAX, .uniques = "pk/1"},
        {.name = "n", .category = "int", .most = INT64_MAX},
        {.name = "version", .category = "int", .most = INT64_MAX},
        {.name = NULL},
    };
    static void (*const answers[OP_COUNT])(struct rlk_query * query) = {
        [OP_ROWS_PAGE] = give_page,       [OP_ROWS_COUNT] = give_count,
        [OP_ROW_READ] = give_row,         [OP_ROW_UPDATE] = give_update,
        [OP_WALK_LOAD] = give_checkpoint, [OP_WALK_SAVE] = take_checkpoint,
        [OP_WALK_END] = end_checkpoint};
    end();
    script_reset();
    script_jump();
    script.columns = described;
    memset(&world, 0, sizeof world);
    db = script_open(NULL);
    table = must_prices(db, "n");
    for (int op = 0; op < OP_COUNT; op++)
        if (answers[op])
            script_always((enum script_op)op, ANSWER(.give = answers[op]));
    script_calls();
}

static int walk(rowlock_walk_report *report)
{
    return walk_table(table, WALK(.name = "reprice", .each = each, .chunk = 3, .wait_ms = 1000),
                      report);
}

static void is_written(void)
{
    bool all = true;
    for (int id = 1; id <= ROWS; id++)
        all = all && world.seen[id] == 1 && world.written[id] == 1;
    tap_ok(all, "each row is written once");
}

#define CHUNK(updates) "rows_page begin guard walk_load save " updates " keep walk_save commit "

static void test_order(void)
{
    begin();
    tap_is_int(walk(NULL), ROWLOCK_OK, "a table is walked");
    tap_is_str(
        script_calls(),
        "meta acquire begin walk_load commit rows_count " CHUNK("row_update row_update row_update")
            CHUNK(
                "row_update row_update row_update") "rows_page begin guard walk_load "
                                                    "row_update walk_save commit "
                                                    "rows_page begin guard walk_end commit release",
        "in chunks, each with its checkpoint in one transaction under the guard");
    is_written();
}

/* After the last chunk it stood still. What another client has walked since must not be forgotten. */
static void test_lost_at_the_end(void)
{
    begin();
    for (int guards = 0; guards < 3; guards++)
        script_next(OP_GUARD, ANSWER(.missing = false));
    script_next(OP_GUARD, ANSWER(.missing = true));
    tap_is_int(walk(NULL), ROWLOCK_LOST, "a walk whose lock is lost at its end is LOST");
    tap_is_int(script_count(OP_WALK_END), 0, "and leaves the checkpoint to the next holder");
    is_written();
}

static void test_cut_page(void)
{
    begin();
    script_next(OP_ROWS_PAGE, ANSWER(.class = RLK_UNCERTAIN, .give = give_part));
    tap_is_int(walk(NULL), ROWLOCK_OK, "a page that was cut is read anew");
    is_written();
}

/* Not as a violation: by a trigger, perhaps. Refused in its chunk, and again by itself. */
static void test_refused(void)
{
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    begin();
    for (int i = 0; i < 2; i++)
        script_next(OP_ROW_UPDATE, FAILS(RLK_REFUSED));
    tap_is_int(walk(&report), ROWLOCK_OK, "a row that the database refuses");
    tap_is_int(report.failed, 1, "is counted as failed");
    tap_is_int(report.written, ROWS - 1, "and all others are written");
}

static void test_lost_for_good(void)
{
    begin();
    script_next(OP_COMMIT, ANSWER(.class = RLK_DONE)); /* of the checkpoint's reading */
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(walk(NULL), ROWLOCK_ECONN, "a connection that is lost at a commit, for good");
}

/* A position and, behind "|", what is pending. */
static void set_checkpoint(const char *text)
{
    static char position[100];
    snprintf(position, sizeof position, "%s", text);
    char *bar = strchr(position, '|');
    *bar = '\0';
    world.begun = true;
    world.step = 4;
    world.position = position;
    world.pending = bar + 1;
}

/* Checkpoints of another table or key, or with keys that end too early. */
#define SHAPES                                                                                   \
    HEAD "i3 i4\n|", HEAD "t33\n|", HEAD "i3\n|t33\n", HEAD "x00\n|", HEAD "i3|", HEAD "i3 \n|", \
        HEAD "zebra\n|", HEAD "\n|", HEAD "i3\n|i2 ", HEAD "i\n|", HEAD "i3x\n|", HEAD "n\n|",   \
        HEAD "|i", HEAD "|i1", HEAD "|x", HEAD "|t6", HEAD "|i1 ", HEAD "|\n", HEAD "|i1\ni",    \
        "\"home\".\"prices\" (\"id\")|", "\"home\".\"prices\" (\"id\", \"b\")\ni3\n|",           \
        "\"home\".\"price\" (\"id\")\ni3\n|", "\"away\".\"prices\" (\"id\")\ni3\n|", "i3\n|", "|"

static void test_other_shapes(void)
{
    static const char *const all[] = {SHAPES};
    for (size_t i = 0; i < COUNT(all); i++) {
        begin();
        set_checkpoint(all[i]);
        tap_is_int(walk(NULL), ROWLOCK_EINVAL, "checkpoint %zu is of another table or key", i);
        tap_ok(strstr(why(db), "restart") != NULL, "what can be done is said");
        tap_is_str(error_of(db).action, "walk 'prices'", "of the walk, and not of its lock");
        tap_is_int(script_count(OP_ROW_UPDATE), 0, "nothing is written");
        tap_ok(world.begun, "it is left as it is");
    }
}

static void test_misfits(void)
{
    rowlock_value rows[12], nulls[8] = {rowlock_int(1), rowlock_null(), rowlock_null()};
    for (int i = 0; i < 4; i++) {
        rows[3 * i] = rowlock_int(i + 1);
        rows[3 * i + 1] = rowlock_int(0);
        rows[3 * i + 2] = rowlock_int(VERSION);
    }
    for (int i = 3; i < 8; i++)
        nulls[i] = rowlock_int(0);
    begin();
    script_next(OP_WALK_LOAD, ANSWER(ROWS(2, rowlock_int(1), rowlock_text(HEAD))));
    tap_is_int(walk(NULL), ROWLOCK_ESCHEMA, "a checkpoint with too few columns");
    script_next(OP_WALK_LOAD, ANSWER(.cells = nulls, .width = 8, .rows = 1));
    tap_is_int(walk(NULL), ROWLOCK_ESCHEMA, "one that is NULL");
    script_next(OP_ROWS_PAGE, ANSWER(.cells = rows, .width = 3, .rows = 4));
    tap_is_int(walk(NULL), ROWLOCK_ESERVER, "a page with more rows than were asked for");
    script_next(OP_ROWS_PAGE, ANSWER(.cells = rows, .width = 2, .rows = 1));
    tap_is_int(walk(NULL), ROWLOCK_ESERVER, "one without versions");
    script_next(OP_ROWS_PAGE, ANSWER(.cells = rows, .width = 3, .rows = 3));
    script_next(OP_ROWS_PAGE, ANSWER(.cells = rows, .width = 3, .rows = 3));
    int before = script_count(OP_ROWS_PAGE);
    tap_is_int(walk(NULL), ROWLOCK_ESERVER, "one that ends where the one before it ended");
    tap_is_int(script_count(OP_ROWS_PAGE) - before, 2, "is not asked for again");
    world.begun = false;
    script_always(OP_ROWS_COUNT, ANSWER(ROWS(1, rowlock_text("many"))));
    tap_is_int(walk(NULL), ROWLOCK_ESERVER, "a number of rows that is none");
}

/* What each() says is not taken for a result of the database. */
static void test_stopping_late(void)
{
    static const int answers[] = {-117, ROWLOCK_EUNCERTAIN, ROWLOCK_ECONN, ROWLOCK_EINVAL,
                                  ROWLOCK_ESERVER};
    for (size_t i = 0; i < COUNT(answers); i++) {
        begin();
        set_checkpoint(HEAD "i7\n|i2\n");
        world.stops = 2;
        world.stops_with = answers[i];
        tap_is_int(walk(NULL), answers[i], "stopped with %d at a row that comes late", answers[i]);
        tap_is_int(world.seen[2], 1, "which was asked for once");
        tap_is_int(script_count(OP_WALK_SAVE), 0, "nothing is saved");
    }
}

static void carry_on(enum script_op op)
{
    if (op == OP_ROWS_PAGE && script_count(OP_ROWS_PAGE) == 2)
        world.step++;
}

static void test_carried_on(void)
{
    begin();
    script_hook(carry_on);
    tap_is_int(walk(NULL), ROWLOCK_LOST, "a checkpoint that another has carried on");
    tap_is_int(script_count(OP_ROW_UPDATE), 3, "nothing is written after that");
}

static enum script_op cancelled_at;

static void cancel_now(enum script_op op)
{
    if (op == cancelled_at)
        rowlock_cancel(db);
}

static void begin_cancelled_at(enum script_op op)
{
    begin();
    cancelled_at = op;
    script_hook(cancel_now);
}

static void waits(const char *what)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "another");
    script_hook(NULL);
    tap_is_int(wait_lock(lock, 30000, 1000), ROWLOCK_OK, "%s", what);
}

static void test_cancelled(void)
{
    begin();
    rowlock_cancel(db);
    tap_is_int(walk(NULL), ROWLOCK_CANCELLED, "a walk that was cancelled before it");
    tap_is_int(script_count(OP_ACQUIRE), 0, "asks for no lock");
    begin_cancelled_at(OP_ACQUIRE);
    tap_is_int(walk(NULL), ROWLOCK_CANCELLED, "a cancel while its lock is granted is not lost");
    tap_is_int(script_count(OP_ROW_UPDATE), 3, "it ends after the first chunk");
    waits("and only this walk");
    begin_cancelled_at(OP_RELEASE);
    tap_is_int(walk(NULL), ROWLOCK_OK, "a cancel when all is written comes too late");
    is_written();
    waits("it does not end the next wait");
}

int main(void)
{
    script_home("sqlite");
    alarm(60); /* a call that never ends ends here */
    test_order();
    test_lost_at_the_end();
    test_cut_page();
    test_refused();
    test_lost_for_good();
    test_other_shapes();
    test_misfits();
    test_stopping_late();
    test_carried_on();
    test_cancelled();
    end();
    return tap_done();
}
