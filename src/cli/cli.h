/* SPDX-License-Identifier: MIT
 *
 * What all of the command shares: options, commands, the open handles, signals and time.
 */
#ifndef ROWLOCK_CLI_CLI_H
#define ROWLOCK_CLI_CLI_H

#include "cli/exit.h"

#include <rowlock/admin.h>
#include <rowlock/once.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- options (command_line.c) */

/* A number or duration that was not given. */
#define UNSET INT64_C(-1)
/* The word "never" instead of a duration. */
#define NEVER INT64_C(-2)

/* LENGTH is a DURATION above 0. */
enum option_kind { FLAG, TEXT, URLS, DURATION, LENGTH, LENGTH_OR_NEVER, NUMBER };

struct option_row {
    const char *name;
    /* 0: only the long name. */
    int letter;
    enum option_kind kind;
    /* As the help shows it. NULL: it takes none. */
    const char *argument;
    const char *help;
    /* What it sets: a bool, a const char * or an int64_t. Durations are in milliseconds. */
    void *value;
    /* The bounds of the value. */
    int64_t least, most;
    /* The names of the commands that have it. NULL: all that list it. */
    const char *users;
};

#define OPTION_OF(users, name, letter, argument, help, kind, variable, least, most) \
    {                                                                               \
        name, letter, kind, argument, help, &(variable), least, most, users         \
    }
#define OPTION(name, letter, argument, help, kind, variable) \
    OPTION_OF(NULL, name, letter, argument, help, kind, variable, 0, INT64_MAX)
#define FLAG_OPTION(name, letter, help, variable) OPTION(name, letter, NULL, help, FLAG, variable)
#define NUMBER_OPTION(name, help, variable, least, most) \
    OPTION_OF(NULL, name, 0, "N", help, NUMBER, variable, least, most)

#define JSON_OPTION FLAG_OPTION("json", 0, "print JSON", general.json)
#define DEFAULT_INTERVAL_MS 1000
#define INTERVAL_OPTION                                                               \
    OPTION_OF(NULL, "interval", 0, "DURATION", "time between two looks (1s)", LENGTH, \
              general.interval_ms, 50, INT64_MAX)

/* The members of a quorum at most. */
enum { URLS_MOST = 5 };

/* The options that several files look at. A command keeps its own in its file. */
extern struct general_options {
    /* Several: a lock over independent databases. Of more than URLS_MOST only the number counts. */
    const char *urls[URLS_MOST];
    int url_count;
    bool help, version, json, quiet, verbose;
    /* Print SQL instead of executing it. */
    bool sql;
    int64_t interval_ms;
    /* --count of watch. UNSET: without an end. */
    int64_t looks_most;
    /* No options. Lines of complain() and say_member() begin with "member N: ". 0: none do. */
    int speaks_for;
    /* A line on standard error that cannot be written at once is dropped. */
    bool hurries;
} general;

struct cli;

/* What a command does with several URLs. ONE_DATABASE: it refuses them. */
enum across { QUORUM, EACH_MEMBER, ONE_DATABASE };

struct command {
    const char *name;
    /* For the help: the usage line has the arguments, and the list of commands the purpose. */
    const char *arguments, *purpose, *details;
    /* All commands also have --url and --help. */
    const struct option_row *options;
    int least_arguments;
    /* NO_LIMIT: names, and then another program's command line. */
    int most_arguments;
    /* It creates the embedded database if there is none yet. */
    bool creates;
    enum across across;
    /* Returns the exit status, after a message about what went wrong. */
    int (*run)(struct cli *cli);
};

#define COMMAND(...) \
    {                \
        __VA_ARGS__  \
    }
#define NO_LIMIT (-1)
#define ANY_NUMBER 100000

/* Each is in cmd_*.c or members.c. */
extern const struct command run_command, lead_command, leader_command, acquire_command,
    renew_command, release_command, verify_command, wait_command, list_command, show_command,
    watch_command, metrics_command, sweep_command, once_command, break_command, raise_command,
    install_command, upgrade_command, check_command, join_command;

/* Carries out the command for each of several databases. */
int run_for_members(struct cli *cli);

struct cli {
    /* NULL before it is known. */
    const struct command *command;
    /* The words that are neither options nor the command's name. */
    char **arguments;
    int argument_count;
    /* The first arguments that are names of locks. A command line to run follows them. */
    int name_count;

