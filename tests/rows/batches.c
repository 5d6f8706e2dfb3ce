/* SPDX-License-Identifier: MIT
 *
 * Many rows of the application's own table, changed under their versions: chunks, outcomes of each row, all or
 * nothing, progress, long values, violated constraints, and what it costs. One row is in versions.c.
 */
#include "tables.h"
#include "faultproxy.h"

enum { UNTOUCHED = -1000, FIRST = 1 };

/* Rows with the keys 1 to n, in no order. */
struct load {
    size_t n;
    rowlock_change *changes;
    rowlock_value *keys, *values; /* n and note of each */
};

static struct load load_new(size_t n)
{
    struct load l = {.n = n,
                     .changes = calloc(n, sizeof *l.changes),
                     .keys = calloc(n, sizeof *l.keys),
                     .values = calloc(2 * n, sizeof *l.values)};
    unsigned seed = 12345;
    if (!l.changes || !l.keys || !l.values)
        abort();
    for (size_t i = 0; i < n; i++)
        l.keys[i] = rowlock_int((int64_t)i + 1);
    for (size_t i = n; i > 1; i--) {
        seed = seed * 1103515245u + 12345u;
        size_t other = (seed >> 8) % i;
        rowlock_value key = l.keys[i - 1];
        l.keys[i - 1] = l.keys[other];
        l.keys[other] = key;
    }
    for (size_t i = 0; i < n; i++) {
        l.values[2 * i] = rowlock_int(l.keys[i].number * 3);
        l.values[2 * i + 1] = i % 3 ? rowlock_text("a \"note\", {or} so") : rowlock_null();
        l.changes[i] = (rowlock_change){.key = &l.keys[i],
                                        .values = &l.values[2 * i],
                                        .version = FIRST,
                                        .result = UNTOUCHED,
                                        .current = UNTOUCHED};
    }
    return l;
}

static void load_free(struct load *l)
{
    free(l->changes);
    free(l->keys);
    free(l->values);
}

static rowlock_change *change_of(const struct load *l, int64_t id)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->keys[i].number == id)
            return &l->changes[i];
    abort();
}

/* ---- the table */

static rowlock_table *open_rows(const struct site *s, const char *set)
{
    return must_describe(s,
                         TABLE(.name = "bat_rows", .key = NAMES("id"),
                               .columns = NAMES("n", "note"), .set = set, .first_version = FIRST));
}

/* Rows 1 to n of version FIRST. */
static void fill(const struct site *s, int n)
{
    site_run(s, "DELETE FROM bat_rows");
    site_run(s,
             "INSERT INTO bat_rows SELECT i, 0, 'as it was', %d FROM " NUMBERS
             " WHERE i BETWEEN 1 AND %d",
             FIRST, n);
}

/* All that a test could have changed, in a line. */
static void digest(const struct site *s, char *out, size_t cap)
{
    static const char *const parts[] = {"count(*)",    "sum(id)",           "sum(version)",
                                        "sum(n * id)", "sum(version * id)", "count(note)"};
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < COUNT(parts); i++) {
        char sql[200], text[50];
        snprintf(sql, sizeof sql, "SELECT coalesce(%s, 0) FROM bat_rows", parts[i]);
        if (!s->c->raw->ask(s->look, sql, text, sizeof text))
            raw_failed("digest", sql);
        used += (size_t)snprintf(out + used, cap - used, "%s ", text);
    }
}

static void stands(const struct site *s, const char *before, const char *what)
{
    char after[400];
    digest(s, after, sizeof after);
    tap_is_str(after, before, "%s", what);
}

/* ---- how many at once */

static void all_applied(const struct site *s, const struct load *l, int result, int64_t current,
                        const char *what)
{
    size_t good = 0;
    for (size_t i = 0; i < l->n; i++)
        good += l->changes[i].result == ROWLOCK_OK && l->changes[i].current == current;
    is_result(s->db, result, ROWLOCK_OK, "%zu rows: %s", l->n, what);
    tap_is_int((long long)good, (long long)l->n, "each is told of");
}

static void expect_version(struct load *l, int64_t version)
{
    for (size_t i = 0; i < l->n; i++)
        l->changes[i].version = version;
}

