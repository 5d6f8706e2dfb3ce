/* SPDX-License-Identifier: MIT
 *
 * Many rows of the application's own table, changed under their versions: chunks, outcomes of each row, all or
 * nothing, progress, long values, violated constraints, and what it costs. One row is in versions.c.
 */
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static size_t count_results(const struct load *l, int result)
{
    size_t count = 0;
    for (size_t i = 0; i < l->n; i++)
        count += l->changes[i].result == result;
    return count;
}

/* ---- the table */

static rowlock_table *open_rows(const struct site *s, const char *set)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "bat_rows";
    about.key = NAMES("id");
    about.columns = NAMES("n", "note");
    about.set = set;
    about.first_version = FIRST;
    return must_describe(s, &about);
}

static void make_table(const struct site *s)
{
    site_table(s, "bat_rows",
               "id INT PRIMARY KEY, n INT, note VARCHAR(100), version BIGINT NOT NULL, "
               "CHECK (n < 1000000)");
}

/* Rows 1 to n of version FIRST. */
static void fill(const struct site *s, int n)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&sql, &size);
    fprintf(f, "INSERT INTO bat_rows VALUES ");
    for (int i = 1; i <= n; i++)
        fprintf(f, "%s(%d, 0, 'as it was', %d)", i > 1 ? ", " : "", i, FIRST);
    fclose(f);
    site_run(s, "DELETE FROM bat_rows");
    site_run(s, "%s", sql);
    free(sql);
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

static void all_at(const struct site *s, rowlock_table *t, size_t n, int chunk)
{
    struct load l = load_new(n);
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    char want[200];
    options.chunk = chunk;
    tap_note("%zu rows in chunks of %d", n, chunk);
    site_run(s, "DELETE FROM bat_rows");
    all_applied(s, &l, rowlock_insert(t, l.changes, n, &options), FIRST, "inserted");
    for (size_t i = 0; i < n; i++)
        l.values[2 * i].number = l.keys[i].number * 7;
    all_applied(s, &l, rowlock_update(t, l.changes, n, &options), FIRST + 1, "updated");
    for (size_t i = 0; i < n; i++)
        l.changes[i].version = FIRST + 1;
    all_applied(s, &l, rowlock_expect(t, l.changes, n, &options), FIRST + 1, "expected");
    all_applied(s, &l, rowlock_touch(t, l.changes, n, &options), FIRST + 2, "touched");
    snprintf(want, sizeof want, "%zu", n);
    site_finds(s, want, "all of them are there",
               "SELECT count(*) FROM bat_rows WHERE n = id * 7 AND version = %d", FIRST + 2);
    for (size_t i = 0; i < n; i++)
        l.changes[i].version = FIRST + 2;
    all_applied(s, &l, rowlock_remove(t, l.changes, n, &options), 0, "removed");
    site_finds(s, "0", "none is left", "SELECT count(*) FROM bat_rows");
    load_free(&l);
}

static void all_sizes(const struct site *s, rowlock_table *t)
{
    static const size_t sizes[] = {1, 2, 999, 1000, 1001, 2500};
    for (int i = 0; i < COUNT(sizes); i++)
        all_at(s, t, sizes[i], 1000);
    all_at(s, t, 2500, 0);
    all_at(s, t, 1001, 7);
    all_at(s, t, 2, 7);
    all_at(s, t, 7, 7);
    all_at(s, t, 50, 1);
    all_at(s, t, 2500, 10000);
}

/* ---- each outcome by its name */

enum { MIXED = 60 };

/* Of five rows two are as they should be; the others are newer, older, or gone. */
static void mix(const struct site *s)
{
    fill(s, MIXED);
    site_run(s, "UPDATE bat_rows SET version = %d WHERE id %% 5 = 1", FIRST + 3);
    site_run(s, "UPDATE bat_rows SET version = %d WHERE id %% 5 = 2", FIRST - 1);
    site_run(s, "DELETE FROM bat_rows WHERE id %% 5 = 3");
}

static int64_t mixed_version(int64_t id)
{
    static const int64_t versions[] = {FIRST, FIRST + 3, FIRST - 1, 0, FIRST};
    return versions[id % 5];
}

