/* SPDX-License-Identifier: MIT
 *
 * Benchmarks: rowlock beside hand-written loops over the raw client libraries, in the same minute,
 * on the same server, on tables of the same definition. No time is judged here; ratios are printed.
 *
 * A contender does one kind of step over and over. contest.c lets contenders take turns in short
 * rounds and compares them pair by pair, so that what disturbs one disturbs its neighbour too.
 */
#ifndef BENCH_H
#define BENCH_H

#include <rowlock/rowlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program: something did not work. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---------------------------------------------------------------- places */

struct hand;

/* Where one side's tables are: a URL, and the schema or database in it; NULL: the URL's own. */
struct place {
    char url[600];
    const char *schema;
    const struct hand *hand; /* who speaks to this database */
};

enum { LEASE_MS = 60000, BATCH = 500 };

/* ---------------------------------------------------------------- contenders */

struct contender {
    const char *label;
    const char *legend; /* one line on what it does; NULL: said already */
    const struct place *place;
    void *(*open)(const struct place *place, const char *name);
    void (*close)(void *session);
    void (*begin)(void *session); /* once, before the first step; may be NULL */
    void (*step)(void *session);
};

/* Rowlock's side. A session has its own connection and one lock. */
void ours_install(const struct place *place);
void *ours_open(const struct place *place, const char *name);
void ours_close(void *session);
void ours_acquire(void *session);
void ours_release(void *session);
void ours_pair(void *session);
void ours_busy(void *session); /* somebody else must hold the lock */
void ours_renew(void *session);
void ours_verify(void *session);
int64_t ours_sweep(void *session); /* how many rows went */
bool ours_wait(void *session); /* in the line; false: it was stopped */
bool ours_wait_unfair(void *session);
void ours_keep(void *session); /* acquire, and have a keeper renew the lease */
void ours_stop(void *session); /* from another thread: the wait ends */
void *ours_open_adopted(const struct place *place, const char *name);
rowlock_db *ours_connect(const struct place *place);

/* What a keeper sends, for every lease that stands in the table when the session is opened. */
void *ours_beat_open(const struct place *place);
void ours_beat_close(void *session);
void ours_beat(void *session);

/* The other side: one for each database, spoken to in its own client library. Where a step is NULL,
 * there is nothing of that kind. */
struct hand {
    const char *name; /* "postgres" */
    const char *url_env; /* where the URL is found */

    /* Two empty places for tables of the same names. */
    void (*make_places)(const char *url, struct place *ours, struct place *theirs);
    void (*drop_places)(const char *url);

    void *(*open)(const struct place *place, const char *name);
    void (*close)(void *session);
    void (*describe)(void *session, char *out, size_t cap);

    void (*transaction)(void *session); /* BEGIN, bump the token, insert the lock, COMMIT; DELETE */
    void (*single)(void *session); /* the same row work in one round trip; DELETE */
    const char *single_label, *single_legend;
    void (*bare)(void *session); /* INSERT, DELETE, no token */
    void (*hold)(void *session); /* leave a lock row standing */
    void (*look)(void *session); /* SELECT the row by its key */
    void (*renew)(void *session); /* UPDATE the row by its key */

    /* A session in rowlock's place may be asked these, too. */
    void (*settle)(void *session); /* before the log is measured */
    int64_t (*written)(void *session); /* bytes of log written so far */
    const char *log_name; /* "WAL" */
    void (*fill)(void *session, int64_t rows); /* with expired locks */

    int64_t (*sweep)(void *session, int64_t now_us); /* DELETE in batches; how many rows went */
    const char *sweep_legend;

    /* The same for all locks that stand in the table, which learn() reads first. */
    void (*learn)(void *session);
    void (*renew_all)(void *session);
    const char *renew_all_legend;
    void (*tidy)(void *session); /* clears dead rows away; may be NULL */

    /* For those who wait. */
    bool (*attempt)(void *session); /* INSERT the row unless it is there */
    void (*leave)(void *session); /* DELETE it */
    void (*lock)(void *session); /* waits for the database's own kind of lock; may be NULL */
    void (*unlock)(void *session);
    const char *lock_label;
    void (*ping)(void *session); /* the least that can be asked */
    rowlock_db *(*adopt)(const struct place *place, const rowlock_db_options *options, void **conn);
    void (*hang_up)(void *conn); /* that adopt() made */

    /* What the server has seen so far; NULL where there is no server. */
    int64_t (*statements)(void *session);
    int64_t (*connections)(void *session);
    const char *server_dir_env; /* where the folder with its pid is found */
};

extern const struct hand hand_postgres, hand_mysql, hand_sqlite;

/* A database with both sides' tables. */
struct site {
    const struct hand *hand;
    const char *url;
    struct place ours, theirs;
};