static void all_at(const struct site *s, rowlock_table *t, size_t n, int chunk, bool all)
{
    CLOSED_BY(load_free) struct load l = load_new(n);
    const rowlock_change_options *how = HOW(.chunk = chunk, .all_or_nothing = all);
    tap_note("%zu rows in chunks of %d%s", n, chunk, all ? ", all or nothing" : "");
    site_run(s, "DELETE FROM bat_rows");
    all_applied(s, &l, rowlock_insert(t, l.changes, n, how), FIRST, "inserted");
    for (size_t i = 0; i < n; i++)
        l.values[2 * i].number = l.keys[i].number * 7;
    all_applied(s, &l, rowlock_update(t, l.changes, n, how), FIRST + 1, "updated");
    expect_version(&l, FIRST + 1);
    all_applied(s, &l, rowlock_expect(t, l.changes, n, how), FIRST + 1, "expected");
    all_applied(s, &l, rowlock_touch(t, l.changes, n, how), FIRST + 2, "touched");
    site_finds(s, textf("%zu", n), "all of them are there",
               "SELECT count(*) FROM bat_rows WHERE n = id * 7 AND version = %d", FIRST + 2);
    expect_version(&l, FIRST + 2);
    all_applied(s, &l, rowlock_remove(t, l.changes, n, how), 0, "removed");
    site_finds(s, "0", "none is left", "SELECT count(*) FROM bat_rows");
}

static void all_sizes(const struct site *s, rowlock_table *t)
{
    static const struct {
        size_t rows;
        int chunk;
    } sizes[] = {{1, 1000}, {2, 1000}, {999, 1000}, {1000, 1000}, {1001, 1000}, {2500, 1000},
                 {2500, 0}, {1001, 7}, {2, 7},      {7, 7},       {50, 1},      {2500, 10000}};
    for (int i = 0; i < COUNT(sizes); i++)
        all_at(s, t, sizes[i].rows, sizes[i].chunk, false);
    all_at(s, t, 20, 7, true);
}

/* ---- each outcome by its name */

enum { MIXED = 60 };

/* What the row of this change says afterwards. */
static const char *mixed_says(enum op op, bool all_or_nothing, const rowlock_change *change)
{
    static const char *const says[][5] = {
        [UPDATE] = {"OK 2", "STALE 4", "STALE 0", "GONE 0", "OK 2"},
        [TOUCH] = {"OK 2", "STALE 4", "STALE 0", "GONE 0", "OK 2"},
        [EXPECT] = {"OK 1", "STALE 4", "STALE 0", "GONE 0", "OK 1"},
        [INSERT] = {"EXISTS 1", "EXISTS 4", "EXISTS 0", "OK 1", "EXISTS 1"},
        [REMOVE] = {"OK 0", "STALE 4", "STALE 0", "GONE 0", "OK 0"},
    };
    const char *one = says[op][change->key->number % 5];
    if (all_or_nothing && one[0] == 'O' && op != EXPECT)
        return op == INSERT ? "UNDONE 0" : "UNDONE 1";
    return one;
}

static void each_is_named(const struct load *l, enum op op, bool all_or_nothing)
{
    size_t named = 0;
    for (size_t i = 0; i < l->n; i++) {
        const char *want = mixed_says(op, all_or_nothing, &l->changes[i]);
        const char *got =
            textf("%s %lld", rowlock_result_name(l->changes[i].result) + strlen("ROWLOCK_"),
                  (long long)l->changes[i].current);
        named += strcmp(got, want) == 0;
        if (strcmp(got, want) != 0)
            tap_note("row %lld says %s, wanted %s", (long long)l->keys[i].number, got, want);
    }
    tap_is_int((long long)named, (long long)l->n, "each row is named with its reason");
}

static int first_reason(const struct load *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->changes[i].result != ROWLOCK_OK && l->changes[i].result != ROWLOCK_UNDONE)
            return l->changes[i].result;
    return ROWLOCK_OK;
}

/* Those that were applied, and no others. */
static void mixed_stands(const struct site *s, enum op op)
{
    static const struct {
        enum op op;
        const char *count, *where, *what;
    } all[] = {
        {UPDATE, "24", "n = id * 3 AND version = 2 AND id % 5 IN (0, 4)", "what was updated"},
        {UPDATE, "24", "n = 0 AND id % 5 IN (1, 2)", "the others are as they were"},
        {TOUCH, "24", "n = 0 AND version = 2", "what was touched"},
        {INSERT, "12", "n = id * 3 AND id % 5 = 3", "what was inserted"},
        {INSERT, "48", "n = 0", "the others are as they were"},
        {REMOVE, "24", "id % 5 IN (1, 2)", "what was not to be removed is there"},
        {REMOVE, "24", "1 = 1", "and nothing else"},
    };
    for (int i = 0; i < COUNT(all); i++)
        if (all[i].op == op)
            site_finds(s, all[i].count, all[i].what, "SELECT count(*) FROM bat_rows WHERE %s",
                       all[i].where);
}

