/* SPDX-License-Identifier: MIT
 *
 * Many rows of the application's own table, read by their keys: which are there, in which order
 * each is told, keys of several columns, more rows than a chunk, locks, and callbacks that stop. */
#include "tables.h"

enum { MANY = 2500 };

/* What was told of each key. */
struct told {
    size_t count;
    size_t indexes[MANY];
    int64_t versions[MANY]; /* by index; -1: it is not there */
    int64_t numbers[MANY]; /* of the first column */
    size_t stop_after;
};

static int note(void *context, size_t index, const rowlock_row *row)
{
    struct told *told = context;
    told->indexes[told->count++] = index;
    told->versions[index] = row ? row->version : -1;
    told->numbers[index] = row ? row->values[0].number : -1;
    return told->count == told->stop_after;
}

static struct told told;

static int read_keys(rowlock_table *t, const rowlock_value *keys, size_t count, int lock)
{
    told = (struct told){.stop_after = told.stop_after};
    return rowlock_read_many(t, keys, count, lock, note, &told);
}

static void some(const struct site *s, rowlock_table *t)
{
    const rowlock_value keys[] = {rowlock_int(3), rowlock_int(99), rowlock_int(1), rowlock_int(3)};
    for (int lock = 0; lock <= 1; lock++) {
        is_result(s->db, read_keys(t, &keys[2], 1, lock), ROWLOCK_OK, "one row, lock %d", lock);
        is_result(s->db, read_keys(t, keys, 3, lock), ROWLOCK_GONE, "one of three is not there");
        tap_is_int((int)told.count, 3, "each of the three keys is told");
        tap_ok(told.versions[0] == 30 && told.versions[1] == -1 && told.versions[2] == 10,
               "the row, that it is not there, and the other row");
        tap_ok(told.indexes[0] == 2 && told.indexes[1] == 0 && told.indexes[2] == 1,
               "in the order of the keys");
        tap_is_int((int)told.numbers[0], 300, "with its columns");
        is_result(s->db, read_keys(t, VALUES(keys[0], keys[2], keys[3]), 3, lock), ROWLOCK_OK,
                  "a key that is given twice");
        tap_ok(told.count == 3 && told.versions[0] == 30 && told.versions[2] == 30,
               "is told twice");
    }
    told.stop_after = 2;
    is_result(s->db, read_keys(t, keys, 3, 0), ROWLOCK_CANCELLED, "the callback stops it");
    tap_is_int((int)told.count, 2, "after as many as it likes");
    told.stop_after = 0;
    is_result(s->db, rowlock_read_many(t, NULL, 0, 0, note, &told), ROWLOCK_OK, "no keys");
    is_result(s->db, rowlock_read_many(t, NULL, 1, 0, note, &told), ROWLOCK_EINVAL, "keys nowhere");
    is_result(s->db, rowlock_read_many(t, keys, 1, 0, NULL, NULL), ROWLOCK_EINVAL, "for no caller");
    is_result(s->db, read_keys(t, VALUES(rowlock_int(1), rowlock_null()), 2, 0), ROWLOCK_EINVAL,
              "a key that is NULL");
    tap_is_int((int)error_of(s->db).row, 1, "is named by its index");
    tap_is_int((int)told.count, 0, "before anything is read");
    tap_is_int(rowlock_read_many(NULL, keys, 1, 0, note, &told), ROWLOCK_EMISUSE, "no table");
}

static void more_than_a_chunk(const struct site *s, rowlock_table *t)
{
    static rowlock_value keys[MANY];
    int right = 0;
    site_run(s, "DELETE FROM many_rows");
    site_run(s,
             "INSERT INTO many_rows SELECT i, 10 * i, i + 1 FROM " NUMBERS
             " WHERE i < %d AND i %% 7 <> 0",
             MANY);
    for (int i = 0; i < MANY; i++)
        keys[i] = rowlock_int(MANY - 1 - i);
    is_result(s->db, read_keys(t, keys, MANY, 0), ROWLOCK_GONE,
              "%d rows of which some are not there", MANY);
    for (int i = 0; i < MANY; i++) {
        int id = MANY - 1 - i;
        right += id % 7 == 0 ? told.versions[i] == -1
                             : told.versions[i] == id + 1 && told.numbers[i] == 10 * id;
    }
    tap_is_int(right, MANY, "each is told as it is");
}

static void several_columns(const struct site *s)
{
    site_table(s, "pair_rows",
               "a VARCHAR(20) NOT NULL, b BIGINT NOT NULL, n BIGINT, version BIGINT NOT NULL, "
               "PRIMARY KEY (a, b)");
    site_run(s, "INSERT INTO pair_rows VALUES ('x', 1, 11, 5), ('x', 2, 12, 6), "
                "('it''s \"{so}\"\\\\', 1, 13, 7)");
    const struct about *about =
        ABOUT(.name = "pair_rows", .key = NAMES("a", "b"), .columns = NAMES("n"));
    OWNED(table) rowlock_table *t = must_describe(s, about);
    is_result(s->db,
              read_keys(t,
                        VALUES(rowlock_text("x"), rowlock_int(2), rowlock_text("x"), rowlock_int(1),
                               rowlock_text("y"), rowlock_int(1)),
                        3, 1),
              ROWLOCK_GONE, "keys of two columns");
    tap_ok(told.numbers[0] == 12 && told.numbers[1] == 11 && told.numbers[2] == -1,
           "find their rows");
}

/* A lock of many rows lasts as long as the transaction. */
static void locked(const struct site *s)
{
    OWNED(site) struct site mine = site_adopt(s->c);
    OWNED(table) rowlock_table *t = must_open_table(&mine, "many_rows", NAMES("n"));
    OWNED(db)
    rowlock_db *rival = must_open_with(s->c->url, OPTIONS(db, .statement_timeout_ms = 1000));
    const struct site theirs = {.c = s->c, .db = rival};
    OWNED(table) rowlock_table *other = must_open_table(&theirs, "many_rows", NAMES("n"));
    const rowlock_value five = rowlock_int(5);
    raw_run(s->c->raw, mine.session, "BEGIN");
    is_result(mine.db, read_keys(t, VALUES(rowlock_int(2), rowlock_int(1)), 2, 1), ROWLOCK_OK,
              "rows are locked in the application's transaction");
    int result = update_row(other, 1, five, 2);
    tap_ok(result < 0 || result == ROWLOCK_CONFLICT, "meanwhile another cannot change one: %s",
           rowlock_result_name(result));
    int64_t version = told.versions[1];
    is_result(mine.db, update_row(t, 1, five, version), ROWLOCK_OK, "the holder can");
    raw_run(s->c->raw, mine.session, "COMMIT");
    is_result(rival, update_row(other, 1, five, version + 1), ROWLOCK_OK, "and then the other");
}

void contract_read_many(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "many_rows", "id BIGINT PRIMARY KEY, n BIGINT, version BIGINT NOT NULL");
    site_run(&s, "INSERT INTO many_rows VALUES (1, 100, 10), (2, 200, 20), (3, 300, 30)");
    OWNED(table) rowlock_table *t = must_open_table(&s, "many_rows", NAMES("n"));
    some(&s, t);
    more_than_a_chunk(&s, t);
    several_columns(&s);
    locked(&s);
}