static int mixed_result(enum op op, int64_t id)
{
    static const int results[] = {ROWLOCK_OK, ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_GONE,
                                  ROWLOCK_OK};
    if (op != INSERT)
        return results[id % 5];
    return id % 5 == 3 ? ROWLOCK_OK : ROWLOCK_EXISTS;
}

static int64_t mixed_current(enum op op, int64_t id)
{
    bool good = mixed_result(op, id) == ROWLOCK_OK;
    if (op == INSERT)
        return good ? FIRST : mixed_version(id);
    if (good && op == REMOVE)
        return 0;
    return mixed_version(id) + (good && op != EXPECT);
}

/* What a row should say, where all was to be done or nothing. */
static void undone(enum op op, int64_t id, int *result, int64_t *current)
{
    if (*result != ROWLOCK_OK || op == EXPECT)
        return;
    *result = ROWLOCK_UNDONE;
    *current = op == INSERT ? 0 : mixed_version(id);
}

static void each_is_named(const struct load *l, enum op op, bool all_or_nothing)
{
    size_t named = 0;
    for (size_t i = 0; i < l->n; i++) {
        const rowlock_change *change = &l->changes[i];
        int64_t id = l->keys[i].number, current = mixed_current(op, id);
        int result = mixed_result(op, id);
        if (all_or_nothing)
            undone(op, id, &result, &current);
        bool right = change->result == result && change->current == current;
        named += right;
        if (!right)
            tap_note("row %lld says %s %lld, wanted %s %lld", (long long)id,
                     rowlock_result_name(change->result), (long long)change->current,
                     rowlock_result_name(result), (long long)current);
    }
    tap_is_int((long long)named, (long long)l->n, "each row is named with its reason");
}

static int first_reason(const struct load *l, enum op op)
{
    for (size_t i = 0; i < l->n; i++)
        if (mixed_result(op, l->keys[i].number) != ROWLOCK_OK)
            return mixed_result(op, l->keys[i].number);
    return ROWLOCK_OK;
}

static void so_many(const struct site *s, const char *want, const char *where, const char *what)
{
    site_finds(s, want, what, "SELECT count(*) FROM bat_rows WHERE %s", where);
}

/* Those that were applied, and no others. */
static void mixed_stands(const struct site *s, enum op op)
{
    switch (op) {
    case UPDATE:
        so_many(s, "24", "n = id * 3 AND version = 2 AND id % 5 IN (0, 4)", "what was updated");
        so_many(s, "24", "n = 0 AND id % 5 IN (1, 2)", "the others are as they were");
        break;
    case TOUCH:
        so_many(s, "24", "n = 0 AND version = 2", "what was touched");
        break;
    case INSERT:
        so_many(s, "12", "n = id * 3 AND id % 5 = 3", "what was inserted");
        so_many(s, "48", "n = 0", "the others are as they were");
        break;
    default:
        so_many(s, "24", "id % 5 IN (1, 2)", "what was not to be removed is there");
        so_many(s, "24", "1 = 1", "and nothing else");
    }
}