static void mixed_outcomes(const struct site *s, rowlock_table *t, enum op op, int chunk,
                           bool all_or_nothing)
{
    char before[400];
    CLOSED_BY(load_free) struct load l = load_new(MIXED);
    /* Two of five rows are as they should be. The others are newer, older, or gone. */
    fill(s, MIXED);
    site_run(s, "UPDATE bat_rows SET version = %d WHERE id %% 5 = 1", FIRST + 3);
    site_run(s, "UPDATE bat_rows SET version = %d WHERE id %% 5 = 2", FIRST - 1);
    site_run(s, "DELETE FROM bat_rows WHERE id %% 5 = 3");
    digest(s, before, sizeof before);
    int result =
        change_rows(t, op, l.changes, l.n, HOW(.chunk = chunk, .all_or_nothing = all_or_nothing));
    is_result(s->db, result, first_reason(&l), "%s in chunks of %d%s: what hindered the first",
              op_names[op], chunk, all_or_nothing ? ", all or nothing" : "");
    each_is_named(&l, op, all_or_nothing);
    if (all_or_nothing || op == EXPECT)
        stands(s, before, "nothing was changed");
    else
        mixed_stands(s, op);
}

static void all_mixed(const struct site *s, rowlock_table *t)
{
    for (int op = UPDATE; op <= REMOVE; op++)
        for (int all = 0; all <= 1; all++) {
            mixed_outcomes(s, t, (enum op)op, 1000, all);
            mixed_outcomes(s, t, (enum op)op, 7, all);
        }
    mixed_outcomes(s, t, UPDATE, 1, false);
    mixed_outcomes(s, t, UPDATE, 1, true);
}

/* In a table so small that no plan needs its index, and where other rows have the versions expected. */
static void small_table(const struct site *s, const char *type)
{
    rowlock_value n = rowlock_int(9);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int op = UPDATE; op <= REMOVE; op++) {
        rowlock_value keys[4];
        rowlock_change changes[4];
        if (op == INSERT)
            continue;
        site_table(s, "bat_small",
                   textf("id %s NOT NULL PRIMARY KEY, n INT, version BIGINT NOT NULL", type));
        site_run(s, "INSERT INTO bat_small VALUES ('a', 0, 5), ('b', 0, 1), ('c', 0, 1)");
        OWNED(table) rowlock_table *t = must_open_table(s, "bat_small", NAMES("n"));
        for (int i = 0; i < 4; i++) {
            keys[i] = rowlock_text(names[i]);
            changes[i] = (rowlock_change){.key = &keys[i], .values = &n, .version = 1};
        }
        is_result(s->db, change_rows(t, (enum op)op, changes, 4, NULL), ROWLOCK_STALE,
                  "%s: a small table by %s", op_names[op], type);
        rows_say(changes, 4, "STALE, OK, OK, GONE", "each row is named with its reason");
        tap_is_int(changes[0].current, 5, "with its version");
    }
}

static void small_tables(const struct site *s)
{
    /* The first one is for each database. */
    static const char *const types[] = {
        "VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "VARCHAR(20) CHARACTER SET utf8",
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "ENUM('a', 'b', 'c', 'd')"};
    for (int i = 0; i < (is_mysql(s->c) ? COUNT(types) : 1); i++)
        small_table(s, types[i]);
}

/* ---- what is refused before anything is sent */

static void refused(const struct site *s, rowlock_table *t, struct load *l, enum op op,
                    const char *clue)
{
    char before[400];
    digest(s, before, sizeof before);
    is_result(s->db, change_rows(t, op, l->changes, l->n, NULL), ROWLOCK_EINVAL, "%s: refused",
              op_names[op]);
    tap_ok(strstr(why(s->db), clue) != NULL, "the text says %s", clue);
    size_t cancelled = 0;
    for (size_t i = 0; i < l->n; i++)
        cancelled += l->changes[i].result == ROWLOCK_CANCELLED;
    tap_is_int((long long)cancelled, (long long)l->n, "no row was reached");
    stands(s, before, "nothing was changed");
}