    /* A copy of ROWLOCK_URL, cut into URLs. NULL: they come from --url, or there are none. */
    char *url_words;
    /* 1, 2, …: the one of several databases that a command is at. 0: it is not that kind. */
    int member;
    /* The URL of db, or those of its members. */
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
    /* When `run` began, by the clock of now_ms(). */
    int64_t begin_ms;
    /* By the same clock. 0: the command does not wait. INT64_MAX: it waits without a limit. */
    int64_t wait_until_ms;
    /* SIGUSR1 ends the job and gives the lock to the next in the queue. */
    bool resigns;
    /* For the lock: the user wants to read warnings now. Threads of the library look. */
    atomic_bool waiting;
    /* The leases are renewed in the background. */
    bool keeps;
    /* How long before the end of its lease a lock counts as lost. 0: the library's default. */
    int64_t margin_ms;
    /* End without closing the handles: the grant must outlive this process. */
    bool leave_grant;
    /* End without using the handles: the database does not answer. */
    bool abandon;
};

/* The options that may stand before the command. Returns the number of words they took. */
int options_before_command(struct cli *cli, char **argv);

/* The options of the command, and cli->arguments. argv[0] is the command's name. */
void options_of_command(struct cli *cli, int argc, char **argv);

/* One line for each option, for --help. NULL: those before the command. */
void options_print(const struct command *command);

/* Says what is wrong with the command line, and where to read more. Ends the process. The second
 * one does so if the command is at one of several databases and that is bad. */
void usage_error(const struct cli *cli, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));
void not_for_members(const struct cli *cli, bool bad, const char *reason);

/* A decimal number between least and most, and nothing else. */
bool parse_number(const char *text, int64_t least, int64_t most, int64_t *out);

/* ---------------------------------------------------------------- the database (database.c) */

/* find_urls() takes the URLs of ROWLOCK_URL, if there is no --url. White space separates several.
 * check_urls() refuses 2, and an empty one. */
void find_urls(struct cli *cli);
void check_urls(const struct cli *cli);

/* From now on, the library's warnings are kept, and printed while cli->waiting is set. */
void listen_to_library(struct cli *cli);

/* Is it a lock over several databases? All URLs in one text are for the library. Free it. */
bool is_quorum(const struct cli *cli);
char *joined_urls(void);

/* Opens cli->db by --url, ROWLOCK_URL or the embedded default. options may be NULL. It waits for a
 * server that is away until cli->wait_until_ms. Returns an exit status, after a message. */
int connect_database(struct cli *cli, const rowlock_db_options *options);

/* Makes the attempt until its result is not that the server is away, or until cli->wait_until_ms.
 * It says once that the server is away, and when it is back. Returns the last result. */
typedef int attempt(struct cli *cli, void *context, rowlock_error *error);
int try_until_there(struct cli *cli, attempt *make, void *context, rowlock_error *error);

/* Closes what is open, unless cli->leave_grant or cli->abandon is set. */
void disconnect_database(struct cli *cli);

/* The library's last warning. False: there is none. keep_warning("") forgets it. */
#define WARNING_SIZE 800
bool last_warning(char text[WARNING_SIZE]);
void keep_warning(const char *line);

/* ---------------------------------------------------------- signals and time (run/signals.c) */

/* Call it first: the functions below give back what this process found. */
void signals_note_originals(void);

/* Ignores SIGPIPE, as MariaDB's client library would: a lock is released also if nothing reads our
 * output. The job gets SIGPIPE as this process found it. */
void signals_ignore_pipe(void);

/* Nothing reads our output. Does such a process die of SIGPIPE here? Then die_of_signal() will. */
bool die_of_pipe_later(void);

/* From now on, signals that would end us end waits on db with ROWLOCK_CANCELLED. Signals that our
 * parent made us ignore (nohup, a background job of a script) stay ignored. */
void signals_cancel(rowlock_db *db);

/* As at the start. resign: but SIGUSR1 does nothing until signals_keep(), and ends no wait. */
void signals_start(bool resign);

/* From now on, signals are kept. Returns the one that came since signals_cancel(), or 0. */
int signals_keep(void);

/* The next kept signal, also SIGCHLD, or only one that is to end us. 0: none came in time. */
int signals_next(int64_t wait_ms);
int signals_pause(int64_t until_ms);

/* A new file descriptor, readable while a signal is kept. Do not read it. -1: there is none
 * here. */
int signals_fd(void);

/* This process will die of the signal when all is done, so that the calling shell sees what
 * happened. Returns the status that shells show for it. With that, die_of_signal() does it. */
int die_later(int signal);
void die_of_signal(int status);

/* In a child: all signals are again as this process found them. */
void signals_restore(void);

/* Is it a signal that asks a process to end? */
bool signal_ends(int signal);

/* On a clock that runs while the machine sleeps, as leases do. By this host's clock, since 1970. */
int64_t now_ms(void);
int64_t wall_clock_us(void);

/* Waits until then. fd: -1, or a file that ends the wait when it is readable. False: it did. */
bool pause_until(int64_t then_ms, int fd);

#endif
