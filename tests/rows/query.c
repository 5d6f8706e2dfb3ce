/* SPDX-License-Identifier: MIT
 *
 * Statements about the application's own tables, and the transactions around them, as a driver carries
 * them out. What is made of that for whoever uses the library is not here.
 */
#include "scene.h"

#include <float.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail_alloc.h"
#include "seam/seam.h"

enum { COLUMNS = 7, CELLS_MAX = 10, LONG = 1024 * 1024, MANY_TEXTS = 100, DEADLINE_MS = 10000 };

/* The last row that was given, copied. */
struct answer {
    int rows;
    int wanted; /* rows, then it stops; 0: all */
    size_t count;
    rowlock_value cells[CELLS_MAX];
};

struct desk {
    const struct contract *c;
    rowlock_db *db;
    void *session; /* the application's; NULL: the connection is the library's own */
    const char *whose;
    struct rlk_call call; /* what the last one said */
    struct answer answer;
    int64_t changed;
};

#define VALUES(...)                       \
    (const rowlock_value[]){__VA_ARGS__}, \
        sizeof((rowlock_value[]){__VA_ARGS__}) / sizeof(rowlock_value)
#define NOTHING NULL, 0

/* ---- asking */

static struct desk open_desk(const struct contract *c, bool adopted)
{
    struct desk d = {.c = c, .whose = adopted ? "adopted" : "own"};
    if (adopted)
        d.session = c->raw->open(c->url);
    d.db = adopted ? adopt_with(c, d.session, NULL) : must_open(c->url);
    return d;
}

static void clear_answer(struct answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        free((void *)(uintptr_t)answer->cells[i].text);
    *answer = (struct answer){.wanted = answer->wanted};
}

static void close_desk(struct desk *d)
{
    clear_answer(&d->answer);
    rowlock_db_close(d->db);
    if (d->session)
        d->c->raw->close(d->session);
}

static int take_row(void *context, const rowlock_value *cells, size_t count)
{
    struct answer *answer = context;
    int rows = answer->rows + 1;
    clear_answer(answer);
    answer->rows = rows;
    answer->count = count < CELLS_MAX ? count : CELLS_MAX;
    for (size_t i = 0; i < answer->count; i++) {
        answer->cells[i] = cells[i];
        if (!cells[i].text)
            continue;
        char *copy = malloc(cells[i].length + 1);
        if (!copy)
            abort();
        memcpy(copy, cells[i].text, cells[i].length);
        answer->cells[i].text = copy;
    }
    return rows == answer->wanted;
}

/* Tests mark each parameter with a question mark. */
static void write_markers(const struct desk *d, const char *sql, char *out, size_t cap)
{
    size_t length = 0;
    int number = 0;
    for (; *sql && length + 8 < cap; sql++) {
        if (*sql == '?' && d->db->backend->marker == '$')
            length += (size_t)snprintf(out + length, cap - length, "$%d", ++number);
        else
            out[length++] = *sql;
    }
    out[length] = '\0';
}

static struct rlk_call call_at(enum rlk_where where)
{
    return (struct rlk_call){.deadline_us = rlk_now_us() + slow_ms(DEADLINE_MS) * 1000,
                             .where = where};
}

/* Texts with the same id must be the same, in this process, for ever. */
static uint64_t new_id(void)
{
    static uint64_t last = (uint64_t)1 << 40;
    return ++last;
}

static enum rlk_class run(struct desk *d, struct rlk_query *query, enum rlk_where where)
{
    char sql[1000];
    write_markers(d, query->sql, sql, sizeof sql);
    query->sql = sql;
    clear_answer(&d->answer);
    d->call = call_at(where);
    enum rlk_class class = d->db->backend->query(d->db->conn, &d->call, query);
    d->changed = query->changed;
    return class;
}

static enum rlk_class ask_at(struct desk *d, enum rlk_where where, uint64_t id, const char *sql,
                             const rowlock_value *values, size_t count)
{
    struct rlk_query query = {.id = id,
                              .sql = sql,
                              .values = values,
                              .count = count,
                              .each = take_row,
                              .context = &d->answer,
                              .changed = -1};
    return run(d, &query, where);
}

static enum rlk_class ask(struct desk *d, uint64_t id, const char *sql, const rowlock_value *values,
                          size_t count)
{
    return ask_at(d, RLK_EITHER, id, sql, values, count);
}

/* Where nobody wants rows. */
static enum rlk_class tell(struct desk *d, const char *sql, const rowlock_value *values,
                           size_t count)
{
    struct rlk_query query = {.sql = sql, .values = values, .count = count, .changed = -1};
    return run(d, &query, RLK_EITHER);
}

static enum rlk_class frame(struct desk *d, enum rlk_frame what)
{
    d->call = call_at(RLK_EITHER);
    return d->db->backend->frame(d->db->conn, &d->call, what);
}

/* ---- checks */

static const char *class_name(enum rlk_class class)
{
    static const char *const names[] = {
        "DONE",    "CONTENTION",  "UNSENT", "UNCERTAIN", "READONLY", "SCHEMA",    "DENIED",
        "INVALID", "UNSUPPORTED", "IN_TX",  "NO_TX",     "NOMEM",    "VIOLATION", "REFUSED",
    };
    return names[class];
}

static bool is_class(const struct desk *d, enum rlk_class got, enum rlk_class want,
                     const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool passed = tap_is_str(class_name(got), class_name(want), "%s: %s", d->whose, text);
    if (!passed && got != RLK_DONE)
        tap_note("%s", d->call.text);
    return passed;
}

