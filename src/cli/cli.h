/* SPDX-License-Identifier: MIT
 *
 * What the files of the command share: the parsed command line, the open handles and the helpers.
 * Nothing here is part of the library.
 */
#ifndef ROWLOCK_CLI_CLI_H
#define ROWLOCK_CLI_CLI_H

#include "cli/exit.h"

#include <rowlock/admin.h>
#include <rowlock/once.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- the command line (command_line.c) */

/* A number or duration that was not given. */
#define UNSET INT64_C(-1)
/* The word "never" instead of a duration. */
#define NEVER INT64_C(-2)

/* The members of a quorum at most. */
enum { URLS_MOST = 5 };

/* The values of all options of all commands. Each command accepts some of them. */
struct settings {
    /* Several: a lock over independent databases. Of more than URLS_MOST only the number is known.
     */
    const char *urls[URLS_MOST];
    int url_count;
    const char *owner;
    const char *note;
    const char *once;
    const char *at;
    const char *timezone;
    const char *match;
    const char *textfile;
    const char *metrics;
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
    bool watch;
    bool names;
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
    int64_t at_ms;
    int64_t retry_after_ms;
    int64_t conflict_status;
    int64_t token;
    int64_t if_token;
    int64_t replace;
    int64_t batch;
    int64_t by;
    int64_t permits;
    int64_t interval_ms;
    int64_t count;
};

/* The options that commands list. Two ids may have one name, if two commands mean two things. */
enum option_id {
    OPT_END = 0,
    /* Above every letter: getopt_long() returns either a letter or an id. */
    OPT_URL = 256,
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
    /* --every of run. */
    OPT_PERIOD,
    OPT_AT,
    OPT_TIMEZONE,
    OPT_RETRY_AFTER,
    OPT_MATCH,
    OPT_ITS_OWNER,
    OPT_ITS_TOKEN,
    OPT_NEW_TTL,
    OPT_OLDER_THAN,
    OPT_IDLE,
    OPT_ONCE_OLDER_THAN,
    OPT_BATCH,
    OPT_DRY_RUN,
    /* --dry-run of upgrade. */
    OPT_TRY_RUN,
    OPT_SQL,
    OPT_PRINT,
    OPT_EVERY,
    OPT_QUIET,
    OPT_IF_TOKEN,
    OPT_REPLACE,
    OPT_BY,
    OPT_NEW_IDENTITY,
    OPT_SHARED,
    OPT_PERMITS,
    OPT_UNFAIR,
    OPT_WAITERS,
    OPT_WATCH,
    OPT_NAMES,
    OPT_INTERVAL,
    OPT_COUNT,
    OPT_MATCH_NAMES,
    OPT_TEXTFILE,
    OPT_METRICS
};

struct cli;

/* What a command does with several URLs: ask for a lock over all of them, go from member to member,
 * or refuse. */
enum across { QUORUM, EACH_MEMBER, ONE_DATABASE };

struct command {
    const char *name;
    /* As the usage line shows them. */
    const char *arguments;
    /* One line, for the list of commands. */
    const char *purpose;
    /* The rest of its help. */
    const char *details;
    /* Up to OPT_END. All commands also have --url and --help. */
    const int *options;
    int least_arguments;
    /* NO_LIMIT: names, and then another program's command line. */
    int most_arguments;
    /* It creates the embedded database if there is none yet. */
    bool creates;
    enum across across;
    int (*run)(struct cli *cli);
};

#define NO_LIMIT (-1)
#define ANY_NUMBER 100000

struct cli {
    /* NULL before it is known. */
    const struct command *command;
    struct settings set;
    /* The words that are neither options nor the command's name. */
    char **arguments;
    int argument_count;
    /* The first arguments that are names of locks. A command line to run follows them. */
    int name_count;

    /* A copy of ROWLOCK_URL, cut into URLs. NULL: they come from --url, or there are none. */
    char *url_words;
    /* 1, 2, …: the one of several databases that a command is at. 0: it is not that kind. */
    int member;
    /* Of db, if it is one database. */
    char *url;
    rowlock_db *db;
    /* There is no embedded database yet: db is an empty one in memory. */
    bool no_file;
    /* In the order of the names. disconnect_database() closes them. */
    rowlock_lock **locks;
    int lock_count;
    /* Their names, as a message shows them: 'a', 'b'. */
    char *title;
    /* What --once or --every claimed, or found done. May be NULL. */
    rowlock_once *once;
    /* Renews the locks. May be NULL. */
    rowlock_keeper *keeper;
    /* Of now_ms(). 0: the command does not wait. INT64_MAX: it waits without a limit. */
    int64_t wait_until_ms;
    /* SIGUSR1 ends the job and gives the lock to the next in the queue. */
    bool resigns;
    /* For the lock: the user wants to read warnings now. */
    bool waiting;
    /* How long before the end of its lease a lock counts as lost. 0: the library's default. */
    int64_t margin_ms;
    /* End without closing the handles: the grant must outlive this process. */
    bool leave_grant;
    /* End without using the handles: the database does not answer. */
    bool abandon;
};

