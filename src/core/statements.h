/* SPDX-License-Identifier: MIT
 * The SQL of each step, as text for one connection. The sources are in sql/. */
#ifndef RLK_STATEMENTS_H
#define RLK_STATEMENTS_H

#include "core/driver.h"

struct rlk_statement {
    const char *step;
    const char *text;
};

/* A folder of sql/, which the build has embedded. */
struct rlk_dialect {
    const char *name;
    /* A routine finds unqualified names in its own schema. */
    bool local_bodies;
    /* Its shell needs DELIMITER around statements that contain semicolons. */
    bool delimiters;
    const struct rlk_statement *statements;
    size_t count;
};
/* NULL: there is no dialect of this name. */
const struct rlk_dialect *rlk_dialect_find(const char *name);

/* Fills texts->sql for this driver from texts->schema and texts->prefix. -1: out of memory. */
int rlk_texts_fill(struct rlk_texts *texts, const struct rlk_driver *driver);
void rlk_texts_clear(struct rlk_texts *texts);
/* Changes the texts of the steps that have a file <step>_before.sql. before: they get the text of
 * that file. Otherwise they get their own. -1: out of memory. */
int rlk_texts_choose(struct rlk_texts *texts, const struct rlk_driver *driver, bool before);

/* Writes statements for the database's own shell. write returns nonzero to stop. */
void rlk_write_script(const struct rlk_driver *driver, const char *sql,
                      int (*write)(void *context, const char *sql, size_t length), void *context);

#endif