static void has_number(const struct desk *d, int64_t want, const char *what)
{
    const rowlock_value *cell = &d->answer.cells[0];
    bool is_number = d->answer.count > 0 && cell->kind == ROWLOCK_INT;
    tap_ok(is_number && cell->number == want, "%s: %s: %lld", d->whose, what, (long long)want);
    if (is_number && cell->number != want)
        tap_note("it is %lld", (long long)cell->number);
}

static void stand(const struct desk *d, int rows, int sum, const char *what)
{
    tap_is_int(db_int(d->c->raw, d->c->url,
                      "SELECT count(*) * 1000 + coalesce(sum(id), 0) "
                      "FROM query_rules"),
               rows * 1000 + sum, "%s: %s", d->whose, what);
}

/* ---- tables */

static void make_table(const struct contract *c)
{
    db_exec(c->raw, c->url, "DROP TABLE IF EXISTS query_data");
    db_exec(c->raw, c->url,
            "CREATE TABLE query_data (id INTEGER PRIMARY KEY, i BIGINT, r DOUBLE PRECISION, "
            "d %s, t %s, b %s, o BOOLEAN, m %s)%s",
            is_sqlite(c) ? "TEXT" : "DECIMAL(65,5)",
            is_mysql(c) ? "LONGTEXT CHARACTER SET utf8mb4" : "TEXT",
            is_mysql(c)      ? "LONGBLOB"
            : is_postgres(c) ? "BYTEA"
                             : "BLOB",
            is_mysql(c)      ? "DATETIME(6)"
            : is_postgres(c) ? "TIMESTAMP"
                             : "TEXT",
            is_mysql(c) ? " ENGINE = InnoDB" : "");
}

/* Its rules are there to be broken; rows from 1 to so many. */
static void make_rules(const struct contract *c, int rows)
{
    db_exec(c->raw, c->url, "DROP TABLE IF EXISTS query_rules");
    db_exec(c->raw, c->url,
            "CREATE TABLE query_rules (id INTEGER PRIMARY KEY, word VARCHAR(5) NOT NULL, "
            "n INTEGER, CHECK (n < 100))%s",
            is_mysql(c) ? " ENGINE = InnoDB" : "");
    for (int i = 1; i <= rows; i++)
        db_exec(c->raw, c->url, "INSERT INTO query_rules VALUES (%d, 'w%d', 0)", i, i);
}

/* ---- values */

/* As what a value comes back: not every database has a type for it. */
static rowlock_kind kind_back(const struct contract *c, rowlock_kind kind)
{
    if (kind == ROWLOCK_BOOL)
        return is_postgres(c) ? ROWLOCK_BOOL : ROWLOCK_INT;
    if ((kind == ROWLOCK_DECIMAL || kind == ROWLOCK_TIME) && is_sqlite(c))
        return ROWLOCK_TEXT;
    return kind;
}

static bool is_same(const struct contract *c, const rowlock_value *got, const rowlock_value *given)
{
    if (got->kind != kind_back(c, given->kind))
        return false;
    switch (given->kind) {
    case ROWLOCK_NULL:
        return true;
    case ROWLOCK_INT:
    case ROWLOCK_BOOL:
        return got->number == given->number;
    case ROWLOCK_REAL: /* -0.0, which SQLite does not keep, is 0.0 */
        return !(got->real < given->real) && !(got->real > given->real);
    default:
        return got->length == given->length && memcmp(got->text, given->text, given->length) == 0;
    }
}

static void come_back(struct desk *d, uint64_t insert, uint64_t read, int id,
                      const rowlock_value given[COLUMNS], const char *what)
{
    rowlock_value values[COLUMNS + 1] = {rowlock_int(id)};
    memcpy(values + 1, given, COLUMNS * sizeof *given);
    const char *sql = is_mysql(d->c) ? "INSERT INTO query_data VALUES (?, ?, ?, ?, "
                                       "CONVERT(? USING utf8mb4), ?, ?, ?)"
                                     : "INSERT INTO query_data VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    is_class(d, ask(d, insert, sql, values, COLUMNS + 1), RLK_DONE, "%s go in", what);
    tap_is_int(d->changed, 1, "one row");
    is_class(d, ask(d, read, "SELECT i, r, d, t, b, o, m FROM query_data WHERE id = ?", values, 1),
             RLK_DONE, "%s come out", what);
    tap_is_int(d->answer.rows, 1, "one row");
    for (size_t i = 0; i < COLUMNS && d->answer.count == COLUMNS; i++) {
        const rowlock_value *got = &d->answer.cells[i];
        if (!tap_ok(is_same(d->c, got, &given[i]), "%s: column %zu is what was given", what, i))
            tap_note("kind %d number %lld real %.17g text %.*s", got->kind, (long long)got->number,
                     got->real, got->text ? (int)got->length : 0, got->text ? got->text : "");
    }
}

/* With each character's bytes at every place of a page, sooner or later. */
static char *long_text(void)
{
    static const char piece[] = "1234567 \xc3\xbc \xe7\x8b\x90 \xf0\x9f\xa6\x8a ";
    char *text = malloc(LONG + sizeof piece);
    if (!text)
        abort();
    for (size_t at = 0; at < LONG; at += sizeof piece - 1)
        memcpy(text + at, piece, sizeof piece);
    return text;
}

static char *long_bytes(void)
{
    char *bytes = malloc(LONG);
    if (!bytes)
        abort();
    for (size_t i = 0; i < LONG; i++)
        bytes[i] = (char)(i * i >> 3);
    return bytes;
}

