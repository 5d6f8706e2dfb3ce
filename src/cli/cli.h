/* SPDX-License-Identifier: MIT
 *
 * What the files of the command share: the parsed command line, the open handles and the helpers.
 * Nothing here is part of the library.
 */
#ifndef ROWLOCK_CLI_CLI_H
#define ROWLOCK_CLI_CLI_H

#include "exit.h"

#include <rowlock/admin.h>
#include <rowlock/once.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- the command line (options.c) */

#define UNSET INT64_C(-1) /* a number or duration that was not given */
#define NEVER INT64_C(-2) /* the word "never" where a duration may be that */

/* The values of all options of all commands; each command accepts its own selection of them. */
struct settings {
    const char *url;
    const char *owner;
    const char *note;
    const char *once;
    bool help;
    bool version;
    bool json;
    bool quiet;
    bool verbose;
    bool nonblock;
    bool dry_run;
    bool print;
    bool sql;
    bool new_identity;
    bool shared;
    bool unfair;
    bool waiters;
    int64_t wait_ms;
    int64_t ttl_ms;
    int64_t min_hold_ms;
    int64_t max_hold_ms;
    int64_t stall_ms;
    int64_t grace_ms;
    int64_t older_than_ms;
    int64_t once_older_than_ms;
    int64_t idle_ms;
    int64_t every_ms;
    int64_t conflict_status;
    int64_t token;
    int64_t if_token;
    int64_t batch;
    int64_t by;
    int64_t permits;
    int64_t interval_ms;
    int64_t count;
};

/* Options, as commands list them. Two ids may have one name where two commands mean two things. */
enum option_id {
    OPT_END = 0,
    OPT_URL = 256, /* beyond every letter, so that getopt_long() can return either */
    OPT_HELP,
    OPT_VERSION,
    OPT_JSON,
    OPT_NONBLOCK,
    OPT_WAIT,
    OPT_CONFLICT,
    OPT_VERBOSE,
    OPT_TTL,
    OPT_MIN_HOLD,
    OPT_MAX_HOLD,
    OPT_GRACE,
    OPT_STALL,
    OPT_OWNER,
    OPT_NOTE,
    OPT_ONCE,
    OPT_ITS_OWNER,
    OPT_ITS_TOKEN,
    OPT_NEW_TTL,
    OPT_OLDER_THAN,
    OPT_IDLE,
    OPT_ONCE_OLDER_THAN,
    OPT_BATCH,
    OPT_DRY_RUN,
    OPT_TRY_RUN, /* --dry-run of upgrade */
    OPT_SQL,
    OPT_PRINT,
    OPT_EVERY,
    OPT_QUIET,
    OPT_IF_TOKEN,
    OPT_BY,
    OPT_NEW_IDENTITY,
    OPT_SHARED,
    OPT_PERMITS,
    OPT_UNFAIR,
    OPT_WAITERS,
    OPT_INTERVAL,
    OPT_COUNT
};

struct cli;

struct command {
    const char *name;
    const char *arguments; /* as the usage line shows them */
    const char *purpose; /* one line, for the list of commands */
    const char *details; /* the rest of its help */
    const int *options; /* OPT_END ends them; url and help are everybody's */
    int least_arguments;
    int most_arguments; /* NO_LIMIT: names, and then another program's command line */
    int (*run)(struct cli *cli);
};

#define NO_LIMIT (-1)
#define ANY_NUMBER 100000

struct cli {
    const struct command *command; /* NULL before it is known */
    struct settings set;
    char **arguments; /* what is neither an option nor the command's name */
    int argument_count;
    int name_count; /* so many arguments are names of locks, before a command line to run */

    char *url; /* of db */
    rowlock_db *db;
    rowlock_lock **locks; /* as the names were given; disconnect_database() closes them */
    int lock_count;
    char *title; /* their names, as a message shows them: 'a', 'b' */
    rowlock_once *once; /* what --once claimed, or found done; NULL: nothing */
    rowlock_keeper *keeper; /* renews the locks; NULL: nobody does */
    int64_t wait_until_ms; /* of now_ms(); 0: the command does not wait; INT64_MAX: for ever */
    bool waiting; /* for the lock: warnings are for the user now */
    int64_t margin_ms; /* how long before the end of its lease a lock counts as lost; 0: as the
                          library sees fit */
    bool leave_grant; /* end without closing the handles: the grant shall outlive this process */
    bool abandon; /* end without so much as touching them: the database does not answer */
};