static void mixed_outcomes(const struct site *s, rowlock_table *t, enum op op, int chunk,
                           bool all_or_nothing)
{
    char before[400];
    struct load l = load_new(MIXED);
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    options.chunk = chunk;
    options.all_or_nothing = all_or_nothing;
    mix(s);
    digest(s, before, sizeof before);
    int result = change_rows(t, op, l.changes, l.n, &options);
    is_result(s->db, result, first_reason(&l, op), "%s in chunks of %d%s: what hindered the first",
              op_names[op], chunk, all_or_nothing ? ", all or nothing" : "");
    each_is_named(&l, op, all_or_nothing);
    if (all_or_nothing || op == EXPECT)
        stands(s, before, "nothing was changed");
    else
        mixed_stands(s, op);
    load_free(&l);
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
static void small_table(const struct site *s, const char *type, const char *const *names)
{
    char columns[200];
    rowlock_value n = rowlock_int(9);
    snprintf(columns, sizeof columns, "id %s NOT NULL PRIMARY KEY, n INT, version BIGINT NOT NULL",
             type);
    for (int op = UPDATE; op <= REMOVE; op++) {
        rowlock_value keys[4];
        rowlock_change changes[4];
        if (op == INSERT)
            continue;
        site_table(s, "bat_small", columns);
        site_run(s, "INSERT INTO bat_small VALUES ('%s', 0, 5), ('%s', 0, 1), ('%s', 0, 1)",
                 names[0], names[1], names[2]);
        rowlock_table *t = must_open_table(s, "bat_small", NAMES("n"));
        for (int i = 0; i < 4; i++) {
            keys[i] = rowlock_text(names[i]);
            changes[i] = (rowlock_change){.key = &keys[i], .values = &n, .version = 1};
        }
        is_result(s->db, change_rows(t, (enum op)op, changes, 4, NULL), ROWLOCK_STALE,
                  "%s: a small table by %s", op_names[op], type);
        tap_is_str(rowlock_result_name(changes[0].result), "ROWLOCK_STALE", "one is stale");
        tap_is_int(changes[0].current, 5, "with its version");
        tap_ok(changes[1].result == ROWLOCK_OK && changes[2].result == ROWLOCK_OK, "two are done");
        tap_is_str(rowlock_result_name(changes[3].result), "ROWLOCK_GONE", "one is gone");
        rowlock_table_close(t);
    }
    site_run(s, "DROP TABLE bat_small");
}

static void small_tables(const struct site *s)
{
    static const char *const ascii[] = {"a", "b", "c", "d"};
    small_table(s, "VARCHAR(20)", ascii);
    if (!is_mysql(s->c))
        return;
    small_table(s, "VARCHAR(20) CHARACTER SET latin1", ascii);
    small_table(s, "VARCHAR(20) CHARACTER SET utf8", ascii);
    small_table(s, "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ascii);
    small_table(s, "ENUM('a', 'b', 'c', 'd')", ascii);
}

/* All or nothing, and it is all. */
static void all_of_all(const struct site *s, rowlock_table *t)
{
    struct load l = load_new(20);
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    options.chunk = 7;
    options.all_or_nothing = 1;
    fill(s, 20);
    all_applied(s, &l, rowlock_update(t, l.changes, l.n, &options), FIRST + 1, "all or nothing");
    site_finds(s, "20", "is all", "SELECT count(*) FROM bat_rows WHERE n = id * 3 AND version = %d",
               FIRST + 1);
    load_free(&l);
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
    tap_is_int((long long)count_results(l, ROWLOCK_CANCELLED), (long long)l->n,
               "no row was reached");
    stands(s, before, "nothing was changed");
}

static void duplicates(const struct site *s, rowlock_table *t)
{
    struct load l = load_new(50);
    fill(s, 50);
    int64_t was = l.keys[49].number;
    l.keys[49].number = l.keys[3].number;
    for (int op = UPDATE; op <= REMOVE; op++)
        refused(s, t, &l, (enum op)op, "rows[3] and rows[49] have the same key");
    l.keys[49].number = was;
    l.keys[20] = rowlock_null();
    refused(s, t, &l, TOUCH, "rows[20]");
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_error(s->db, &error);
    tap_is_int(error.row, 20, "which is its index, as the error has it");
    load_free(&l);
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
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    site_table(s, "bat_same", "id DECIMAL(10,2) PRIMARY KEY, n INT, version BIGINT NOT NULL");
    about.name = "bat_same";
    about.key = NAMES("id");
    about.columns = NAMES("n");
    about.first_version = FIRST;
    rowlock_table *t = must_describe(s, &about);
    for (int i = 0; i < COUNT(each); i++)
        same_twice(s, t, each[i]);
    rowlock_table_close(t);
    site_run(s, "DROP TABLE bat_same");
}

/* ---- the application's own SQL */

static void kinds_of_parameters(const struct site *s)
{
    struct load l = load_new(30);
    rowlock_table *t = open_rows(s, "n = n + ?, note = ?");
    fill(s, 30);
    change_of(&l, 17)->values = VALUES(rowlock_decimal("1"), rowlock_null());
    refused(s, t, &l, UPDATE, "of another kind");
    change_of(&l, 17)->values = VALUES(rowlock_int(1), rowlock_null());
    change_of(&l, 18)->values = VALUES(rowlock_null(), rowlock_text("no n"));
    all_applied(s, &l, rowlock_update(t, l.changes, l.n, NULL), FIRST + 1, "NULL is of any kind");
    site_finds(s, "no n", "and is set", "SELECT note FROM bat_rows WHERE n IS NULL");
    site_finds(s, "28", "the others have what was given",
               "SELECT count(*) FROM bat_rows WHERE n = id * 3");
    rowlock_table_close(t);
    load_free(&l);
}

/* ---- progress */

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

static rowlock_change_options told_to(struct progress *p, int chunk)
{
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    options.chunk = chunk;
    options.progress = on_progress;
    options.context = p;
    return options;
}

static void progress_is_told(const struct site *s, rowlock_table *t)
{
    struct load l = load_new(25);
    struct progress p = {.calls = 0};
    rowlock_change_options options = told_to(&p, 10);
    fill(s, 25);
    all_applied(s, &l, rowlock_update(t, l.changes, l.n, &options), FIRST + 1, "with progress");
    tap_ok(p.calls == 2 && p.done[0] == 10 && p.done[1] == 20 && p.total == 25,
           "which is told after each chunk but the last");
    p = (struct progress){.calls = 0};
    is_result(s->db, rowlock_touch(t, l.changes, 10, &options), ROWLOCK_STALE, "a single chunk");
    tap_is_int(p.calls, 0, "is the last");
    load_free(&l);
}

static void progress_stops(const struct site *s, rowlock_table *t, bool all_or_nothing)
{
    struct load l = load_new(25);
    struct progress p = {.stop_at = 2};
    rowlock_change_options options = told_to(&p, 10);
    options.all_or_nothing = all_or_nothing;
    char before[400];
    fill(s, 25);
    digest(s, before, sizeof before);
    is_result(s->db, rowlock_update(t, l.changes, l.n, &options), ROWLOCK_CANCELLED,
              "stopped by progress%s", all_or_nothing ? ", all or nothing" : "");
    tap_is_int(p.calls, 2, "at its second call");
    size_t good = 0;
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
    load_free(&l);
}

/* ---- long values */

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
    struct load l = load_new(rows);
    struct progress p = {.calls = 0};
    rowlock_change_options options = told_to(&p, 0);
    rowlock_row row;
    size_t right = 0;
    site_table(s, "bat_long",
               is_mysql(s->c) ? "id INT PRIMARY KEY, note LONGTEXT, version BIGINT NOT NULL"
                              : "id INT PRIMARY KEY, note TEXT, version BIGINT NOT NULL");
    rowlock_table *t = must_open_table(s, "bat_long", NAMES("note"));
    char *text = long_text(length, '1'), *other = long_text(length, '2');
    for (size_t i = 0; i < rows; i++) {
        l.values[2 * i] = rowlock_text(text);
        l.changes[i].values = &l.values[2 * i];
    }
    is_result(s->db, rowlock_insert(t, l.changes, rows, &options), ROWLOCK_OK,
              "%zu rows of %zu bytes", rows, length);
    tap_is_int(p.calls + 1, chunks, "in chunks that are not too long");
    for (size_t i = 0; i < rows; i++) {
        l.values[2 * i] = rowlock_text(other);
        l.changes[i].version = l.changes[i].current;
    }
    p.calls = 0;
    is_result(s->db, rowlock_update(t, l.changes, rows, &options), ROWLOCK_OK, "all updated");
    tap_is_int(p.calls + 1, chunks, "in as many");
    for (size_t i = 0; i < rows; i++)
        right += rowlock_read(t, &l.keys[i], 0, &row) == ROWLOCK_OK &&
                 row.values[0].length == length && memcmp(row.values[0].text, other, length) == 0;
    tap_is_int((long long)right, (long long)rows, "and each is there, to the last byte");
    rowlock_table_close(t);
    free(text);
    free(other);
    load_free(&l);
}

/* ---- violated constraints */

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
    struct load l = load_new(30);
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    rowlock_error error = ROWLOCK_ERROR_INIT;
    char before[400];
    options.chunk = 10;
    options.all_or_nothing = all_or_nothing;
    fill(s, 30);
    if (op == INSERT)
        site_run(s, "DELETE FROM bat_rows");
    digest(s, before, sizeof before);
    change_of(&l, 15)->values = VALUES(rowlock_int(1000000), rowlock_null());
    change_of(&l, 29)->values = VALUES(rowlock_int(1000001), rowlock_null());
    is_result(s->db, change_rows(t, op, l.changes, l.n, &options), ROWLOCK_VIOLATION,
              "%s: a constraint is violated in two of three chunks%s", op_names[op],
              all_or_nothing ? ", all or nothing" : "");
    rows_are_named(&l, all_or_nothing);
    rowlock_db_error(s->db, &error);
    tap_is_int(error.constraint, ROWLOCK_CONSTRAINT_CHECK, "with the kind of the constraint");
    tap_ok(error.row == change_of(&l, 15) - l.changes || error.row == change_of(&l, 29) - l.changes,
           "and the index of one of them");
    if (all_or_nothing)
        stands(s, before, "nothing was changed");
    else
        site_finds(s, "28", "and so they stand", "SELECT count(*) FROM bat_rows WHERE n > 0");
    load_free(&l);
}