static void every_kind(const struct contract *c, bool adopted, bool kept)
{
    struct desk d = open_desk(c, adopted);
    uint64_t insert = kept ? new_id() : 0, read = kept ? new_id() : 0;
    static const char bytes[] = "\0\1'\\\0\xff\xfe";
    char *text = long_text(), *noise = long_bytes();
    const rowlock_value rows[][COLUMNS] = {
        {rowlock_int(INT64_MIN), rowlock_real(0.1),
         rowlock_decimal("1234567890123456789012345678901234567890123456789012345.67891"),
         rowlock_text(
             "F\xc3\xbc"
             "chse, \xe7\x8b\x90, \xf0\x9f\xa6\x8a: 'so' \"to\" \\say, 100% {\"ja\",NULL}"),
         rowlock_bytes(bytes, sizeof bytes - 1), rowlock_bool(1),
         rowlock_time("2026-01-02 03:04:05.678901")},
        {rowlock_int(INT64_MAX), rowlock_real(-0.0), rowlock_decimal("-0.00001"), rowlock_text(""),
         rowlock_bytes("", 0), rowlock_bool(0), rowlock_time("1999-12-31 23:59:59.999999")},
        {rowlock_null(), rowlock_null(), rowlock_null(), rowlock_null(), rowlock_null(),
         rowlock_null(), rowlock_null()},
        {rowlock_int(0), rowlock_real(DBL_MAX), rowlock_decimal("0.00000"),
         rowlock_textn(ROWLOCK_TEXT, text, strlen(text)), rowlock_bytes(noise, LONG),
         rowlock_bool(1), rowlock_time("2026-01-02 03:04:05.000001")},
        {rowlock_int(-1), rowlock_real(DBL_MIN), rowlock_decimal("19.90000"),
         rowlock_textn(ROWLOCK_TEXT, "no terminator", 2), rowlock_bytes("\0", 1), rowlock_null(),
         rowlock_textn(ROWLOCK_TIME, "2026-01-02 03:04:05.000001 and more", 26)},
    };
    static const char *const words[] = {"values of each kind", "empty ones", "NULLs", "long ones",
                                        "parts of texts"};
    make_table(c);
    for (int i = 0; i < 5; i++)
        come_back(&d, insert, read, i + 1, rows[i], words[i]);
    free(text);
    free(noise);
    close_desk(&d);
}

/* ---- statements that are kept prepared */

/* As core does it where nothing was begun. What was kept prepared may have to be forgotten first. */
static enum rlk_class ask_again(struct desk *d, uint64_t id, const char *sql,
                                const rowlock_value *values, size_t count)
{
    enum rlk_class class = RLK_CONTENTION;
    for (int i = 0; i < 3 && class == RLK_CONTENTION; i++)
        class = ask(d, id, sql, values, count);
    return class;
}

static void prepared_again(const struct contract *c, bool adopted)
{
    struct desk d = open_desk(c, adopted);
    uint64_t ids[MANY_TEXTS];
    int right = 0;
    for (int i = 0; i < MANY_TEXTS; i++)
        ids[i] = new_id();
    for (int i = 0; i < 3 * MANY_TEXTS; i++) {
        char sql[40];
        int which = i % MANY_TEXTS;
        snprintf(sql, sizeof sql, "SELECT %d + ?", 1000 * which);
        enum rlk_class class = ask(&d, ids[which], sql, VALUES(rowlock_int(i)));
        right +=
            class == RLK_DONE && d.answer.rows == 1 && d.answer.cells[0].number == 1000 * which + i;
    }
    tap_is_int(right, 3 * MANY_TEXTS, "%s: each of %d texts has its own answer, again and again",
               d.whose, MANY_TEXTS);
    uint64_t id = new_id();
    is_class(&d, ask(&d, id, "SELECT n FROM query_nowhere", NOTHING), RLK_INVALID,
             "a table that is not there");
    db_exec(c->raw, c->url, "CREATE TABLE query_nowhere (n INTEGER)");
    db_exec(c->raw, c->url, "INSERT INTO query_nowhere VALUES (7)");
    is_class(&d, ask(&d, id, "SELECT n FROM query_nowhere", NOTHING), RLK_DONE,
             "the same text once it is");
    has_number(&d, 7, "the right answer");
    db_exec(c->raw, c->url, "DROP TABLE query_nowhere");
    is_class(&d, ask_again(&d, id, "SELECT n FROM query_nowhere", NOTHING), RLK_INVALID,
             "and when it is gone again");
    close_desk(&d);
}

static void table_altered(const struct contract *c, bool adopted)
{
    struct desk d = open_desk(c, adopted);
    uint64_t read = new_id(), write = new_id();
    const char *select = "SELECT * FROM query_rules WHERE id = ?";
    const char *update = "UPDATE query_rules SET n = n + 1 WHERE id = ?";
    make_rules(c, 2);
    for (int i = 0; i < 2; i++) {
        is_class(&d, ask(&d, read, select, VALUES(rowlock_int(1))), RLK_DONE, "a row is read");
        is_class(&d, ask(&d, write, update, VALUES(rowlock_int(1))), RLK_DONE, "and changed");
    }
    tap_is_int((long long)d.answer.count, 0, "an update has no rows");
    db_exec(c->raw, c->url, "ALTER TABLE query_rules ADD COLUMN more INTEGER");
    is_class(&d, ask_again(&d, read, select, VALUES(rowlock_int(1))), RLK_DONE,
             "a column was added: it is read all the same");
    tap_is_int((long long)d.answer.count, 4, "with the new column");
    tap_is_int(d.answer.cells[3].kind, ROWLOCK_NULL, "which is NULL");
    is_class(&d, ask_again(&d, write, update, VALUES(rowlock_int(1))), RLK_DONE, "and changed");
    make_rules(c, 2);
    is_class(&d, ask_again(&d, read, select, VALUES(rowlock_int(2))), RLK_DONE,
             "the table was made anew: it is read");
    tap_is_int((long long)d.answer.count, 3, "as it is now");
    is_class(&d, ask_again(&d, write, update, VALUES(rowlock_int(2))), RLK_DONE, "and changed");
    tap_is_int(d.changed, 1, "one row");
    close_desk(&d);
}