static void duplicates(const struct site *s, rowlock_table *t)
{
    CLOSED_BY(load_free) struct load l = load_new(50);
    fill(s, 50);
    int64_t was = l.keys[49].number;
    l.keys[49].number = l.keys[3].number;
    for (int op = UPDATE; op <= REMOVE; op++)
        refused(s, t, &l, (enum op)op, "rows[3] and rows[49] have the same key");
    l.keys[49].number = was;
    l.keys[20] = rowlock_null();
    refused(s, t, &l, TOUCH, "rows[20]");
    tap_is_int(error_of(s->db).row, 20, "which is its index, as the error has it");
}

/* Two that are the same to the database only are two changes of one row; two removals may be one. */
static void same_twice(const struct site *s, rowlock_table *t, enum op op)
{
    rowlock_value keys[2] = {rowlock_decimal("1.0"), rowlock_decimal("1.00")};
    rowlock_value values[2] = {rowlock_int(5), rowlock_int(6)};
    rowlock_change changes[2] = {
        {.key = &keys[0], .values = &values[0], .version = FIRST},
        {.key = &keys[1], .values = &values[1], .version = FIRST},
    };
    int want = op == INSERT ? ROWLOCK_EXISTS : op == REMOVE ? ROWLOCK_GONE : ROWLOCK_STALE;
    site_run(s, "DELETE FROM bat_same");
    if (op != INSERT)
        site_run(s, "INSERT INTO bat_same VALUES (1, 0, %d)", FIRST);
    int result = change_rows(t, op, changes, 2, NULL);
    int first = changes[0].result, second = changes[1].result;
    bool one_removal = op == REMOVE && first == ROWLOCK_OK && second == ROWLOCK_OK;
    is_result(s->db, result, one_removal ? ROWLOCK_OK : want,
              "%s: a key in two spellings of one number", op_names[op]);
    tap_ok(one_removal || (first == ROWLOCK_OK && second == want) ||
               (second == ROWLOCK_OK && first == want),
           "one of them is applied (%s, %s)", rowlock_result_name(first),
           rowlock_result_name(second));
    if (op == UPDATE || op == INSERT)
        site_finds(s, first == ROWLOCK_OK ? "5" : "6", "and it is that one",
                   "SELECT n FROM bat_same");
    if (op != REMOVE)
        site_finds(s, op == INSERT ? "1" : "2", "once", "SELECT version FROM bat_same");
}

static void same_to_the_database(const struct site *s)
{
    static const enum op each[] = {UPDATE, TOUCH, INSERT, REMOVE};
    site_table(s, "bat_same", "id DECIMAL(10,2) PRIMARY KEY, n INT, version BIGINT NOT NULL");
    OWNED(table)
    rowlock_table *t = must_describe(s, TABLE(.name = "bat_same", .key = NAMES("id"),
                                              .columns = NAMES("n"), .first_version = FIRST));
    for (int i = 0; i < COUNT(each); i++)
        same_twice(s, t, each[i]);
}

static void kinds_of_parameters(const struct site *s)
{
    CLOSED_BY(load_free) struct load l = load_new(30);
    OWNED(table) rowlock_table *t = open_rows(s, "n = n + ?, note = ?");
    fill(s, 30);
    change_of(&l, 17)->values = VALUES(rowlock_decimal("1"), rowlock_null());
    refused(s, t, &l, UPDATE, "of another kind");
    change_of(&l, 17)->values = VALUES(rowlock_int(1), rowlock_null());
    change_of(&l, 18)->values = VALUES(rowlock_null(), rowlock_text("no n"));
    all_applied(s, &l, rowlock_update(t, l.changes, l.n, NULL), FIRST + 1, "NULL is of any kind");
    site_finds(s, "no n", "and is set", "SELECT note FROM bat_rows WHERE n IS NULL");
    site_finds(s, "28", "the others have what was given",
               "SELECT count(*) FROM bat_rows WHERE n = id * 3");
}

struct progress {
    size_t done[20];
    int calls;
    int stop_at; /* call; 0: never */
    size_t total;
};

static int on_progress(void *context, size_t done, size_t total)
{
    struct progress *p = context;
    if (p->calls < COUNT(p->done))
        p->done[p->calls] = done;
    p->calls++;
    p->total = total;
    return p->calls == p->stop_at;
}

#define TOLD_TO(p, ...) HOW(.progress = on_progress, .context = (p), __VA_ARGS__)

