/* SPDX-License-Identifier: MIT
 *
 * What the command prints: messages, texts, JSON, tables, metrics. Texts are safe on a terminal.
 */
#ifndef ROWLOCK_CLI_PRINT_H
#define ROWLOCK_CLI_PRINT_H

#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>

/* ---------------------------------------------------------------- messages (texts.c) */

/* One line, with control characters as text. complain() writes "rowlock: …" on standard error. */
enum voice { SAY, SAY_MEMBER, COMPLAIN };
void speak(enum voice voice, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define say(...) speak(SAY, __VA_ARGS__)
#define say_member(...) speak(SAY_MEMBER, __VA_ARGS__)
#define complain(...) speak(COMPLAIN, __VA_ARGS__)

/* complain() after the command and the names of its locks: "run 'nightly': …" */
void tell(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Should a message name the holder? A person who waits wants to read it. A cron job that finds
 * another host at work must not send mail about it. */
bool talkative(void);

/* The exit status of a result. A server that takes no writes now may do so later. The last two
 * print the text of the error before, if it is not ROWLOCK_OK. reported() takes that of the last
 * call on cli->db. */
int status_of(int result);
int status_of_error(int result, const rowlock_error *error);
int report_error(int result, const rowlock_error *error);
int reported(const struct cli *cli, int result);

/* Ends standard output: EXIT_OUTPUT if status is EXIT_FINE and not everything could be written. */
int finish_output(int status);

/* ---------------------------------------------------------------- texts (texts.c) */

/* Returns memory. NULL ends the process with EXIT_INTERNAL. */
void *must_have(void *memory);

/* A copy of a formatted text. Free it. Never NULL. */
char *new_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A file in memory. Close it with closed_text(), which returns *text. Never NULL. */
FILE *open_text(char **text);
char *closed_text(FILE *file, char **text);

/* The number of bytes at text that a terminal may obey, or not show: 0 for what is shown. */
size_t dangerous_bytes(const char *text);

/* A copy of text with such characters as \xNN. Free it. Never NULL. */
char *printable(const char *text);

/* The columns of a printable() text, roughly: one for each code point. */
int columns_of(const char *text);

/* FNV-1a of some bytes, after what sum is of. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t hash_of(uint64_t sum, const char *bytes, size_t length);

/* It lasts to the end of the expression that has the call. */
struct text {
    char text[1000];
};

/* "4.2s", "42s", "3m12s", "2h05m", "3d04h". Below 0 is 0. */
struct text duration_text(int64_t ms);
/* "exclusive", "shared", "3 permits" */
struct text kind_text(int32_t permits);
/* "4.2s", or "expired 3.0s ago" if remaining_ms is negative. */
struct text lease_text(int64_t remaining_ms);
/* "2026-11-22T02:00:00.500000Z" */
struct text time_text(int64_t us);
/* "report.sh[4711]@web1" */
struct text process_text(const char *program, int64_t pid, const char *host);
struct text holder_text(const rowlock_grant *grant);
/* "held by report.sh[4711]@web1, its lease lasts 12s more: its note" */
struct text held_text(const rowlock_grant *grant);

/* The age of the grant, by the database's clock. */
int64_t grant_age_ms(const rowlock_grant *grant);

static inline int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

static inline int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* ---------------------------------------------------------------- JSON (records.c) */

/* The functions for JSON end the process if there is no memory. They never return NULL. */

/* How a member of a record is written. LESS_THAN_0 and IS_0 make a boolean of a number. */
enum form {
    CHARACTERS,
    /* A pointer to them. NULL is null. */
    WORDS,
    INTEGER,
    SHORT_INTEGER,
    /* Microseconds since 1970: as a number in KEY_us, and for people in KEY_at. */
    TIME,
    /* A number of permits: the kind in words, and the number if it is counted. */
    KIND,
    BOOLEAN,
    LESS_THAN_0,
    IS_0,
    VERDICT
};

/* A record's description ends with a key of NULL. */
struct member {
    const char *key;
    enum form form;
    size_t offset;
};

json_t *json_of(const struct member *members, const void *record);
void json_put(json_t *object, const char *key, json_t *value);
void json_put_text(json_t *object, const char *key, const char *text);
void json_put_integer(json_t *object, const char *key, int64_t value);
void json_put_time(json_t *object, const char *key, int64_t us);
void json_append(json_t *array, json_t *value);

/* An object for an answer. It has the member's number if the command goes from member to member.
 * json_of_answer() puts the result into it: "ok", "lost", "timeout". */
json_t *json_begin(const struct cli *cli);
json_t *json_of_answer(const struct cli *cli, int result);
void json_put_result(json_t *object, int result);

/* They print and free value. compact: on one line. key NULL: an answer only. */
void json_print(json_t *value, bool compact);
void json_print_answer(const struct cli *cli, int result, const char *key, json_t *value);

/* "ok", "warning", "bad" */
const char *verdict_text(rowlock_verdict verdict);

/* ---------------------------------------------------------------- tables (records.c) */

struct table {
    const char *const *headings;
    size_t columns;
    /* The widths of what has been printed. They only grow. */
    int *widths;
    /* The cells of the page that is being collected, row by row. */
    char **cells;
    /* Of that page. With --json: all. */
    size_t rows;
};

/* A new row. Fill in all its cells; the table frees them. Rows are printed in pages, so a long
 * table takes no more memory than a short one. headings must outlive the table. table_end() prints
 * the rest, and frees the table's memory. */
char **table_row(struct table *table);
void table_end(struct table *table);

/* A new row with --json. It is printed at once, on one line, and freed. */
void table_json(struct table *table, json_t *row);

/* --------------------------------------------------------- grants and waiters (entries.c) */

struct entry {
    bool waits;
    union {
        rowlock_grant grant;
        rowlock_waiter waiter;
    };
};

/* A member that grants and waiters have. */
#define OF_ENTRY(entry, member) ((entry)->waits ? (entry)->waiter.member : (entry)->grant.member)

enum cell {
    CELL_NAME,
    /* Its token or its ticket. */
    CELL_NUMBER,
    CELL_POSITION,
    CELL_KIND,
    CELL_WHO,
    CELL_SINCE,
    CELL_LEASE,
    CELL_NOTE,
    /* For a screen: "holds", "expired", "2.", "gone"; "4.2s", "-3.0s". */
    CELL_STATE,
    CELL_LEFT
};

/* What a table or a screen shows, when some time has passed since the entry was read. Free it. */
char *cell_of(const struct entry *entry, enum cell cell, int64_t passed_ms);

json_t *json_of_grant(const rowlock_grant *grant);
json_t *json_of_entry(const struct entry *entry);

struct table entry_table(bool waiters);
void table_add_entry(struct table *table, const struct entry *entry);

/* Reads the grants, or the waiters, of one name, or (NULL) of all, in the order of names. each()
 * stops it with a number other than 0. Returns the library's result. */
int list_entries(rowlock_db *db, const char *name, bool waiters,
                 int (*each)(void *context, const struct entry *entry), void *context);

/* The grants and waiters in the tables at one moment, read with plain reads. */
struct snapshot {
    /* First the grants. Both are in the order of names, and waiters in that of tickets. */
    struct entry *entries;
    size_t count;
    size_t grants;
    /* Those of both whose leases run. */
    size_t held, waiting;
    /* now_ms() of the latest read. */
    int64_t taken_ms;
};

/* snapshot is empty before. */
int snapshot_take(struct snapshot *snapshot, rowlock_db *db, const char *name);
void snapshot_free(struct snapshot *snapshot);

/* An array of all grants of a snapshot, or of all its waiters. */
json_t *json_of_entries(const struct snapshot *snapshot, bool waiters);

/* ---------------------------------------------------------------- metrics (metrics.c) */

/* How the library gives a number. Metrics have seconds. */
enum unit { COUNT, MILLISECONDS, MICROSECONDS };

struct metric {
    /* A counter's ends with "_total". All others are gauges. */
    const char *name;
    /* "": more samples of the metric before. */
    const char *help;
    /* In their final form, or "". */
    const char *labels;
    /* Where the number is in what has been read. */
    size_t offset;
    enum unit unit;
};

/* The lines before the samples of a metric. */
void metrics_begin(FILE *out, const struct metric *metric);

/* One sample. member 0 and name NULL: without these labels. name is escaped. */
void metrics_sample(FILE *out, const struct metric *metric, int member, const char *name,
                    int64_t value);

/* Puts the text in the place of the file, as a whole: a reader sees the old file or the new one.
 * Returns EXIT_FINE, or EXIT_OUTPUT after a message. The file is as it was then. */
int metrics_write(const char *path, const char *text);

/* ---------------------------------------------------------------- looks of watch (looker.c) */

/* What one look has found. */
struct view {
    struct snapshot snapshot;
    /* Since the look before, and the time since then. */
    int64_t grants, span_ms;
    /* Grants in 1000 seconds, over some looks. */
    int64_t rate_milli;
    int result;
    /* The error of the library, if result is not ROWLOCK_OK. */
    rowlock_error error;
};

/* Looks once. Never NULL; free it with view_free(). */
struct view *looker_look(struct cli *cli);
void view_free(struct view *view);

/* "1 held, 0 waiting, 0.5 grants/s" after another text. Free it. */
char *view_summary(const char *before, const struct view *view);

/* screen.c: shows on a terminal what looks find, until the last one, a key or a signal ends it.
 * first is shown at once, and freed. *status gets the exit status. False: there can be no screen
 * here, and nothing was done. */
bool screen_watch(struct cli *cli, struct view *first, int *status);

#endif