/* ---- rows and counts */

static void rows_stop(const struct contract *c, bool adopted)
{
    struct desk d = open_desk(c, adopted);
    uint64_t id = new_id();
    make_rules(c, 5);
    d.answer.wanted = 2;
    for (int i = 0; i < 2; i++) {
        is_class(&d, ask(&d, id, "SELECT id FROM query_rules ORDER BY id", NOTHING), RLK_DONE,
                 "who takes the rows has enough");
        tap_is_int(d.answer.rows, 2, "and is given no more");
        has_number(&d, 2, "the last one");
    }
    if (!is_mysql(c)) {
        const char *sql = "UPDATE query_rules SET n = n + 1 RETURNING id";
        is_class(&d, ask(&d, 0, sql, NOTHING), RLK_DONE, "so it is with what an update returns");
        tap_is_int(d.answer.rows, 2, "no more rows than were wanted");
        tap_is_int(d.changed, 5, "yet all of it is done");
        tap_is_int(db_int(c->raw, c->url, "SELECT sum(n) FROM query_rules"), 5, "and stays");
    }
    is_class(&d, tell(&d, "SELECT id FROM query_rules", NOTHING), RLK_DONE,
             "rows that nobody wants");
    d.answer.wanted = 0;
    is_class(&d, ask(&d, id, "SELECT id FROM query_rules ORDER BY id", NOTHING), RLK_DONE,
             "and all of them");
    tap_is_int(d.answer.rows, 5, "as many as there are");
    is_class(&d, ask(&d, 0, "SELECT id FROM query_rules WHERE id > 5", NOTHING), RLK_DONE, "none");
    tap_is_int(d.answer.rows, 0, "no row is an answer");
    close_desk(&d);
}

static void counts(const struct contract *c, bool adopted)
{
    static const struct {
        const char *sql;
        int changed;
    } steps[] = {
        {"INSERT INTO query_rules VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)", 3},
        {"UPDATE query_rules SET n = n + 1 WHERE id > 1", 2},
        {"UPDATE query_rules SET n = n + 1 WHERE id > 3", 0},
        {"DELETE FROM query_rules WHERE id = 2", 1},
        {"DELETE FROM query_rules WHERE id = 2", 0},
        {"INSERT INTO query_rules SELECT id + 10, word, n FROM query_rules", 2},
        {"CREATE TABLE query_more (n INTEGER)", 0},
        {"DROP TABLE query_more", 0},
    };
    struct desk d = open_desk(c, adopted);
    make_rules(c, 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        is_class(&d, tell(&d, steps[i].sql, NOTHING), RLK_DONE, "%s", steps[i].sql);
        tap_is_int(d.changed, steps[i].changed, "changes so many rows");
    }
    close_desk(&d);
}

/* ---- errors */

static void errors(const struct contract *c, bool adopted)
{
    static const struct {
        enum rlk_class want;
        const char *what, *sql;
        const char *value;
    } cases[] = {
        {RLK_VIOLATION, "a key twice", "INSERT INTO query_rules VALUES (1, 'x', 0)", NULL},
        {RLK_VIOLATION, "NULL where none may be", "INSERT INTO query_rules VALUES (7, NULL, 0)",
         NULL},
        {RLK_VIOLATION, "a check", "INSERT INTO query_rules VALUES (7, 'x', 100)", NULL},
        {RLK_INVALID, "no such column", "UPDATE query_rules SET colour = 1", NULL},
        {RLK_INVALID, "no such table", "UPDATE query_rule SET n = 1", NULL},
        {RLK_INVALID, "no such function", "UPDATE query_rules SET n = query_twice(n)", NULL},
        {RLK_INVALID, "wrong SQL", "UPDATE query_rules SET SET n = 1", NULL},
        {RLK_INVALID, "two statements",
         "UPDATE query_rules SET n = 1; UPDATE query_rules SET n = 2", NULL},
        {RLK_INVALID, "a comment in front of a condition",
         "UPDATE query_rules SET n = 1 -- WHERE word = ?", "w1"},
        {RLK_VIOLATION, "a word for a number", "INSERT INTO query_rules VALUES (?, 'x', 0)",
         "seven"},
        {RLK_INVALID, "a value too few", "INSERT INTO query_rules VALUES (7, ?, ?)", "x"},
    };
    struct desk d = open_desk(c, adopted);
    make_rules(c, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t id = new_id();
        rowlock_value value = rowlock_text(cases[i].value);
        for (int again = 0; again < 2; again++) {
            enum rlk_class got = ask_again(&d, id, cases[i].sql, &value, cases[i].value != NULL);
            is_class(&d, got, cases[i].want, "%s%s", cases[i].what, again ? ", again" : "");
            tap_ok(d.call.text[0], "and told why: %s", d.call.text);
        }
    }
    is_class(&d, tell(&d, "UPDATE query_rules SET n = n + 1", NOTHING), RLK_DONE,
             "the connection goes on");
    tap_is_int(db_int(c->raw, c->url, "SELECT sum(n) FROM query_rules"), 1,
               "nothing else was done meanwhile");
    close_desk(&d);
}

