/* SPDX-License-Identifier: MIT
 *
 * Benchmarks: rowlock beside hand-written loops over the raw client libraries, in the same minute,
 * on the same server, on tables of the same definition. No time is judged here; ratios are printed.
 *
 * A contender does one kind of step over and over. contest.c lets contenders take turns in short
 * rounds and compares them pair by pair, so that what disturbs one disturbs its neighbour too. */
#pragma once

#include "public.h"

/* Ends the program: something did not work. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void *zeroed(size_t count, size_t size);

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
    const struct way *way; /* NULL: rowlock's */
    void *(*open)(const struct contender *contender, const char *name);
    void (*close)(void *session);
    void (*begin)(void *session); /* once, before the first step; may be NULL */
    void (*step)(void *session);
    const char *server_dir; /* NULL: its server's processor time is not of interest */
};

/* Ends the program unless the result is OK. */
void must_open(int result, const rowlock_error *err);

/* Rowlock's side. A session has its own connection and one lock. */
void ours_install(const struct place *place);
void *ours_open(const struct place *place, const char *name);
void ours_close(void *session);
void ours_acquire(void *session);
bool ours_try(void *session); /* false: another has it */
void ours_hold_long(void *session); /* for an hour */
void ours_release(void *session);
void ours_pair(void *session);
void ours_busy(void *session); /* another client must hold the lock */
void ours_renew(void *session);
void ours_verify(void *session);
int64_t ours_sweep(void *session); /* how many rows went */
int64_t ours_count(void *session, const char *name); /* grants listed. name NULL: all */
bool ours_wait(void *session); /* in the line; false: it was stopped */
bool ours_wait_unfair(void *session);
void ours_keep(void *session); /* acquire, and have a keeper renew the lease */
void ours_stop(void *session); /* from another thread: the wait ends */
void *ours_open_pooled(const struct place *place, const char *name);
enum { MEMBERS = 3 };
/* places: an array of MEMBERS, which become a quorum. */
void ours_install_quorum(const struct place *places);
void *ours_open_quorum(const struct place *places, const char *name);
void *ours_open_adopted(const struct place *place, const char *name);
/* A contender that takes this step over and over. */
struct contender our_contender(const struct place *place, void (*step)(void *session));
rowlock_db *ours_connect(const struct place *place);
rowlock_pool *ours_open_pool(const struct place *place);
rowlock_db *ours_connect_pooled(rowlock_pool *pool);
/* A table whose key is id, on a connection of its own. */
rowlock_table *ours_open_table(const struct place *place, const char *name,
                               const char *const *columns, rowlock_db **db);

/* What a keeper sends, for so many leases from all over the table. count 0: for every lease that
 * stands there when the session is opened. */
void *ours_heartbeat_open(const struct place *place, int count);
void ours_heartbeat_close(void *session);
void ours_heartbeat(void *session);

/* The other side, written by hand: ways of each database in tests/bench/sql, which hand.c reads and
 * runs. What only a database's client library can do is in hand.h. Such a session may be in
 * rowlock's place, too. */
void hand_load(const struct hand *hand);
const struct way *hand_way(const struct hand *hand, const char *kind, int number); /* or NULL */

/* name: of the lock; NULL: none. */
struct session *hand_open(const struct place *place, const char *name);
void hand_close(void *session);
/* The name of the lock from now on. */
void hand_set_name(struct session *s, const char *name);
int64_t hand_run(struct session *s, const struct way *way); /* rows of its last step */
int64_t hand_do(struct session *s,
                const char *kind); /* the first way of that kind, if there is one */
int64_t hand_number(struct session *s, const char *kind); /* that the first such way answers */
const char *hand_text(struct session *s, const char *kind);

void hand_make_places(const struct hand *hand, const char *url, struct place *ours,
                      struct place *theirs);
void hand_drop_places(const struct hand *hand, const char *url);
int64_t hand_written(struct session *s); /* bytes of log written so far */
void hand_fill(struct session *s, int64_t rows); /* with expired locks */
/* From so many locks that do not expire, and as many token counters, to so many. From 0: anew. */
void hand_grow(struct session *s, int64_t from, int64_t to);
int64_t hand_sweep(struct session *s, const struct way *way); /* how many rows went */
rowlock_db *hand_adopt(const struct place *place, const rowlock_db_options *options, void **conn);

/* A contender that takes that way over and over. */
struct contender hand_contender(const struct place *place, const struct way *way);

extern const struct hand hand_postgres, hand_mysql, hand_sqlite;
/* Those that are built in. The last one is NULL. */
extern const struct hand *const hands[];

/* A database with both sides' tables. */
struct site {
    const struct hand *hand;
    const char *url;
    struct place ours, theirs;
};
/* Makes the tables. False: the environment has no URL of it. */
bool site_open(struct site *site, const struct hand *hand);

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

/* Tries again and again, with pauses. The first pause is any part of one. A session that is stopped
 * by stop_polling() begins with this. */