static void progress_is_told(const struct site *s, rowlock_table *t)
{
    CLOSED_BY(load_free) struct load l = load_new(25);
    struct progress p = {.calls = 0};
    const rowlock_change_options *how = TOLD_TO(&p, .chunk = 10);
    fill(s, 25);
    all_applied(s, &l, rowlock_update(t, l.changes, l.n, how), FIRST + 1, "with progress");
    tap_ok(p.calls == 2 && p.done[0] == 10 && p.done[1] == 20 && p.total == 25,
           "which is told after each chunk but the last");
    is_result(s->db, rowlock_touch(t, l.changes, 10, how), ROWLOCK_STALE, "a single chunk");
    tap_is_int(p.calls, 2, "is the last");
}

static void progress_stops(const struct site *s, rowlock_table *t, bool all_or_nothing)
{
    CLOSED_BY(load_free) struct load l = load_new(25);
    struct progress p = {.stop_at = 2};
    char before[400];
    size_t good = 0;
    fill(s, 25);
    digest(s, before, sizeof before);
    is_result(s->db,
              rowlock_update(t, l.changes, l.n,
                             TOLD_TO(&p, .chunk = 10, .all_or_nothing = all_or_nothing)),
              ROWLOCK_CANCELLED, "stopped by progress%s", all_or_nothing ? ", all or nothing" : "");
    tap_is_int(p.calls, 2, "at its second call");
    for (int id = 1; id <= 25; id++)
        good += change_of(&l, id)->result == (id > 20          ? ROWLOCK_CANCELLED
                                              : all_or_nothing ? ROWLOCK_UNDONE
                                                               : ROWLOCK_OK);
    tap_is_int((long long)good, 25, "each row says what became of it");
    if (all_or_nothing)
        stands(s, before, "nothing was changed");
    else
        site_finds(s, "20", "two chunks were done",
                   "SELECT count(*) FROM bat_rows WHERE version = %d", FIRST + 1);
}

static char *long_text(size_t length, char last)
{
    char *text = malloc(length + 1);
    if (!text)
        abort();
    for (size_t i = 0; i < length; i++)
        text[i] = "abcdefghij\"\\{},\n"[i % 16];
    text[length - 1] = last;
    text[length] = '\0';
    return text;
}

/* Chunks that would be too long are made shorter. */
static void long_values(const struct site *s, size_t rows, size_t length, int chunks)
{
    CLOSED_BY(load_free) struct load l = load_new(rows);
    struct progress p = {.calls = 0};
    const rowlock_change_options *how = TOLD_TO(&p, .chunk = 0);
    rowlock_row row = ROWLOCK_ROW_INIT;
    size_t right = 0;
    site_table(s, "bat_long",
               textf("id INT PRIMARY KEY, note %s, version BIGINT NOT NULL",
                     is_mysql(s->c) ? "LONGTEXT" : "TEXT"));
    OWNED(table) rowlock_table *t = must_open_table(s, "bat_long", NAMES("note"));
    OWNED(text) char *text = long_text(length, '1'), *other = long_text(length, '2');
    for (size_t i = 0; i < rows; i++) {
        l.values[2 * i] = rowlock_text(text);
        l.changes[i].values = &l.values[2 * i];
    }
    is_result(s->db, rowlock_insert(t, l.changes, rows, how), ROWLOCK_OK, "%zu rows of %zu bytes",
              rows, length);
    tap_is_int(p.calls + 1, chunks, "in chunks that are not too long");
    for (size_t i = 0; i < rows; i++) {
        l.values[2 * i] = rowlock_text(other);
        l.changes[i].version = l.changes[i].current;
    }
    p.calls = 0;
    is_result(s->db, rowlock_update(t, l.changes, rows, how), ROWLOCK_OK, "all updated");
    tap_is_int(p.calls + 1, chunks, "in as many");
    for (size_t i = 0; i < rows; i++)
        right += rowlock_read(t, &l.keys[i], 0, &row) == ROWLOCK_OK &&
                 row.values[0].length == length && memcmp(row.values[0].text, other, length) == 0;
    tap_is_int((long long)right, (long long)rows, "and each is there, to the last byte");
}