static void values_too_big(const struct contract *c)
{
    struct desk d = open_desk(c, false);
    make_rules(c, 1);
    is_class(&d,
             tell(&d, "UPDATE query_rules SET n = ? WHERE id = 1", VALUES(rowlock_int(INT64_MAX))),
             RLK_VIOLATION, "a number that its column cannot hold");
    is_class(&d, tell(&d, "UPDATE query_rules SET n = n - 2147483640 - 100 WHERE id = 1", NOTHING),
             RLK_VIOLATION, "nor by adding");
    const char *sql = is_mysql(c) ? "UPDATE query_rules SET word = CONVERT(? USING utf8mb4)"
                                  : "UPDATE query_rules SET word = ?";
    is_class(&d, tell(&d, sql, VALUES(rowlock_text("longer"))), RLK_VIOLATION,
             "a text that is too long");
    close_desk(&d);
}

/* The same step with the first, the second, ... allocation failing, until none does. */
static void no_memory(const struct contract *c, bool adopted)
{
    struct desk d = open_desk(c, adopted);
    uint64_t insert = new_id(), read = new_id();
    enum rlk_class class = RLK_NOMEM;
    make_rules(c, 0);
    for (int nth = 1; nth < 20 && class == RLK_NOMEM; nth++) {
        fail_alloc_at(nth);
        class = ask(&d, insert, "INSERT INTO query_rules VALUES (?, ?, 0)",
                    VALUES(rowlock_int(1), rowlock_text("x")));
        fail_alloc_at(0);
        stand(&d, class == RLK_DONE, class == RLK_DONE, "a row is there if it was done");
    }
    is_class(&d, class, RLK_DONE, "done once there is memory");
    class = RLK_NOMEM;
    for (int nth = 1; nth < 20 && class == RLK_NOMEM; nth++) {
        fail_alloc_at(nth);
        class = ask(&d, read, "SELECT id FROM query_rules WHERE id = ?", VALUES(rowlock_int(1)));
        fail_alloc_at(0);
    }
    is_class(&d, class, RLK_DONE, "read once there is memory");
    has_number(&d, 1, "the row");
    close_desk(&d);
}

/* ---- transactions */

static enum rlk_class insert(struct desk *d, enum rlk_where where, int id)
{
    static uint64_t kept;
    if (!kept)
        kept = new_id();
    return ask_at(d, where, kept, "INSERT INTO query_rules VALUES (?, 'x', 0)",
                  VALUES(rowlock_int(id)));
}

static void is_inside(struct desk *d, bool want, const char *what)
{
    is_class(d, frame(d, RLK_LOOK), RLK_DONE, "a look");
    tap_is_int(d->call.inside, want, "%s", what);
}

static void wrong_places(struct desk *d)
{
    static const enum rlk_frame need_tx[] = {RLK_COMMIT, RLK_ROLLBACK, RLK_SAVE, RLK_KEEP,
                                             RLK_UNDO};
    make_rules(d->c, 0);
    is_inside(d, false, "nothing is open");
    for (size_t i = 0; i < sizeof need_tx / sizeof need_tx[0]; i++)
        is_class(d, frame(d, need_tx[i]), RLK_NO_TX, "frame %d outside", need_tx[i]);
    is_class(d, insert(d, RLK_INSIDE, 1), RLK_NO_TX, "a statement that belongs inside");
    is_class(d, insert(d, RLK_EITHER, 2), RLK_DONE, "one that may be anywhere");
    tap_ok(!d->call.inside, "was outside");
    is_class(d, insert(d, RLK_OUTSIDE, 3), RLK_DONE, "one that belongs outside");
    stand(d, 2, 5, "what was done stands at once");
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_inside(d, true, "a transaction is open");
    is_class(d, frame(d, RLK_BEGIN), RLK_IN_TX, "begin once more");
    is_class(d, insert(d, RLK_OUTSIDE, 4), RLK_IN_TX, "a statement that belongs outside");
    is_class(d, insert(d, RLK_INSIDE, 5), RLK_DONE, "one that belongs inside");
    tap_ok(d->call.inside, "was inside");
    is_class(d, insert(d, RLK_EITHER, 6), RLK_DONE, "one that may be anywhere");
    tap_ok(d->call.inside, "was inside");
    stand(d, 2, 5, "nothing of it is seen before the end");
    is_class(d, frame(d, RLK_COMMIT), RLK_DONE, "commit");
    stand(d, 4, 16, "all of it after it");
    is_inside(d, false, "nothing is open");
    is_class(d, frame(d, RLK_COMMIT), RLK_NO_TX, "commit once more");
}

static void rolled_back(struct desk *d)
{
    make_rules(d->c, 0);
    for (int i = 0; i < 2; i++) {
        is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
        is_class(d, insert(d, RLK_EITHER, 1), RLK_DONE, "insert");
        is_class(d, frame(d, RLK_ROLLBACK), RLK_DONE, "roll back");
        stand(d, 0, 0, "nothing was done");
    }
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(d, frame(d, RLK_COMMIT), RLK_DONE, "and commit nothing");
}