struct polling {
    double pause_s;
    unsigned random;
    atomic_bool stopped;
};
struct polling polling_of(double pause_s);
bool poll_for(struct polling *polling, bool (*try)(void *session), void *session);
void stop_polling(void *session);

/* All ways on this database, rowlock's first. How many they are. */
int ways_to_wait(const struct site *site, bool unfair_too, struct waiter *out);

/* A column of a table in the report. */
struct column {
    const char *head;
    const char *key; /* in the JSON */
    int digits; /* after the point */
};

/* What can be asked of a server while others work. Its functions and dir may be NULL. */
struct observer {
    void *session;
    int64_t (*statements)(void *session); /* that all sessions have sent so far */
    int64_t (*connections)(void *session); /* this one too */
    const char *dir; /* the folder with the file "pid" of the server */
};
struct observer hand_observer(const struct place *place, struct session *session);

/* From release to acquire, for lines of up to so many. */
void bench_handoff(const struct site *site, const char *key, int longest, double seconds);
void explain_handoffs(const struct site *site);

/* One who has the lock and so many who wait. warm_up_s: until the server tells of statements; trip_s:
 * a round trip; NAN: unknown. */
enum { MEDIAN, P99, TRIPS, WHOLE, RATE, STATEMENTS, HANDOFF_COLUMNS };
extern const struct column handoff_columns[];
void measure_handoff(const struct waiter *way, const struct observer *observer, int waiting,
                     double warm_up_s, double seconds, double trip_s, double *out);

/* What so many cost while nothing happens. */
void bench_rest(const struct site *site, int count, double seconds);

enum { REST_STATEMENTS, SERVER_CPU, CLIENT_CPU, CONNECTIONS, REST_COLUMNS };
extern const struct column rest_columns[];
/* Of the server whose process number is in that folder. NAN: it is not one of this machine. */
double server_cpu_s(const char *dir);
void measure_rest(const struct waiter *way, const struct observer *observer, int count,
                  double settle_s, double seconds, double *out);

/* ---------------------------------------------------------------- contests */

enum { CONTENDERS_MAX = 20, ROUNDS = 15 };

struct outcome {
    /* Steps a second: the median of the rounds, the least, the most, and each. */
    double rate, rate_low, rate_high;
    double rates[ROUNDS];
    int rounds;
    /* The first contender's rate over this one's: median, least, most. */
    double ratio, low, high;
    /* How long a step takes. */
    double median_us, p99_us;
    /* User time of the client for each step, and the server's processor time. NAN: unknown. */
    double cpu_us, server_us;
};

/* Each contender runs for seconds in all, with so many clients, in so many rounds. prefix begins
 * the locks' names. shared: all clients use one lock. */
void contest(const struct contender *contenders, int count, int clients, int rounds, double seconds,
             const char *prefix, bool shared, struct outcome *out);

/* What a commit costs at the least on this machine: in microseconds. */
double disk_us(void);

/* A connection takes a file at least, and on SQLite several. */
void allow_many_files(void);

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

/* Such a table anew, with so many rows of version 1, from id 1 on. */
void make_rows(const struct place *place, const char *table, int rows);

/* A session by hand that works on a table; on rows, which may be NULL, or on row 1. */
struct session *hand_open_rows(const struct place *place, const char *table,
                               const struct rows *rows);

/* What a way of a hot row does between reading and writing. */
void hand_set_work(struct session *s, void (*work)(void));

/* all_over: not rows that follow each other. */
void bench_batch(const struct site *site, const char *key, bool all_over, double seconds);
void bench_insert(const struct site *site, double seconds);
void bench_hotrow(const struct site *site, double seconds);

/* The last part: it leaves its rows standing. */
void bench_growth(const struct site *site, int64_t most, double seconds);

/* ---------------------------------------------------------------- report */

/* A table for people on stdout as it comes, and the same figures as JSON when all is done. */
void report_machine(void);
void report_database(const char *name, const char *description);
void report_contest(const char *key, const char *unit, const struct contender *contenders,
                    int count, const int *clients, int columns,
                    const struct outcome outcomes[][CONTENDERS_MAX]);

/* A table of other figures: its columns, then the rows. A value that is not known is NAN. */
void report_columns(const struct column *columns, int count);
void report_row(const char *key, const char *contender, int waiters, const struct column *columns,
                const double *values, int count);
/* The same for so many clients, who stand in the row as well. */
void report_clients(const char *key, const char *contender, int clients,
                    const struct column *columns, const double *values, int count);

void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of its own, after an empty one. */
#define report_section(...) (report_line("\n" __VA_ARGS__), report_line("\n"))
void report_number(const char *key, const char *contender, double value);
/* What is known of a contender, in the JSON only. */
void report_text(const char *key, const char *contender, const char *text);
/* Adds a list to the last figure, in the JSON only. */
void report_list(const char *key, const double *values, int count);
void report_save(const char *path);