/* Two rows, of different chunks, are refused. */
static void rows_are_named(const struct load *l, bool all_or_nothing)
{
    int good = 0;
    for (int id = 1; id <= 30; id++) {
        int others = all_or_nothing ? ROWLOCK_UNDONE : ROWLOCK_OK;
        int want = id == 15 || id == 29 ? ROWLOCK_VIOLATION : others;
        int got = change_of(l, id)->result;
        good += got == want;
        if (got != want)
            tap_note("row %d says %s", id, rowlock_result_name(got));
    }
    tap_is_int(good, 30, "those two are named, all others are %s",
               all_or_nothing ? "undone" : "applied");
}

static void violation(const struct site *s, rowlock_table *t, enum op op, bool all_or_nothing)
{
    CLOSED_BY(load_free) struct load l = load_new(30);
    char before[400];
    fill(s, 30);
    if (op == INSERT)
        site_run(s, "DELETE FROM bat_rows");
    digest(s, before, sizeof before);
    change_of(&l, 15)->values = VALUES(rowlock_int(1000000), rowlock_null());
    change_of(&l, 29)->values = VALUES(rowlock_int(1000001), rowlock_null());
    is_result(
        s->db,
        change_rows(t, op, l.changes, l.n, HOW(.chunk = 10, .all_or_nothing = all_or_nothing)),
        ROWLOCK_VIOLATION, "%s: a constraint is violated in two of three chunks%s", op_names[op],
        all_or_nothing ? ", all or nothing" : "");
    rows_are_named(&l, all_or_nothing);
    rowlock_error error = error_of(s->db);
    tap_is_int(error.constraint, ROWLOCK_CONSTRAINT_CHECK, "with the kind of the constraint");
    tap_ok(error.row == change_of(&l, 15) - l.changes || error.row == change_of(&l, 29) - l.changes,
           "and the index of one of them");
    if (all_or_nothing)
        stands(s, before, "nothing was changed");
    else
        site_finds(s, "28", "and so they stand", "SELECT count(*) FROM bat_rows WHERE n > 0");
}

/* What the middle one of three rows would break. */
static void breaks(const struct site *s, rowlock_table *t, enum op op, const rowlock_value *wrong,
                   int constraint, const char *what)
{
    static const char *const words[] = {"a", "b", "c"};
    rowlock_value values[3][3];
    struct few f;
    for (int all = 0; all <= 1; all++) {
        site_run(s, "DELETE FROM bat_kinds");
        site_run(s, "INSERT INTO bat_kinds VALUES (9, 'taken', 0, 1, 1)");
        few_from(&f, 1, FIRST);
        for (int i = 0; i < 3; i++) {
            if (op == UPDATE)
                site_run(s, "INSERT INTO bat_kinds VALUES (%d, '%d', 0, 1, 1)", i + 1, i);
            values[i][0] = rowlock_text(words[i]);
            values[i][1] = values[i][2] = rowlock_int(1);
            f.changes[i].values = i == 1 ? wrong : values[i];
        }
        is_result(s->db, change_rows(t, op, f.changes, 3, HOW(.all_or_nothing = all)),
                  ROWLOCK_VIOLATION, "%s: %s%s", op_names[op], what, all ? ", all or nothing" : "");
        tap_is_int(error_of(s->db).constraint, constraint, "of which kind it is");
        tap_is_int(error_of(s->db).row, 1, "which row it is");
        rows_say(f.changes, 3, all ? "UNDONE, VIOLATION, UNDONE" : "OK, VIOLATION, OK",
                 "the others say what became of them");
        site_finds(s, all ? "0" : "2", "and so they stand",
                   "SELECT count(*) FROM bat_kinds WHERE n = 1");
    }
    is_result(s->db, change_rows(t, op, &f.changes[1], 1, NULL), ROWLOCK_VIOLATION, "by itself");
    tap_is_int(error_of(s->db).constraint, constraint, "it is the same");
    tap_is_int(error_of(s->db).row, 0, "and the first");
}