static void savepoints(struct desk *d)
{
    make_rules(d->c, 0);
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(d, insert(d, RLK_EITHER, 1), RLK_DONE, "insert");
    is_class(d, frame(d, RLK_SAVE), RLK_DONE, "save");
    is_class(d, insert(d, RLK_EITHER, 2), RLK_DONE, "insert another");
    is_class(d, insert(d, RLK_EITHER, 1), RLK_VIOLATION, "insert the first again");
    is_class(d, frame(d, RLK_UNDO), RLK_DONE, "undo");
    tap_ok(!d->call.tx_over, "the transaction goes on");
    is_class(d, insert(d, RLK_EITHER, 3), RLK_DONE, "insert");
    is_class(d, frame(d, RLK_SAVE), RLK_DONE, "save");
    is_class(d, insert(d, RLK_EITHER, 4), RLK_DONE, "insert");
    is_class(d, frame(d, RLK_KEEP), RLK_DONE, "keep");
    is_class(d, frame(d, RLK_SAVE), RLK_DONE, "save");
    is_class(d, ask(d, 0, "SELECT colour FROM query_rules", NOTHING), RLK_INVALID, "a bad one");
    is_class(d, frame(d, RLK_UNDO), RLK_DONE, "undo");
    is_class(d, frame(d, RLK_COMMIT), RLK_DONE, "commit");
    stand(d, 3, 8, "what was kept stands, and what was undone does not");
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(d, frame(d, RLK_SAVE), RLK_DONE, "save");
    is_class(d, frame(d, RLK_UNDO), RLK_DONE, "undo");
    tap_ok(frame(d, RLK_KEEP) != RLK_DONE, "then there is no savepoint any more");
    is_class(d, frame(d, RLK_ROLLBACK), RLK_DONE, "roll back");
}

/* Either database may go on after an error, and must know whether it did. */
static void failed_inside(struct desk *d)
{
    make_rules(d->c, 0);
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(d, insert(d, RLK_EITHER, 1), RLK_DONE, "insert");
    is_class(d, insert(d, RLK_EITHER, 1), RLK_VIOLATION, "insert it again");
    bool over = d->call.tx_over;
    tap_is_int(over, is_postgres(d->c), "PostgreSQL's transaction is over then");
    frame(d, RLK_LOOK);
    tap_ok(d->call.inside, "but open");
    enum rlk_class class = frame(d, RLK_COMMIT);
    is_class(d, class, over ? RLK_CONTENTION : RLK_DONE, "commit");
    stand(d, !over, !over, "a commit that is done has been done, and no other");
    is_inside(d, false, "nothing is open");
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(d, ask(d, 0, "SELECT colour FROM query_rules", NOTHING), RLK_INVALID, "a bad one");
    is_class(d, frame(d, RLK_ROLLBACK), RLK_DONE, "roll back");
    is_class(d, insert(d, RLK_OUTSIDE, 9), RLK_DONE, "and all is as ever");
}

