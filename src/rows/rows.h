/* SPDX-License-Identifier: MIT
 * Tables of the caller: how they are described, how a statement about them is composed, and how
 * many rows go into one. A statement is a template in sql/ with the table's names.
 * The public part is in rowlock/versions.h. */
#ifndef RLK_ROWS_H
#define RLK_ROWS_H

#include <rowlock/once.h>
#include <rowlock/walk.h>

#include "base/buffer.h"
#include "core/ask.h"
#include "core/core.h"

/* "rltb" */
#define RLK_TABLE_TAG 0x726C7462u

#define RLK_ODD_VERSION "a row has a version that is not a 64-bit integer; correct it first"

enum { RLK_KINDS = ROWLOCK_TIME + 1, RLK_TAG_LENGTH = 16, RLK_CHUNK_BYTES = 1 << 20 };

/* A column, or a parameter of the caller's SQL. sql/README.md explains the members at the step
 * `table`. In patterns % stands for the value. */
struct rlk_column {
    /* Quoted. NULL: a parameter. */
    char *name;
    /* The usual kind of its values. NULL: any kind. */
    rowlock_kind kind;
    bool not_null;
    /* An unsigned integer of 64 bits. A number above INT64_MAX is given as a decimal. */
    bool is_wide;
    /* What its numbers may be besides finite. A real that may be NaN may also be -0.0. */
    bool has_infinity, has_nan;
    /* Keeps decimals as floating point numbers, and integers of 64 bits. */
    bool is_rough;
    /* A time without a zone. A zone that is given would be dropped. */
    bool is_local;
    /* A time with a date. MySQL would read an interval as one: 01:00:00 is 2001-00-00. */
    bool is_dated;
    /* The highest integer that it holds. 0: not an integer. Below 0: only the database sets it. */
    int64_t most;
    /* Its type within a pack. */
    char *wire;
    char *unpack, *value, *match, *show;
    char *uniques;
    /* # is the column, ~ the operator, % the other side, which match has written. */
    char *compare;
};

/* What a value stands for in a composed statement. */
enum rlk_source {
    RLK_FROM_KEY,
    RLK_FROM_VALUE,
    RLK_FROM_EXPECTED,
    RLK_FROM_FIRST,
    RLK_FROM_PACK,
    RLK_FROM_TAG,
    RLK_FROM_LIMIT,
    RLK_FROM_SCHEMA,
    RLK_FROM_NAME
};
struct rlk_param {
    enum rlk_source source;
    size_t index;
};

/* The row lock that a read takes: none, a shared one, or one before a change. */
enum rlk_row_lock { RLK_LOCK_NONE, RLK_LOCK_SHARED, RLK_LOCK_TO_CHANGE };

/* All that a composed text depends on. */
struct rlk_shape {
    enum rlk_step step;
    /* The statement sets columns, or gives the values of new rows. */
    bool sets;
    /* A page that begins behind a key. */
    bool after;
    enum rlk_row_lock lock;
    /* The kinds of the parameters of the caller's SQL. NULL: the table has no SQL of the caller. */
    const rowlock_kind *kinds;
};

struct rlk_text {
    struct rlk_text *next;
    struct rlk_shape shape;
    rowlock_kind *kinds;
    char *sql;
    uint64_t id;
    struct rlk_param *params;
    size_t count;
};

/* Rows that were read, and the memory of their texts. */
struct rlk_page {
    /* Key and columns of each row. */
    rowlock_value *cells;
    int64_t *versions;
    size_t rows, room, width;
    /* More rows than these are a wrong answer. 0: any number. */
    size_t most;
    /* As in rlk_query. */
    bool *waits_for_all;
    struct rlk_buffer texts;
    /* A result: why a row could not be added. */
    int failed;
};