static void kinds_of_violations(const struct site *s)
{
    site_run(s, "DROP TABLE IF EXISTS bat_kinds");
    site_table(s, "bat_parents", "id INT PRIMARY KEY");
    site_run(s, "INSERT INTO bat_parents VALUES (1)");
    site_table(s, "bat_kinds",
               "id INT PRIMARY KEY, word VARCHAR(5) UNIQUE, n INT NOT NULL CHECK (n < 100), "
               "parent INT, version BIGINT NOT NULL, "
               "FOREIGN KEY (parent) REFERENCES bat_parents (id)");
    rowlock_table *t =
        must_describe(s, TABLE(.name = "bat_kinds", .key = NAMES("id"),
                               .columns = NAMES("word", "n", "parent"), .first_version = FIRST));
    rowlock_value one = rowlock_int(1);
    const rowlock_value text = rowlock_text("b"), null = rowlock_null(), two = rowlock_int(2);
    const rowlock_value taken = rowlock_text("taken"), hundred = rowlock_int(100);
    const struct {
        rowlock_value values[3];
        int constraint;
        const char *what;
    } all[] = {
        {{taken, one, one}, ROWLOCK_CONSTRAINT_UNIQUE, "another unique key"},
        {{text, hundred, one}, ROWLOCK_CONSTRAINT_CHECK, "a check"},
        {{text, null, one}, ROWLOCK_CONSTRAINT_NOT_NULL, "a column that is not NULL"},
        {{text, one, two}, ROWLOCK_CONSTRAINT_FOREIGN_KEY, "a foreign key"},
        {{rowlock_text("too long"), one, one}, ROWLOCK_CONSTRAINT_VALUE, "a text that is too long"},
        {{text, rowlock_int(1LL << 40), one},
         ROWLOCK_CONSTRAINT_VALUE,
         "a number that is too large"},
    };
    int count = s->c->has_server ? COUNT(all) : 4; /* SQLite's columns have no size */
    for (int op = UPDATE; op <= INSERT; op += INSERT - UPDATE)
        for (int i = 0; i < count; i++)
            breaks(s, t, (enum op)op, all[i].values, all[i].constraint, all[i].what);
    rowlock_table_close(t);
}

/* ---- what it costs */

/* New rows are inserted whose keys are so many digits. */
static void insert_texts(const struct site *s, size_t rows, int digits)
{
    OWNED(table) rowlock_table *t = must_open_table(s, "bat_counted", NULL);
    CLOSED_BY(load_free) struct load l = load_new(rows);
    char texts[200][201];
    for (size_t i = 0; i < rows; i++) {
        snprintf(texts[i], sizeof texts[i], "%0*zu", digits, i + 1);
        l.keys[i] = rowlock_text(texts[i]);
    }
    is_result(s->db, rowlock_insert(t, l.changes, rows, NULL), ROWLOCK_OK, "new rows are inserted");
}

/* A key whose comparisons the database counts. */
static void work_of_insert_postgres(const struct site *s)
{
    enum { ROWS = 200 };
    static const char *const drops[] = {"DROP TABLE IF EXISTS bat_counted",
                                        "DROP TYPE IF EXISTS bat_label CASCADE",
                                        "DROP SEQUENCE IF EXISTS bat_compared"};
    for (int i = 0; i < COUNT(drops); i++)
        site_run(s, "%s", drops[i]);
    site_run(s, "CREATE SEQUENCE bat_compared");
    site_run(s,
             "DO $$ BEGIN EXECUTE 'CREATE TYPE bat_label AS ENUM (' || "
             "(SELECT string_agg(quote_literal(n), ',') FROM generate_series(1, %d) AS n) || "
             "')'; END $$",
             ROWS);
    site_run(s, "CREATE FUNCTION bat_same(a bat_label, b bat_label) RETURNS boolean LANGUAGE sql "
                "AS $$ SELECT nextval('bat_compared') > 0 AND a::text = b::text $$");
    site_run(s,
             "CREATE OPERATOR = (LEFTARG = bat_label, RIGHTARG = bat_label, FUNCTION = bat_same)");
    site_table(s, "bat_counted", "id bat_label PRIMARY KEY, version BIGINT NOT NULL");
    insert_texts(s, ROWS, 1);
    site_finds(s, "t", "without comparing each of them with each other",
               "SELECT last_value < 10 * %d FROM bat_compared", ROWS);
    for (int i = 0; i < COUNT(drops); i++)
        site_run(s, "%s", drops[i]);
}

static int64_t bytes_received(const struct site *s)
{
    return raw_int(s->c->raw, s->session,
                   "SELECT VARIABLE_VALUE FROM %s.SESSION_STATUS WHERE VARIABLE_NAME = "
                   "'Bytes_received'",
                   "information_schema");
}