/* The options that may stand before the command. *used gets the number of words they took. */
int options_before_command(struct cli *cli, int argc, char **argv, int *used);

/* The options of the command. It fills cli->set and cli->arguments. argv[0] is the command's name.
 * Both functions return EXIT_FINE, or EXIT_USAGE after a message. */
int options_of_command(struct cli *cli, int argc, char **argv);

/* One line for each option of the list, for --help. */
void options_print(const int *ids);

/* Says what is wrong with the command line, and where to read more. Returns EXIT_USAGE. */
int usage_error(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "500ms", "1.5", "30s", "5m", "2h", "1d" in milliseconds, rounded up. False: not a duration. */
bool parse_duration(const char *text, int64_t *out);

/* A decimal number between least and most, and nothing else. */
bool parse_number(const char *text, int64_t least, int64_t most, int64_t *out);

/* ---------------------------------------------------------------- the database (database.c) */

/* Without --url, takes the URLs of ROWLOCK_URL. Several are separated by white space. */
void find_urls(struct cli *cli);

/* From now on, the library's warnings are kept, and printed while cli->waiting is set. */
void listen_to_library(struct cli *cli);

/* A lock over several databases? */
bool is_quorum(const struct cli *cli);

/* Returns EXIT_USAGE, after a message, if there are 2 URLs, or if one is empty. */
int check_urls(const struct cli *cli);

/* Opens cli->db by --url, ROWLOCK_URL or the embedded default. options may be NULL. It waits for a
 * server that is away until cli->wait_until_ms. Returns an exit status, after a message. */
int connect_database(struct cli *cli, const rowlock_db_options *options);

/* Says once that the server is away, and pauses before the next try. False: the wait is over, or
 * the failure is another one. *tries counts the tries of one outage. Begin with 0. */
bool wait_for_server(const struct cli *cli, int result, const rowlock_error *error, int *tries);

/* Says that the server is back, if it was away. */
void say_back(const struct cli *cli, int *tries);

/* Opens cli->keeper on the same database, with another connection. Otherwise as above. */
int connect_keeper(struct cli *cli, const rowlock_db_options *options);

/* Closes what is open, unless cli->leave_grant or cli->abandon is set. */
void disconnect_database(struct cli *cli);

/* ---------------------------------------------------------------- saying things (report.c) */

/* From now on, messages begin with "member N: ". 0: not any more. */
void complain_for_member(int number);

/* Prints "member N: " if the command goes from member to member. */
void print_member(const struct cli *cli);

/* One line on standard error, "rowlock: …", with control characters as text. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on, a line that cannot be written at once is dropped. */
void complain_without_waiting(void);

/* The library's last warning (database.c). False: there is none. */
#define WARNING_SIZE 800
bool last_warning(char text[WARNING_SIZE]);
void forget_warning(void);

/* The exit status of a result. */
int status_of(int result);
int status_of_error(int result, const rowlock_error *error);

/* Prints the error text of the last failure, and returns its exit status. */
int report_failure(const struct cli *cli, int result);

/* Ends standard output: EXIT_OUTPUT if status is EXIT_FINE and not everything could be written. */
int finish_output(int status);

/* The number of bytes at text that a terminal may obey, or not show: 0 for what is shown. */
size_t dangerous_bytes(const char *text);

/* A copy of text with such characters as \xNN. Free it. Never NULL. */
char *printable(const char *text);

/* The columns of a printable() text, roughly: one for each code point. */
int columns_of(const char *text);

/* "4.2s", "42s", "3m12s", "2h05m", "3d04h". Below 0 is 0. */
#define DURATION_TEXT_SIZE 32
void duration_text(int64_t ms, char text[DURATION_TEXT_SIZE]);

/* "report.sh[4711]@web1", printable. Free it. Never NULL. */
char *holder_text(const rowlock_grant *grant);
char *waiter_text(const rowlock_waiter *waiter);

/* "held by report.sh[4711]@web1, its lease lasts 12s more: its note". Free it. Never NULL. */
char *held_text(const rowlock_grant *grant);

/* "exclusive", "shared", "3 permits" */
#define KIND_TEXT_SIZE 24
void kind_text(int32_t permits, char text[KIND_TEXT_SIZE]);

/* Should a message name the holder? A person who waits wants to read it. A cron job that finds
 * another host at work must not send mail about it. */
bool talkative(const struct cli *cli);

/* The age of the grant, by the database's clock. */
int64_t grant_age_ms(const rowlock_grant *grant);

static inline int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Returns memory. NULL ends the process with EXIT_INTERNAL. */
void *must_have(void *memory);

#endif