/* What the middle one of three rows would break. */
static void breaks(const struct site *s, rowlock_table *t, enum op op, const rowlock_value *wrong,
                   int constraint, const char *what)
{
    static const char *const words[] = {"a", "b", "c"};
    rowlock_value keys[3], values[3][3];
    rowlock_change changes[3];
    rowlock_error error = ROWLOCK_ERROR_INIT;
    for (int all = 0; all <= 1; all++) {
        rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
        options.all_or_nothing = all;
        site_run(s, "DELETE FROM bat_kinds");
        site_run(s, "INSERT INTO bat_kinds VALUES (9, 'taken', 0, 1, 1)");
        for (int i = 0; i < 3; i++) {
            if (op == UPDATE)
                site_run(s, "INSERT INTO bat_kinds VALUES (%d, '%d', 0, 1, 1)", i + 1, i);
            keys[i] = rowlock_int(i + 1);
            values[i][0] = rowlock_text(words[i]);
            values[i][1] = rowlock_int(1);
            values[i][2] = rowlock_int(1);
            changes[i] = (rowlock_change){
                .key = &keys[i], .values = i == 1 ? wrong : values[i], .version = FIRST};
        }
        is_result(s->db, change_rows(t, op, changes, 3, &options), ROWLOCK_VIOLATION, "%s: %s%s",
                  op_names[op], what, all ? ", all or nothing" : "");
        rowlock_db_error(s->db, &error);
        tap_is_int(error.constraint, constraint, "of which kind it is");
        tap_is_int(error.row, 1, "which row it is");
        int others = all ? ROWLOCK_UNDONE : ROWLOCK_OK;
        tap_ok(changes[0].result == others && changes[1].result == ROWLOCK_VIOLATION &&
                   changes[2].result == others,
               "the others are %s", rowlock_result_name(others));
        site_finds(s, all ? "0" : "2", "and so they stand",
                   "SELECT count(*) FROM bat_kinds WHERE n = 1");
    }
    is_result(s->db, change_rows(t, op, &changes[1], 1, NULL), ROWLOCK_VIOLATION, "by itself");
    rowlock_db_error(s->db, &error);
    tap_is_int(error.constraint, constraint, "it is the same");
    tap_is_int(error.row, 0, "and the first");
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
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "bat_kinds";
    about.key = NAMES("id");
    about.columns = NAMES("word", "n", "parent");
    about.first_version = FIRST;
    rowlock_table *t = must_describe(s, &about);
    rowlock_value one = rowlock_int(1);
    for (int op = UPDATE; op <= INSERT; op += INSERT - UPDATE) {
        breaks(s, t, (enum op)op, VALUES(rowlock_text("taken"), one, one),
               ROWLOCK_CONSTRAINT_UNIQUE, "another unique key");
        breaks(s, t, (enum op)op, VALUES(rowlock_text("b"), rowlock_int(100), one),
               ROWLOCK_CONSTRAINT_CHECK, "a check");
        breaks(s, t, (enum op)op, VALUES(rowlock_text("b"), rowlock_null(), one),
               ROWLOCK_CONSTRAINT_NOT_NULL, "a column that is not NULL");
        breaks(s, t, (enum op)op, VALUES(rowlock_text("b"), one, rowlock_int(2)),
               ROWLOCK_CONSTRAINT_FOREIGN_KEY, "a foreign key");
        if (!s->c->has_server) /* columns there have no size */
            continue;
        breaks(s, t, (enum op)op, VALUES(rowlock_text("too long"), one, one),
               ROWLOCK_CONSTRAINT_VALUE, "a text that is too long");
        breaks(s, t, (enum op)op, VALUES(rowlock_text("b"), rowlock_int(1LL << 40), one),
               ROWLOCK_CONSTRAINT_VALUE, "a number that is too large");
    }
    rowlock_table_close(t);
    site_run(s, "DROP TABLE bat_kinds");
    site_run(s, "DROP TABLE bat_parents");
}