struct rowlock_table {
    uint32_t tag;
    rowlock_db *db;
    /* Its name in error texts. */
    char *label;
    /* Quoted and qualified. */
    char *name;
    /* The schema in which it was found. */
    char *home;
    /* Home, name and key, as a checkpoint has them. */
    char *identity;
    /* Keys, columns, version. */
    struct rlk_column *all;
    size_t keys, columns;
    /* Parameters, by kind. */
    struct rlk_column kind[RLK_KINDS];
    /* The caller's SQL. NULL: updates set the columns. */
    char *set;
    size_t parameters;
    int64_t first_version;
    struct rlk_text *texts;
    /* The answer of rowlock_read(). */
    struct rlk_page page;
};

static inline size_t rlk_all_of(const rowlock_table *t)
{
    return t->keys + t->columns + 1;
}

static inline const struct rlk_column *rlk_version_of(const rowlock_table *t)
{
    return &t->all[t->keys + t->columns];
}

/* A pack of this shape has the expected version of each row behind its key. */
static inline bool rlk_packs_versions(const struct rlk_shape *shape)
{
    return shape->step != RLK_STEP_ROWS_INSERT && shape->step != RLK_STEP_ROWS_READ;
}

/* How many values a statement of this shape takes for each row. */
static inline size_t rlk_values_of(const rowlock_table *t, const struct rlk_shape *shape)
{
    if (!shape->sets)
        return 0;
    return shape->kinds ? t->parameters : t->columns;
}
/* The column of such a value. */
static inline const struct rlk_column *rlk_value_column(const rowlock_table *t,
                                                        const struct rlk_shape *shape, size_t index)
{
    if (!shape->kinds)
        return &t->all[t->keys + index];
    rowlock_kind kind = shape->kinds[index];
    return &t->kind[kind == ROWLOCK_NULL ? ROWLOCK_TEXT : kind];
}

/* compose.c */
/* NULL: out of memory. The error is set. */
const struct rlk_text *rlk_compose(rowlock_table *t, const struct rlk_shape *shape);
/* For a step about a table that is not described yet. The caller clears *out. */
int rlk_compose_plain(rowlock_db *db, const char *template, struct rlk_text *out);
void rlk_text_clear(struct rlk_text *text);
char *rlk_quote(const char *name, char quote);
/* How many parameters the caller's SQL has. */
size_t rlk_count_parameters(const char *sql, bool backslash_escapes);
/* False: a comment does not end. It would swallow the rest of the statement. */
bool rlk_ends_comments(const char *sql, bool backslash_escapes);

/* pack.c */
/* The parameters of a statement for the rows order[0 … count - 1] of changes. */
struct rlk_pack {
    /* One for each column, or one for all. */
    struct rlk_buffer *part;
    size_t parts;
};
int rlk_pack_rows(struct rlk_pack *pack, const rowlock_table *t, const struct rlk_shape *shape,
                  const rowlock_change *changes, const size_t *order, size_t count);
/* A part as the value of a parameter. */
static inline rowlock_value rlk_packed(const struct rlk_pack *pack, size_t part)
{
    return rowlock_textn(ROWLOCK_TEXT, pack->part[part].text, pack->part[part].length);
}
void rlk_pack_clear(struct rlk_pack *pack);
/* EINVAL if the column cannot take this value. row: its index in a batch, or -1. */
int rlk_check_value(rowlock_db *db, const struct rlk_column *column, const rowlock_value *value,
                    int64_t row);
/* The same for column index of a key. A key column may not be NULL either. */
int rlk_check_key(const rowlock_table *t, const rowlock_value *key, size_t index, int64_t row);
/* The same value in the column's own kind. */
rowlock_value rlk_fit(const struct rlk_column *column, const rowlock_value *value);