/* Locks are taken in the same transaction. */
static void locks_join(struct desk *d)
{
    const struct rlk_claim claim = {.name = "query frame",
                                    .owner = "query",
                                    .attempt = 7,
                                    .ttl_us = 30000000,
                                    .host = "",
                                    .program = "",
                                    .note = ""};
    struct rlk_grant grant = {0};
    struct rlk_call call = call_at(RLK_OUTSIDE);
    is_class(d, frame(d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(d, rlk_step_acquire(d->db, &call, &claim, &grant), RLK_IN_TX, "acquire outside of it");
    call = call_at(RLK_INSIDE);
    is_class(d, rlk_step_acquire(d->db, &call, &claim, &grant), RLK_DONE, "acquire inside");
    tap_is_int(grant.outcome, RLK_GRANTED, "granted");
    tap_is_int(rows_of(d->c, claim.name), 0, "nobody sees it");
    is_class(d, frame(d, RLK_ROLLBACK), RLK_DONE, "roll back");
    tap_is_int(rows_of(d->c, claim.name), 0, "and nobody ever will");
    call = call_at(RLK_OUTSIDE);
    is_class(d, rlk_step_acquire(d->db, &call, &claim, &grant), RLK_DONE, "acquire");
    tap_is_int(rows_of(d->c, claim.name), 1, "outside it is there at once");
    db_exec(d->c->raw, d->c->url, "DELETE FROM rowlock_locks WHERE name = '%s'", claim.name);
}

static void closed_inside(const struct contract *c)
{
    struct desk d = open_desk(c, false);
    make_rules(c, 0);
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(&d, insert(&d, RLK_EITHER, 1), RLK_DONE, "insert");
    close_desk(&d);
    make_rules(c, 0); /* waits for locks, if there are any */
    stand(&d, 0, 0, "closing has rolled back");
}

/* ---- the application's transaction */

static void stays_in_theirs(const struct contract *c)
{
    struct desk d = open_desk(c, true);
    for (int commits = 0; commits < 2; commits++) {
        make_rules(c, 0);
        raw_run(c->raw, d.session, "%s", c->begin);
        raw_run(c->raw, d.session, "INSERT INTO query_rules VALUES (1, 'ours', 0)");
        is_inside(&d, true, "their transaction is open");
        is_class(&d, insert(&d, RLK_OUTSIDE, 2), RLK_IN_TX, "a statement that belongs outside");
        is_class(&d, insert(&d, RLK_EITHER, 2), RLK_DONE, "one that may be anywhere");
        tap_ok(d.call.inside, "was inside");
        is_class(&d, frame(&d, RLK_BEGIN), RLK_IN_TX, "begin");
        is_class(&d, frame(&d, RLK_SAVE), RLK_DONE, "save");
        is_class(&d, insert(&d, RLK_INSIDE, 3), RLK_DONE, "insert");
        is_class(&d, insert(&d, RLK_INSIDE, 3), RLK_VIOLATION, "insert it again");
        is_class(&d, frame(&d, RLK_UNDO), RLK_DONE, "undo");
        is_class(&d, insert(&d, RLK_INSIDE, 4), RLK_DONE, "insert");
        stand(&d, 0, 0, "nothing is committed");
        raw_run(c->raw, d.session, "INSERT INTO query_rules VALUES (5, 'more', 0)");
        raw_run(c->raw, d.session, "%s", commits ? "COMMIT" : "ROLLBACK");
        stand(&d, commits ? 4 : 0, commits ? 12 : 0, "the end of it is theirs");
    }
    close_desk(&d);
}

static void left_as_it_was(const struct contract *c)
{
    char before[300], after[300];
    void *session = c->raw->open(c->url);
    ask_any(c, session, c->settings, before, sizeof before);
    struct desk d = {.c = c, .whose = "adopted", .db = adopt_with(c, session, NULL)};
    make_rules(c, 0);
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(&d, insert(&d, RLK_EITHER, 1), RLK_DONE, "insert");
    is_class(&d, ask(&d, 0, "SELECT id FROM query_rules", NOTHING), RLK_DONE, "read");
    is_class(&d, frame(&d, RLK_COMMIT), RLK_DONE, "commit");
    is_class(&d, ask(&d, new_id(), "SELECT n FROM query_rules", NOTHING), RLK_DONE, "read");
    close_desk(&d);
    tap_is_int(raw_int(c->raw, session, "SELECT count(*) FROM query_rules"), 1,
               "the application's connection is open");
    ask_any(c, session, c->settings, after, sizeof after);
    tap_is_str(after, before, "with all settings as they were, and nothing left prepared");
    c->raw->close(session);
}

/* ---- transactions that the database ends */

struct rival {
    const struct contract *c;
    void *session;
};

static int wants_the_first(void *argument)
{
    struct rival *rival = argument;
    char why_not[200];
    return rival->c->raw->run(rival->session, "UPDATE query_rules SET n = n + 1 WHERE id = 1",
                              why_not, sizeof why_not);
}

/* InnoDB ends the transaction that has written less. It would answer a COMMIT with OK all the same. */
static void deadlocked(const struct contract *c)
{
    struct desk d = open_desk(c, false);
    struct rival rival = {c, c->raw->open(c->url)};
    make_rules(c, 2);
    raw_run(c->raw, rival.session, "BEGIN");
    for (int i = 100; i < 150; i++)
        raw_run(c->raw, rival.session, "INSERT INTO query_rules VALUES (%d, 'x', 0)", i);
    raw_run(c->raw, rival.session, "UPDATE query_rules SET n = n + 1 WHERE id = 2");
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(&d, tell(&d, "UPDATE query_rules SET n = 50 WHERE id = 1", NOTHING), RLK_DONE,
             "change the first row");
    struct helper *thread = helper_start(wants_the_first, &rival);
    is_class(&d, tell(&d, "UPDATE query_rules SET n = 50 WHERE id = 2", NOTHING), RLK_CONTENTION,
             "two want what the other has");
    tap_ok(d.call.tx_over, "the transaction is over");
    enum rlk_class class = frame(&d, RLK_COMMIT);
    tap_ok(class == RLK_CONTENTION || class == RLK_NO_TX, "a commit then is not done: %s",
           class_name(class));
    tap_ok(helper_join(thread), "the rival goes on");
    raw_run(c->raw, rival.session, "COMMIT");
    tap_is_int(db_int(c->raw, c->url, "SELECT max(n) FROM query_rules"), 1,
               "nothing of ours stands");
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "the next one begins");
    is_class(&d, tell(&d, "UPDATE query_rules SET n = 50 WHERE id = 1", NOTHING), RLK_DONE,
             "changes");
    is_class(&d, frame(&d, RLK_COMMIT), RLK_DONE, "and commits");
    c->raw->close(rival.session);
    close_desk(&d);
}

/* What a conflict clause of the table's does to the transaction. */
static void ended_by_a_rule(const struct contract *c)
{
    struct desk d = open_desk(c, false);
    make_rules(c, 1);
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(&d, insert(&d, RLK_EITHER, 2), RLK_DONE, "insert");
    is_class(&d, tell(&d, "INSERT OR ROLLBACK INTO query_rules VALUES (1, 'x', 0)", NOTHING),
             RLK_VIOLATION, "break a rule that rolls back");
    tap_ok(d.call.tx_over, "the transaction is over");
    is_class(&d, frame(&d, RLK_COMMIT), RLK_NO_TX, "a commit then is not done");
    stand(&d, 1, 1, "nothing stands");
    close_desk(&d);
}

/* ---- SQLite's files */

static char *new_file(const char *name)
{
    char *url = NULL;
    const char *tmp = getenv("TMPDIR");
    if (asprintf(&url, "sqlite:%s/%s", tmp ? tmp : "/tmp", name) < 0)
        abort();
    unlink(url + strlen("sqlite:"));
    return url;
}

static void no_file_yet(const struct contract *c)
{
    char *url = new_file("query-nothing.db");
    struct desk d = {.c = c, .whose = "no file", .db = must_open(url)};
    is_inside(&d, false, "nothing is open");
    is_class(&d, frame(&d, RLK_BEGIN), RLK_INVALID, "begin");
    is_class(&d, frame(&d, RLK_COMMIT), RLK_NO_TX, "commit");
    is_class(&d, ask(&d, 0, "SELECT 1", NOTHING), RLK_INVALID, "a statement");
    tap_is_str(d.call.text, "there is no such file yet", "and told why");
    tap_ok(access(url + strlen("sqlite:"), F_OK) != 0, "nor was one made");
    close_desk(&d);
    free(url);
}

/* Without WAL who reads is in the way of a commit. */
static void reader_in_the_way(const struct contract *c)
{
    char *url = new_file("query-reader.db");
    struct contract here = *c;
    here.url = url;
    make_rules(&here, 1);
    struct desk d = open_desk(&here, false);
    void *reader = c->raw->open(url);
    const char *update = "UPDATE query_rules SET n = 1 RETURNING n";
    raw_run(c->raw, reader, "BEGIN");
    raw_int(c->raw, reader, "SELECT n FROM query_rules");
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "begin");
    is_class(&d, ask(&d, 0, update, NOTHING), RLK_DONE, "change");
    is_class(&d, frame(&d, RLK_COMMIT), RLK_CONTENTION, "commit while somebody reads");
    tap_ok(d.call.tx_over, "the transaction is over");
    is_inside(&d, false, "and nothing is left open");
    is_class(&d, ask(&d, 0, update, NOTHING), RLK_CONTENTION, "a change by itself");
    tap_is_int(d.changed, 0, "has changed nothing");
    raw_run(c->raw, reader, "COMMIT");
    tap_is_int(raw_int(c->raw, reader, "SELECT n FROM query_rules"), 0, "nothing of it stands");
    is_class(&d, ask(&d, 0, update, NOTHING), RLK_DONE, "then nobody is in the way");
    tap_is_int(raw_int(c->raw, reader, "SELECT n FROM query_rules"), 1, "and it is done");
    c->raw->close(reader);
    close_desk(&d);
    unlink(url + strlen("sqlite:"));
    free(url);
}