/* ---- what it costs */

/* A key whose comparisons the database counts. */
static void work_of_insert_postgres(const struct site *s)
{
    enum { ROWS = 200 };
    site_run(s, "DROP TABLE IF EXISTS bat_counted");
    site_run(s, "DROP TYPE IF EXISTS bat_label CASCADE");
    site_run(s, "DROP SEQUENCE IF EXISTS bat_compared");
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
    rowlock_table *t = must_open_table(s, "bat_counted", NULL);
    struct load l = load_new(ROWS);
    char texts[ROWS][16];
    for (int i = 0; i < ROWS; i++) {
        snprintf(texts[i], sizeof texts[i], "%d", i + 1);
        l.keys[i] = rowlock_text(texts[i]);
        l.changes[i].key = &l.keys[i];
    }
    is_result(s->db, rowlock_insert(t, l.changes, ROWS, NULL), ROWLOCK_OK, "new rows are inserted");
    site_finds(s, "t", "without comparing each of them with each other",
               "SELECT last_value < 10 * %d FROM bat_compared", ROWS);
    load_free(&l);
    rowlock_table_close(t);
    site_run(s, "DROP TABLE bat_counted");
    site_run(s, "DROP TYPE bat_label CASCADE");
    site_run(s, "DROP SEQUENCE bat_compared");
}