/* frame.c: statements */
/* The answer does not fit our statement. changed: the statement may have changed rows. */
int rlk_fail_misfit(rowlock_db *db, bool changed);
/* A statement about rows, sent in the open transaction if there is one. */
struct rlk_asking {
    struct rlk_query query;
    /* NULL: query.values are the caller's. */
    rowlock_value *values;
    const struct rlk_param *params;
    /* Called before each attempt, also before a repeated one: it forgets the rows that came
     * before. May be NULL. */
    void (*restart)(void *context);
    /* out: an earlier attempt may have been carried out */
    bool was_uncertain;
};
/* Composes its statement, and makes room for its values. The caller fills in asking->values as
 * asking->params says, and calls rlk_ask_rows(), which frees them. False: out of memory. The error
 * is set. */
bool rlk_begin_asking(rowlock_table *t, const struct rlk_shape *shape, struct rlk_asking *asking);
int rlk_ask_rows(rowlock_db *db, struct rlk_asking *asking);
/* The same for a step about rowlock's own tables. */
int rlk_ask_ours(rowlock_db *db, struct rlk_ask *ask);

/* table.c */
int rlk_enter_table(rowlock_table *t, const char *verb);
/* Comes before a locking read, on a database where the lock takes a statement of its own. */
int rlk_lock_to_read(rowlock_table *t);
/* ESERVER with a row in page: the row can be read, but a policy forbids to lock it. */
int rlk_read_row(rowlock_table *t, const rowlock_value *key, enum rlk_row_lock lock,
                 struct rlk_page *page);

/* describe.c: fills in t->all, t->kind and t->home. names are the columns of t->all. */
struct rlk_about {
    const char *name;
    const char *const *key;
    rowlock_table_options options;
};
int rlk_describe(rowlock_table *t, const struct rlk_about *about, const char *const *names);

/* page.c */
void rlk_page_begin(struct rlk_page *page, size_t width);
/* Begins again with the same width. */
void rlk_page_restart(void *context);
/* An rlk_cells_fn. */
int rlk_page_add(void *context, const rowlock_value *cells, size_t count);
/* Returns the result of all that was added, and gives each cell the kind of its column. */
int rlk_page_end(rowlock_table *t, struct rlk_page *page);
/* A part of it: each cell gets its text. */
void rlk_page_settle(struct rlk_page *page);
rowlock_row rlk_page_row(const rowlock_table *t, const struct rlk_page *page, size_t row);
void rlk_page_clear(struct rlk_page *page);

/* frame.c: transactions that rowlock begins. Inside an open transaction a frame is a savepoint. */
int rlk_is_inside(rowlock_db *db, bool *inside);
int rlk_frame(rowlock_db *db, enum rlk_frame what);
/* Undoes it and returns result, with its error, unless an adopted connection stays inside. */
int rlk_undo(rowlock_db *db, bool inside, int result);
/* Begins, calls work, commits. Rolls back if work or the commit fails. A transaction that lost
 * against another one begins again, unless it is a savepoint. */
int rlk_framed(rowlock_db *db, int (*work)(void *context), void *context);

/* once.c */
/* The connection is being closed: its claims lose it. */
void rlk_onces_abandon(rowlock_db *db);

/* change.c */
enum rlk_op { RLK_UPDATE, RLK_TOUCH, RLK_EXPECT, RLK_INSERT, RLK_REMOVE };
int rlk_change(rowlock_table *t, enum rlk_op op, rowlock_change *changes, size_t count,
               const rowlock_change_options *options);

/* page.c: the witness is the first row that a transaction changed. After a commit without an
 * answer, this row shows whether the transaction was committed. */
struct rlk_witness {
    /* NULL: no row yet. */
    rowlock_table *t;
    /* The row's key, and its version before the change. */
    struct rlk_page row;
};
void rlk_witness_row(rowlock_table *t, const rowlock_change *change);
void rlk_witness_free(rowlock_db *db);
void rlk_witness_forget(const rowlock_table *t);

/* retry.c */
/* Makes a random pause, longer with each attempt. False: cancelled. */
bool rlk_pause_attempt(rowlock_db *db, int attempt, int64_t base_us, int64_t cap_us,
                       int64_t until_us);

#endif
