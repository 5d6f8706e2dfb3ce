/* SPDX-License-Identifier: MIT
 *
 * Words of the tests about the application's own tables and their versions: a site with a connection whose
 * calls are tested and a session that looks, and meddles, behind its back; and checks of what became of rows.
 */
#ifndef TABLES_H
#define TABLES_H

#include "contract.h"

#include "public.h"

/* The names of columns; values. */
#define NAMES(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }
#define VALUES(...)         \
    (const rowlock_value[]) \
    {                       \
        __VA_ARGS__         \
    }
/* Options that are set in place: TABLE(.name = "prices", .key = NAMES("id")). */
#define TABLE(...) \
    (&(const rowlock_table_options){.size = sizeof(rowlock_table_options), __VA_ARGS__})
#define HOW(...) \
    (&(const rowlock_change_options){.size = sizeof(rowlock_change_options), __VA_ARGS__})
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum op { UPDATE, TOUCH, EXPECT, INSERT, REMOVE };
extern const char *const op_names[];

struct site {
    const struct contract *c;
    rowlock_db *db; /* whose calls are tested */
    void *session; /* the application's, which db has adopted; NULL: db is of a URL */
    void *look; /* another's */
};

struct site site_open(const struct contract *c);
struct site site_adopt(const struct contract *c);
void site_close(struct site *s);

/* By the other session. */
void site_run(const struct site *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* DROP TABLE IF EXISTS name; CREATE TABLE name (columns). */
void site_table(const struct site *s, const char *name, const char *columns);
/* The first cell that this finds is want; NULL: there is none. */
bool site_finds(const struct site *s, const char *want, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A handle; the program ends if it cannot be had. */
rowlock_table *must_describe(const struct site *s, const rowlock_table_options *about);
/* Of a table whose key is id and whose version is version. */
rowlock_table *must_open_table(const struct site *s, const char *name, const char *const *columns);

int change_rows(rowlock_table *t, enum op op, rowlock_change *changes, size_t count,
                const rowlock_change_options *options);

/* What several rows say: "OK 2, STALE 7, GONE 0", or without the versions "OK, STALE, GONE". */
bool rows_say(const rowlock_change *changes, size_t count, const char *want, const char *what);

/* Changes of the rows id, id + 1, …, all of one version, whose only column is to be 10, 11, … */
struct few {
    rowlock_value keys[4], values[4];
    rowlock_change changes[4];
};
rowlock_change *few_from(struct few *few, int64_t id, int64_t version);

/* One row is changed: the call and the change say want, and its version is current. */
void becomes(const struct site *s, rowlock_table *t, enum op op, rowlock_change change, int want,
             int64_t current, const char *what);
/* The same of a row with an integer for a key. */
void row_becomes(const struct site *s, rowlock_table *t, enum op op, int64_t id,
                 const rowlock_value *values, int64_t version, int want, int64_t current,
                 const char *what);

#endif
