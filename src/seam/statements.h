/* SPDX-License-Identifier: MIT
 * The SQL of each step, as text for one connection. What the texts say is in sql/. */
#ifndef RLK_STATEMENTS_H
#define RLK_STATEMENTS_H

#include "seam/backend.h"

struct rlk_statement {
    const char *step;
    const char *text;
};

/* A folder of sql/, which the build has embedded. */
struct rlk_dialect {
    const char *name;
    bool local_bodies; /* a routine finds unqualified names in its own schema */
    bool delimiters; /* its shell ends a statement at each semicolon, unless told otherwise */
    const struct rlk_statement *statements;
    size_t count;
};
/* NULL: there is none of this name. */
const struct rlk_dialect *rlk_dialect_find(const char *name);

/* Fill texts->sql for this backend from texts->schema and texts->prefix; -1: out of memory. */
int rlk_texts_fill(struct rlk_texts *texts, const struct rlk_backend *backend);
void rlk_texts_clear(struct rlk_texts *texts);
/* For tables of the version before, the steps that have a file <step>_before.sql get the text of
 * that; for others their own. -1: out of memory. */
int rlk_texts_choose(struct rlk_texts *texts, const struct rlk_backend *backend, bool before);

/* Write statements as the database's own shell takes them. write returns nonzero to stop. */
void rlk_write_script(const struct rlk_backend *backend, const char *sql,
                      int (*write)(void *context, const char *sql, size_t length), void *context);

#endif