/* Rows that are all new are not asked for afterwards. */
static void work_of_insert_mysql(const struct contract *c)
{
    enum { ROWS = 200, LENGTH = 200 };
    OWNED(site) struct site s = site_adopt(c);
    char ignored[200];
    /* MySQL keeps it elsewhere. */
    if (c->raw->ask(s.session,
                    "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS LIMIT 1", ignored,
                    sizeof ignored)) {
        site_table(&s, "bat_counted", "id VARCHAR(200) PRIMARY KEY, version BIGINT NOT NULL");
        int64_t before = bytes_received(&s);
        insert_texts(&s, ROWS, LENGTH);
        int64_t sent = bytes_received(&s) - before;
        if (!tap_ok(sent < ROWS * LENGTH * 3 / 2, "and their keys are sent once"))
            tap_note("%lld bytes were sent", (long long)sent);
    }
}

struct cost {
    size_t rows;
    bool stale; /* one of them */
    int chunk;
    bool all;
    int trips;
    const char *what;
};

/* Once before it counts: MySQL prepares what it has not seen on a connection. */
static void costs_are(const struct site *s, struct faultproxy *proxy, rowlock_db *db,
                      rowlock_table *t, enum op op, struct cost cost)
{
    CLOSED_BY(load_free) struct load l = load_new(30);
    int want = !cost.stale ? ROWLOCK_OK : op == INSERT ? ROWLOCK_EXISTS : ROWLOCK_STALE;
    for (int i = 0; i < 2; i++) {
        fill(s, 30);
        if (op == INSERT)
            site_run(s, "DELETE FROM bat_rows%s", cost.stale ? " WHERE id <> 4" : "");
        expect_version(&l, FIRST);
        l.changes[3].version += cost.stale ? 50 : 0;
        faultproxy_round_trips(proxy);
        is_result(db,
                  change_rows(t, op, l.changes, cost.rows,
                              HOW(.chunk = cost.chunk, .all_or_nothing = cost.all)),
                  want, "%s: %s%s", op_names[op], cost.what, i == 0 ? " for the first time" : "");
    }
    tap_is_int(faultproxy_round_trips(proxy), cost.trips, "takes %d round trips", cost.trips);
}

static void round_trips(const struct site *s)
{
    OWNED(text) char *url = NULL;
    OWNED(proxy) struct faultproxy *proxy = faultproxy_start(s->c->url, &url);
    if (!proxy) {
        tap_skip(1, "the URL has no host and port to put a proxy before");
        return;
    }
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(table) rowlock_table *t = open_rows(&(struct site){.c = s->c, .db = db}, NULL);
    /* There BEGIN goes along with what comes next, unless a pooler has to see it by itself. */
    int frame = is_postgres(s->c) && !s->c->pooled ? 1 : 2;
    for (int op = UPDATE; op <= REMOVE; op++) {
        int looks = op == INSERT && is_mysql(s->c); /* what it passed over */
        const struct cost all[] = {
            {30, false, 0, false, 1 + looks, "a chunk"},
            {30, true, 0, false, op == EXPECT ? 1 : 2 + looks,
             "a chunk with a row that is not changed"},
            {30, false, 10, false, 3 * (1 + looks), "three chunks"},
            {30, false, 10, true, 3 * (1 + looks) + frame, "three chunks, all or nothing,"},
            {1, false, 0, false, 1, "a row"},
            {4, true, 1, false, 5, "four rows one by one, one of them stale,"},
        };
        for (int i = 0; i < COUNT(all); i++)
            if ((op != EXPECT || !all[i].all) && (op == UPDATE || all[i].rows == 30))
                costs_are(s, proxy, db, t, (enum op)op, all[i]);
    }
}

void contract_batches(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "bat_rows",
               "id INT PRIMARY KEY, n INT, note VARCHAR(100), version BIGINT NOT NULL, "
               "CHECK (n < 1000000)");
    OWNED(table) rowlock_table *t = open_rows(&s, NULL);
    all_sizes(&s, t);
    all_mixed(&s, t);
    small_tables(&s);
    duplicates(&s, t);
    same_to_the_database(&s);
    kinds_of_parameters(&s);
    progress_is_told(&s, t);
    progress_stops(&s, t, false);
    progress_stops(&s, t, true);
    long_values(&s, 3, 3 << 20, 3);
    long_values(&s, 12, 300000, 4);
    for (int op = UPDATE; op <= INSERT; op += INSERT - UPDATE) {
        violation(&s, t, (enum op)op, false);
        violation(&s, t, (enum op)op, true);
    }
    kinds_of_violations(&s);
    if (c->has_server)
        round_trips(&s);
    if (is_postgres(c))
        work_of_insert_postgres(&s);
    if (is_mysql(c))
        work_of_insert_mysql(c);
}
