/* SPDX-License-Identifier: MIT
 * Tables of the caller's: how they are described, how a statement about them is composed of a
 * template in sql/ and their names, and how many rows go into one. What is public is in
 * rowlock/versions.h. */
#ifndef RLK_ROWS_H
#define RLK_ROWS_H

#include <rowlock/once.h>
#include <rowlock/walk.h>

#include "base/buffer.h"
#include "seam/resend.h"
#include "seam/seam.h"

#define RLK_TABLE_TAG 0x726C7462u /* "rltb" */

#define RLK_ODD_VERSION "a row has a version that is not a 64-bit integer; correct it first"

enum { RLK_KINDS = ROWLOCK_TIME + 1, RLK_TAG_LENGTH = 16, RLK_CHUNK_BYTES = 1 << 20 };

/* A column, or a parameter of the caller's own SQL; see sql/README.md, table. In patterns % is
 * the value. */
struct rlk_column {
    char *name; /* quoted; NULL: a parameter */
    rowlock_kind kind; /* that it is mostly given as; NULL: any */
    bool not_null;
    /* an integer of 64 bits without a sign: what int64_t cannot hold is given as a decimal */
    bool is_wide;
    int64_t most; /* that an integer can be; 0: it is none; below 0: the database alone sets it */
    char *wire; /* type within a pack */
    char *unpack, *value, *match, *show;
    char *uniques;
    char *compare; /* # the column, ~ the operator, % what it is compared with, by match */
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

enum rlk_keep { RLK_KEEP_NOTHING, RLK_KEEP_AS_IT_IS, RLK_KEEP_TO_CHANGE };

/* All that a composed text depends on. */
struct rlk_shape {
    enum rlk_step step;
    bool sets; /* it sets or gives values */
    bool after; /* a page that begins behind a key */
    enum rlk_keep keep;
    const rowlock_kind *kinds; /* of the parameters of the caller's SQL; NULL: there are none */
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

/* Rows that were read, and where their texts are. */
struct rlk_page {
    rowlock_value *cells; /* keys and columns of each */
    int64_t *versions;
    size_t rows, room, width;
    size_t most; /* more rows than that were not asked for; 0: any number */
    struct rlk_buffer texts;
    int failed; /* a result */
};

struct rowlock_table {
    uint32_t tag;
    rowlock_db *db;
    char *said; /* its name, for people */
    char *name; /* quoted and qualified */
    char *home; /* the schema in which it was found */
    char *identity; /* its home, name and key, as a checkpoint has them */
    struct rlk_column *all; /* keys, columns, version */
    size_t keys, columns;
    struct rlk_column kind[RLK_KINDS]; /* of parameters */
    char *set; /* NULL: updates set the columns */
    size_t parameters;
    int64_t first_version;
    struct rlk_text *texts;
    struct rlk_page page; /* of rowlock_read() */
};

static inline size_t rlk_all_of(const rowlock_table *t)
{
    return t->keys + t->columns + 1;
}

static inline const struct rlk_column *rlk_version_of(const rowlock_table *t)
{
    return &t->all[t->keys + t->columns];
}

/* Whether the version that each row must have is sent with its key. */
static inline bool rlk_packs_versions(const struct rlk_shape *shape)
{
    return shape->step != RLK_STEP_ROWS_INSERT && shape->step != RLK_STEP_ROWS_READ;
}

/* How many values a statement of this step takes for each row. */
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

/* compose.c: NULL: out of memory, and said so. */
const struct rlk_text *rlk_compose(rowlock_table *t, const struct rlk_shape *shape);
/* Of a step that is about a table not described yet; yours to clear. */
int rlk_compose_plain(rowlock_db *db, const char *template, struct rlk_text *out);
void rlk_text_clear(struct rlk_text *text);
char *rlk_quote(const char *name, char quote);
/* How many parameters the caller's SQL has. */
size_t rlk_count_parameters(const char *sql, bool backslash_escapes);
/* Does each of its comments end? One that does not would swallow what stands behind it. */
bool rlk_ends_comments(const char *sql, bool backslash_escapes);

/* pack.c: what is sent for the rows order[0 … count - 1] of changes. */
struct rlk_pack {
    struct rlk_buffer *part; /* one for each column, or one in all */
    size_t parts;
};
int rlk_pack_rows(struct rlk_pack *pack, const rowlock_table *t, const struct rlk_shape *shape,
                  const rowlock_change *changes, const size_t *order, size_t count);
void rlk_pack_clear(struct rlk_pack *pack);
/* EINVAL if the column cannot take such a value. row: its index in a batch; -1: it is of none. */
int rlk_check_value(rowlock_db *db, const struct rlk_column *column, const rowlock_value *value,
                    int64_t row);
/* Likewise of column index of a key, which may not be NULL either. */
int rlk_check_key(const rowlock_table *t, const rowlock_value *key, size_t index, int64_t row);
/* The same value in the column's own kind, where that is another. */
rowlock_value rlk_fit(const struct rlk_column *column, const rowlock_value *value);

/* ask.c */
/* The answer to a statement of ours is none. changed: it may have done what it was sent for. */
int rlk_fail_misfit(rowlock_db *db, bool changed);
/* Run a statement about rows, where the connection stands. */
struct rlk_asking {
    struct rlk_query query;
    /* Called before each sending, which may not be the first: what rows came before do not
     * count. May be NULL. */
    void (*anew)(void *context);
    bool was_uncertain; /* out: an earlier sending may have been carried out */
};
int rlk_ask(rowlock_db *db, struct rlk_asking *asking);
/* The same of a step about tables of ours. */
struct rlk_asking_ours {
    struct rlk_sending sending;
    void (*anew)(void *context);
    bool was_uncertain;
};
int rlk_ask_ours(rowlock_db *db, struct rlk_asking_ours *asking);

/* table.c */
int rlk_enter_table(rowlock_table *t, const char *verb);
/* Before a read that is to lock, on a database where that takes a statement of its own. */
int rlk_lock_to_read(rowlock_table *t);
/* ESERVER with a row in page: it can be read, and a policy keeps it from being locked. */
int rlk_read_row(rowlock_table *t, const rowlock_value *key, enum rlk_keep keep,
                 struct rlk_page *page);

/* describe.c: fills in t->all, of which names are the columns, t->kind and t->home. */
int rlk_describe(rowlock_table *t, const rowlock_table_options *options, const char *const *names);

/* page.c */
void rlk_page_begin(struct rlk_page *page, size_t width);
void rlk_page_anew(void *context); /* the same with the width that it has */
int rlk_page_add(void *context, const rowlock_value *cells, size_t count); /* an rlk_cells_fn */
/* Result of what was added; kinds become those of the columns. */
int rlk_page_end(rowlock_table *t, struct rlk_page *page);
rowlock_row rlk_page_row(const rowlock_table *t, const struct rlk_page *page, size_t row);
void rlk_page_clear(struct rlk_page *page);

/* frame.c: transactions of ours. Inside of one, or of the caller's, a frame is a savepoint. */
int rlk_is_inside(rowlock_db *db, bool *inside);
int rlk_frame(rowlock_db *db, enum rlk_frame what);
/* Begin, work, commit; roll back if the work or the commit fails. What lost against another's
 * transaction is begun again, unless it is inside one. */
int rlk_framed(rowlock_db *db, int (*work)(void *context), void *context);

/* once.c */
void rlk_onces_abandon(rowlock_db *db); /* it is being closed */

/* change.c */
enum rlk_op { RLK_UPDATE, RLK_TOUCH, RLK_EXPECT, RLK_INSERT, RLK_REMOVE };
int rlk_change(rowlock_table *t, enum rlk_op op, rowlock_change *changes, size_t count,
               const rowlock_change_options *options);

/* witness.c: what a commit that got no answer can be told by: the first row that its transaction
 * changed. */
struct rlk_witness {
    rowlock_table *t; /* NULL: none yet */
    struct rlk_page row; /* its key, and the version before */
};
void rlk_witness_row(rowlock_table *t, const rowlock_change *change);
void rlk_witness_forget(const rowlock_table *t);

/* retry.c */
/* A random pause, longer with each attempt. False: cancelled. */
bool rlk_pause_attempt(rowlock_db *db, int attempt, int64_t base_us, int64_t cap_us,
                       int64_t until_us);

#endif