/* Rows cannot be given for want of memory: alone the change is undone, in a transaction all of it is. */
static void no_memory_for_rows(const struct contract *c)
{
    struct desk d = open_desk(c, false);
    const char *update = "UPDATE query_rules SET n = 1 RETURNING n";
    make_rules(c, 1);
    fail_alloc_at(1);
    is_class(&d, ask(&d, 0, update, NOTHING), RLK_NOMEM, "no memory for what an update returns");
    fail_alloc_at(0);
    tap_is_int(db_int(c->raw, c->url, "SELECT n FROM query_rules"), 0, "it is not done");
    is_class(&d, frame(&d, RLK_BEGIN), RLK_DONE, "begin");
    fail_alloc_at(1);
    is_class(&d, ask(&d, 0, update, NOTHING), RLK_NOMEM, "the same in a transaction");
    fail_alloc_at(0);
    tap_ok(d.call.tx_over, "which can only be rolled back");
    is_class(&d, frame(&d, RLK_ROLLBACK), RLK_DONE, "and is");
    close_desk(&d);
}

/* ---- all of it */

static void one_kind_of_connection(const struct contract *c, bool adopted)
{
    every_kind(c, adopted, false);
    every_kind(c, adopted, true);
    prepared_again(c, adopted);
    table_altered(c, adopted);
    rows_stop(c, adopted);
    counts(c, adopted);
    errors(c, adopted);
    no_memory(c, adopted);
    struct desk d = open_desk(c, adopted);
    wrong_places(&d);
    rolled_back(&d);
    savepoints(&d);
    failed_inside(&d);
    locks_join(&d);
    close_desk(&d);
}

/* ---- our own statements */

/* A connection is not slower than others because it once met no tables, as the one that makes them does. */
static void prepared_after_install(const struct contract *c)
{
    char *url = fresh_tables(c, "planned_");
    drop_tables(c, "planned_", url);
    url = url_with(c->url, "rowlock_prefix=planned_");
    struct desk d = {.c = c, .whose = "own", .db = must_open(url)};
    rowlock_lock *lock = must_lock(d.db, "planned");
    is_result(d.db, try_lock(lock, TTL_MS), ROWLOCK_ESCHEMA, "a try without tables");
    is_result(d.db, rowlock_install(d.db), ROWLOCK_OK, "the same connection makes them");
    is_result(d.db, try_lock(lock, TTL_MS), ROWLOCK_OK, "then the lock is granted");
    is_result(d.db, rowlock_release(lock), ROWLOCK_OK, "and released");
    is_result(d.db, try_lock(lock, TTL_MS), ROWLOCK_OK,
              "and granted again, by what usually suffices");
    is_class(&d,
             ask(&d, 0,
                 "SELECT count(*) FROM pg_prepared_statements WHERE name IN "
                 "('rowlock_acquire', 'rowlock_acquire_usual', 'rowlock_release')",
                 NOTHING),
             RLK_DONE, "which of our statements does the session keep?");
    tap_is_int(d.answer.cells[0].number, c->pooled ? 0 : 3, "all three, or none behind a pooler");
    rowlock_lock_close(lock);
    close_desk(&d);
    drop_tables(c, "planned_", url);
}

void contract_query(const struct contract *c)
{
    if (is_postgres(c))
        prepared_after_install(c);
    one_kind_of_connection(c, false);
    one_kind_of_connection(c, true);
    closed_inside(c);
    stays_in_theirs(c);
    left_as_it_was(c);
    if (c->has_server)
        values_too_big(c);
    if (is_mysql(c))
        deadlocked(c);
    if (is_sqlite(c)) {
        ended_by_a_rule(c);
        no_file_yet(c);
        reader_in_the_way(c);
        no_memory_for_rows(c);
    }
    db_exec(c->raw, c->url, "DROP TABLE IF EXISTS query_data");
    db_exec(c->raw, c->url, "DROP TABLE IF EXISTS query_rules");
}