static int64_t bytes_received(const struct site *s)
{
    return raw_int(s->c->raw, s->session,
                   "SELECT VARIABLE_VALUE FROM %s.SESSION_STATUS WHERE VARIABLE_NAME = "
                   "'Bytes_received'",
                   "information_schema");
}

/* Of rows that are all new nothing is asked afterwards that names them. */
static void work_of_insert_mysql(const struct contract *c)
{
    enum { ROWS = 200, LENGTH = 200 };
    struct site s = site_adopt(c);
    char texts[ROWS][LENGTH + 1], ignored[200];
    if (!c->raw->ask(s.session,
                     "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS LIMIT 1",
                     ignored, sizeof ignored)) {
        site_close(&s);
        return; /* MySQL keeps it elsewhere */
    }
    site_table(&s, "bat_counted", "id VARCHAR(200) PRIMARY KEY, version BIGINT NOT NULL");
    rowlock_table *t = must_open_table(&s, "bat_counted", NULL);
    struct load l = load_new(ROWS);
    for (int i = 0; i < ROWS; i++) {
        snprintf(texts[i], sizeof texts[i], "%0*d", LENGTH, i);
        l.keys[i] = rowlock_text(texts[i]);
        l.changes[i].key = &l.keys[i];
    }
    int64_t before = bytes_received(&s);
    is_result(s.db, rowlock_insert(t, l.changes, ROWS, NULL), ROWLOCK_OK, "new rows are inserted");
    int64_t sent = bytes_received(&s) - before;
    if (!tap_ok(sent < ROWS * LENGTH * 3 / 2, "and their keys are sent once"))
        tap_note("%lld bytes were sent", (long long)sent);
    load_free(&l);
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE bat_counted");
    site_close(&s);
}

