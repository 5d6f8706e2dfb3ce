/* SPDX-License-Identifier: MIT
 *
 * Words of the tests about the application's own tables and their versions. A site has a connection
 * whose calls are tested, and a session that looks at rows and changes them without rowlock. Checks
 * tell what became of rows. */
#pragma once

#include "contract.h"

/* Names of columns; values. */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define VALUES(...) ((const rowlock_value[]){__VA_ARGS__})
/* Options written in place: TABLE(.name = "prices", .key = NAMES("id")). */
#define TABLE(...) ABOUT(__VA_ARGS__)
#define HOW(...) OPTIONS(change, __VA_ARGS__)

enum op { UPDATE, TOUCH, EXPECT, INSERT, REMOVE };
extern const char *const op_names[];

struct site {
    const struct contract *c;
    /* its calls are tested */
    rowlock_db *db;
    /* the application's, which db has adopted; NULL: db was opened with a URL */
    void *session;
    /* another client's */
    void *look;
};

struct site site_open(const struct contract *c);
struct site site_adopt(const struct contract *c);
void site_close(struct site *s);
/* "OWNED(site) struct site s = …": closed at the end of the block. */
#define owned_site_ends site_close

/* Runs a statement in the other session. */
void site_run(const struct site *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* DROP TABLE IF EXISTS name; CREATE TABLE name (columns). The end of the subject drops it. */
void site_table(const struct site *s, const char *name, const char *columns);
void drop_site_tables(const struct contract *c);
/* The first cell that this finds is want; NULL: there is none. */
bool site_finds(const struct site *s, const char *want, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns a handle. A failure ends the program. */
rowlock_table *must_describe(const struct site *s, const struct about *about);
/* The handle of a table whose key is id and whose version is version. */
rowlock_table *must_open_table(const struct site *s, const char *name, const char *const *columns);

int change_rows(rowlock_table *t, enum op op, rowlock_change *changes, size_t count,
                const rowlock_change_options *options);

/* The results of several rows: "OK 2, STALE 7, GONE 0", or without versions "OK, STALE, GONE". */
bool rows_say(const rowlock_change *changes, size_t count, const char *want, const char *what);

/* Changes of the rows id, id + 1, … with one version. Their only column becomes 10, 11, … */
struct few {
    rowlock_value keys[4], values[4];
    rowlock_change changes[4];
};
rowlock_change *few_from(struct few *few, int64_t id, int64_t version);

/* Changes one row: the call and the change return want, and the version is current. */
void becomes(const struct site *s, rowlock_table *t, enum op op, rowlock_change change, int want,
             int64_t current, const char *what);
/* The same for a row whose key is an integer. */
void row_becomes(const struct site *s, rowlock_table *t, enum op op, int64_t id,
                 const rowlock_value *values, int64_t version, int want, int64_t current,
                 const char *what);