/* The options that may stand before the command. *used gets how many words they took. */
int options_before_command(struct cli *cli, int argc, char **argv, int *used);

/* The command's own; fills cli->set and cli->arguments. argv[0] is the command's name. Both return
 * EXIT_FINE, or EXIT_USAGE after saying what is wrong. */
int options_of_command(struct cli *cli, int argc, char **argv);

/* One line for each option of the list, for --help. */
void options_print(const int *ids);

/* Says what is wrong with the command line and where to read more. Returns EXIT_USAGE. */
int usage_error(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "500ms", "1.5", "30s", "5m", "2h", "1d" in milliseconds, rounded up; false if it is none. */
bool parse_duration(const char *text, int64_t *out);

/* A decimal number between least and most, and nothing else. */
bool parse_number(const char *text, int64_t least, int64_t most, int64_t *out);

/* ---------------------------------------------------------------- the database (connect.c) */

/* Opens cli->db by --url, ROWLOCK_URL or the embedded default. options may be NULL. A server that
 * is away is waited for until cli->wait_until_ms. Returns an exit status; what went wrong has been
 * said. */
int connect_database(struct cli *cli, const rowlock_db_options *options);

/* Says once that the server is away, and pauses before the next attempt. False: the wait is over,
 * or the failure is another one. *tries counts the attempts of one outage and is 0 at first. */
bool wait_for_server(const struct cli *cli, int result, const rowlock_error *error, int *tries);

/* Says that the server is back, if it was away. */
void say_back(int *tries);

/* Opens cli->keeper on the same database, with a connection of its own. Likewise. */
int connect_keeper(struct cli *cli, const rowlock_db_options *options);

/* Closes what is open, as far as the two flags of cli allow. */
void disconnect_database(struct cli *cli);

/* ---------------------------------------------------------------- saying things (report.c) */

/* One line on standard error, "rowlock: …", in which nothing can upset a terminal. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on, a line that cannot be written at once is dropped. */
void complain_without_waiting(void);

/* What the library last warned of, or false if that was nothing or has been forgotten
 * (connect.c). */
#define WARNING_SIZE 800
bool last_warning(char text[WARNING_SIZE]);
void forget_warning(void);

/* The exit status that belongs to a result. */
int status_of(int result);

/* Says what the database had to say about the last failure, and returns its exit status. */
int report_failure(const struct cli *cli, int result);

/* Ends standard output: EXIT_OUTPUT if status is EXIT_FINE and not everything could be written. */
int finish_output(int status);

/* A copy of text in which control characters are \xNN; yours to free. Never NULL. */
char *printable(const char *text);

/* How many columns a printable() text takes, roughly: one for each code point. */
int columns_of(const char *text);

/* "4.2s", "42s", "3m12s", "2h05m", "3d04h" */
#define DURATION_TEXT_SIZE 32
void duration_text(int64_t ms, char text[DURATION_TEXT_SIZE]);

/* "report.sh[4711]@web1", printable; yours to free. Never NULL. */
char *holder_text(const rowlock_grant *grant);
char *waiter_text(const rowlock_waiter *waiter);

/* "held by report.sh[4711]@web1, its lease lasts 12s more: its note"; likewise. */
char *held_text(const rowlock_grant *grant);

/* "exclusive", "shared", "3 permits" */
#define KIND_TEXT_SIZE 24
void kind_text(int32_t permits, char text[KIND_TEXT_SIZE]);

/* Does somebody want to read who is in the way? A person who waits does. A cron job that finds
 * another host at work does not want to send mail about it. */
bool talkative(const struct cli *cli);

/* How long the grant has been there, by the database's clock. */
int64_t grant_age_ms(const rowlock_grant *grant);

/* malloc() and friends that end the process with EXIT_INTERNAL when there is no memory. */
void *must_have(void *memory);

#endif