struct costs {
    const struct contract *c;
    struct faultproxy *proxy;
    struct load *l;
    rowlock_db *db;
    rowlock_table *t;
};

static void fresh_versions(struct load *l, int64_t version, int stale)
{
    for (size_t i = 0; i < l->n; i++)
        l->changes[i].version = version + (stale && i == 3 ? 50 : 0);
}

static void costs_are(struct costs *k, enum op op, size_t n, const rowlock_change_options *options,
                      int want_result, int want_trips, const char *what)
{
    faultproxy_round_trips(k->proxy);
    is_result(k->db, change_rows(k->t, op, k->l->changes, n, options), want_result, "%s: %s",
              op_names[op], what);
    tap_is_int(faultproxy_round_trips(k->proxy), want_trips, "takes %d round trips", want_trips);
}

/* Once before it counts: MySQL prepares what it has not seen on a connection. */
static void twice(struct costs *k, const struct site *s, enum op op, size_t n, bool stale,
                  int chunk, bool all, int trips, const char *what)
{
    rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
    options.chunk = chunk;
    options.all_or_nothing = all;
    for (int i = 0; i < 2; i++) {
        fill(s, 30);
        if (op == INSERT)
            site_run(s, "DELETE FROM bat_rows%s", stale ? " WHERE id <> 4" : "");
        fresh_versions(k->l, FIRST, stale);
        if (i == 1)
            faultproxy_round_trips(k->proxy);
        int want = !stale ? ROWLOCK_OK : op == INSERT ? ROWLOCK_EXISTS : ROWLOCK_STALE;
        if (i == 1)
            costs_are(k, op, n, &options, want, trips, what);
        else
            is_result(k->db, change_rows(k->t, op, k->l->changes, n, &options), want,
                      "%s: for the first time", op_names[op]);
    }
}

static void round_trips(const struct site *s, struct faultproxy *proxy, const char *url)
{
    struct site through = *s;
    struct load l = load_new(30);
    through.db = must_open(url);
    /* There BEGIN goes along with what comes next, unless a pooler has to see it by itself. */
    int frame = is_postgres(s->c) && !s->c->pooled ? 1 : 2;
    struct costs k = {.c = s->c, .proxy = proxy, .l = &l, .db = through.db};
    k.t = open_rows(&through, NULL);
    twice(&k, s, UPDATE, 1, false, 0, false, 1, "a row");
    twice(&k, s, UPDATE, 4, true, 1, false, 5, "four rows one by one, one of them stale,");
    for (int op = UPDATE; op <= REMOVE; op++) {
        int looks = op == INSERT && is_mysql(s->c); /* what it passed over */
        twice(&k, s, (enum op)op, 30, false, 0, false, 1 + looks, "a chunk");
        twice(&k, s, (enum op)op, 30, true, 0, false, op == EXPECT ? 1 : 2 + looks,
              "a chunk with a row that is not changed");
        twice(&k, s, (enum op)op, 30, false, 10, false, 3 * (1 + looks), "three chunks");
        if (op != EXPECT)
            twice(&k, s, (enum op)op, 30, false, 10, true, 3 * (1 + looks) + frame,
                  "three chunks, all or nothing,");
    }
    rowlock_table_close(k.t);
    rowlock_db_close(through.db);
    load_free(&l);
}

static void costs(const struct site *s)
{
    char *url = NULL;
    struct faultproxy *proxy = s->c->has_server ? faultproxy_start(s->c->url, &url) : NULL;
    if (!proxy) {
        if (s->c->has_server)
            tap_skip(1, "the URL has no host and port to put a proxy before");
        return;
    }
    round_trips(s, proxy, url);
    faultproxy_stop(proxy);
    free(url);
}

void contract_batches(const struct contract *c)
{
    struct site s = site_open(c);
    make_table(&s);
    rowlock_table *t = open_rows(&s, NULL);
    all_sizes(&s, t);
    all_mixed(&s, t);
    all_of_all(&s, t);
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
    costs(&s);
    if (is_postgres(c))
        work_of_insert_postgres(&s);
    if (is_mysql(c))
        work_of_insert_mysql(c);
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE bat_rows");
    site_run(&s, "DROP TABLE bat_long");
    site_close(&s);
}