/* ---------------------------------------------------------------- waiters */

/* A way to wait for a lock. A session has its own connection. */
struct waiter {
    const char *label;
    const char *legend; /* NULL: none */
    const struct place *place;
    void *(*open)(const struct place *place, const char *name);
    void (*close)(void *session);
    bool (*acquire)(void *session); /* waits; false: it was stopped */
    void (*release)(void *session);
    void (*keep)(void *session); /* acquire and hold for long; NULL: nothing special */
    void (*stop)(void *session); /* NULL: the wait ends when the lock is released often enough */
};

enum { WAITERS_MAX = 6 };

/* All ways on this database, rowlock's first. How many they are. */
int ways_to_wait(const struct site *site, bool unfair_too, struct waiter *out);

/* From release to acquire, for lines of up to so many. */
void bench_handoff(const struct site *site, const char *key, int longest, double seconds);
void explain_handoffs(const struct site *site);

/* What so many cost while nothing happens. */
void bench_rest(const struct site *site, int count, double seconds);

/* ---------------------------------------------------------------- contests */

enum { CONTENDERS_MAX = 5, ROUNDS = 15 };

struct outcome {
    double rate; /* steps a second, median of the rounds */
    double ratio, low, high; /* the first contender's rate over this one's: median, least, most */
    double cpu_us; /* user time of the client for each step */
};

/* Each contender runs for seconds in all, with so many clients. prefix begins the locks' names.
 * shared: all clients use one lock. */
void contest(const struct contender *contenders, int count, int clients, double seconds,
             const char *prefix, bool shared, struct outcome *out);

double clock_s(void);
void sleep_s(double seconds);
double median(double *values, int count); /* sorts them */

/* ---------------------------------------------------------------- versions */

enum { BATCH_ROWS = 1000, TABLE_ROWS = 100000, NOTE_CAP = 24 };

/* Rows of a table (id, amount, note, version) as a program has them that wants to write them back: in the
 * order of their ids. All of them must be changed. */
struct rows {
    int64_t id[BATCH_ROWS], version[BATCH_ROWS], amount[BATCH_ROWS];
    char note[BATCH_ROWS][NOTE_CAP];
};

/* Version updates as one would write them by hand: one of these for each database. A session has its own
 * connection and works on one table. */
struct rows_hand {
    const char *name; /* as struct hand's */
    const char *note_type; /* of a short text */
    void *(*open)(const struct hand *hand, const struct place *place, const char *table);
    void (*close)(void *session);
    void (*run)(void *session, const char *sql); /* "?" in it stands for the table's name */

    /* All of them in one transaction. */
    void (*row_by_row)(void *session, const struct rows *rows);
    void (*pipelined)(void *session, const struct rows *rows); /* may be NULL */
    void (*set_based[2])(void *session, const struct rows *rows); /* may be NULL */
    const char *set_labels[2];
    void (*insert)(void *session,
                   const struct rows *rows); /* new rows, in one statement; may be NULL */
    const char *insert_label;

    /* Add one to the amount of row 1. work is what the program does between reading and writing. */
    bool (*try_once)(void *session, void (*work)(void)); /* false: somebody was faster */
    void (*locked)(void *session, void (*work)(void));
    void (*atomic)(void *session);
    const char *locked_legend;
};

extern const struct rows_hand rows_postgres, rows_mysql, rows_sqlite;
const struct rows_hand *rows_hand_of(const struct hand *hand);

/* Such a table anew, with so many rows of version 1, from id 1 on. */
void make_rows(const struct hand *hand, const struct place *place, const char *table, int rows);

/* all_over: not rows that follow each other. */
void bench_batch(const struct site *site, const char *key, bool all_over, double seconds);
void bench_insert(const struct site *site, double seconds);
void bench_hotrow(const struct site *site, double seconds);

/* ---------------------------------------------------------------- report */

/* A table for people on stdout as it comes, and the same figures as JSON when all is done. */
void report_database(const char *name, const char *description);
void report_section(const char *title);
void report_contest(const char *key, const char *unit, const struct contender *contenders,
                    int count, const int *clients, int columns,
                    const struct outcome outcomes[][CONTENDERS_MAX]);

/* A table of other figures: its columns, then the rows. A value that is not known is NAN. */
struct column {
    const char *head;
    const char *key; /* in the JSON */
    int digits; /* after the point */
};
void report_columns(const struct column *columns, int count);
void report_row(const char *key, const char *contender, int waiters, const struct column *columns,
                const double *values, int count);
/* The same for so many clients, who stand in the row as well. */
void report_clients(const char *key, const char *contender, int clients,
                    const struct column *columns, const double *values, int count);

void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_number(const char *key, const char *contender, double value);
void report_save(const char *path);

#endif
