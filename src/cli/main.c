/* SPDX-License-Identifier: MIT
 *
 * The command: the table of its commands, the help, and what happens before and after each of them.
 * What they do is in cmd_*.c.
 */
#include "commands.h"

#include "signals.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run_help(struct cli *cli);

#if RLK_WITH_CURSES
#define SCREEN_HELP                                                                              \
    "On a terminal it is a screen: q or Ctrl-C ends it, arrows and page keys scroll. Elsewhere " \
    "it\n"
#else
#define SCREEN_HELP "The screen for terminals is not built in: it\n"
#endif

static const int no_options[] = {OPT_END};

static const struct command commands[] = {
    {"run", "NAME... [--] COMMAND [ARGUMENT]...", "hold a lock while a command runs",
     "NAME is held, and its lease renewed, for as long as COMMAND runs. If the lease is lost or "
     "can\n"
     "no longer be renewed, COMMAND and its children are ended before it runs out.\n"
     "All words before the first -- are names, of locks that are got all together or not at all.\n"
     "Without a -- the first word is the name.\n"
     "Who must wait stands in line: locks are granted in the order of asking for them.\n"
     "Without -n, a server that is away is waited for, too.\n"
     "COMMAND finds ROWLOCK_NAME, ROWLOCK_TOKEN, ROWLOCK_OWNER and ROWLOCK_EXPIRES_AT in its\n"
     "environment. Its exit status is passed on; 75: not acquired; 76: lost while it ran.\n"
     "A signal that ends COMMAND, or the waiting, ends run as well.\n"
     "With --once, COMMAND runs if it has not yet ended with 0 under this KEY; else nothing is "
     "run\n"
     "and the exit status is 0. 64: the key was used for another command.\n"
     "With --stall, each byte written to the file descriptor $ROWLOCK_PROGRESS_FD is progress.\n",
     run_options, 2, NO_LIMIT, cmd_run},
    {"acquire", "NAME", "get a lock and print its token",
     "The grant stays when this command ends: until it is released, or its lease runs out.\n"
     "Whoever renews or releases it must know its owner, so say --owner, set ROWLOCK_OWNER, or\n"
     "take the random one that --json shows.\n",
     acquire_options, 1, 1, cmd_acquire},
    {"renew", "NAME", "make the lease of a grant last longer",
     "Exit status: 0 renewed; 76 the grant is gone.\n", renew_options, 1, 1, cmd_renew},
    {"release", "NAME", "give a lock back",
     "Exit status: 0 released; 76 the grant was gone already.\n", grant_options, 1, 1, cmd_release},
    {"verify", "NAME", "ask whether a grant stands",
     "Exit status: 0 it stands; 76 it is gone, or its lease has run out.\n", grant_options, 1, 1,
     cmd_verify},
    {"wait", "NAME", "wait until nobody holds a lock",
     "It takes nothing: another may have the lock a moment later.\n"
     "Exit status: 0 nobody holds it; 75 the wait is over.\n",
     wait_options, 1, 1, cmd_wait},
    {"list", "", "show all locks that are held, or who waits",
     "Expired ones that nobody took or swept are shown too.\n", list_options, 0, 0, cmd_list},
    {"show", "NAME", "show everything about one lock",
     "Exit status: 0 if it is held, or was, or is waited for; 1 if nothing is on record.\n",
     json_options, 1, 1, cmd_show},
    {"watch", "[NAME]", "show holders and waiters live",
     SCREEN_HELP
     "prints all of it once in an interval; with --json an object on a line of its own.\n",
     watch_options, 0, 1, cmd_watch},
    {"sweep", "", "remove expired locks that nobody came for",
     "Locks do not need it, the size of the tables does: for cron, or with --every.\n"
     "It also forgets the keys of run --once that are old.\n",
     sweep_options, 0, 0, cmd_sweep},
    {"once", "list [NAME]... | forget [NAME]... KEY", "show or forget the keys of run --once",
     "With NAME, those of that lock; with several, those of runs with all of them, in this order.\n"
     "forget makes a key free: the next run with it runs its command, whatever that is.\n"
     "Without NAME it forgets a key that a program has claimed by the library.\n"
     "Exit status of forget: 0 forgotten; 1 there is no such key.\n",
     json_options, 1, ANY_NUMBER, cmd_once},
    {"break", "NAME", "take a lock away from its holder",
     "The holder's token is outdated by it, and it finds out when it next renews.\n"
     "Exit status: 0 taken away; 1 nobody holds it, or another token does.\n",
     break_options, 1, 1, cmd_break},
    {"raise-tokens", "", "make all tokens greater after a failover or a restore",
     "After a failover to a replica that may lack the newest grants, or after restoring a backup,\n"
     "and before locks are used again: N must be more than were granted since. It prints the new\n"
     "highest token, above which all later ones are. Grants that stand are fenced out.\n",
     raise_options, 0, 0, cmd_raise_tokens},
    {"install", "", "create the tables",
     "If the tables are there, nothing is changed. Without the privilege, have a DBA run what\n"
     "--print prints:\n"
     "psql -v ON_ERROR_STOP=1 -f FILE, mysql DATABASE < FILE.\n",
     install_options, 0, 0, cmd_install},
    {"upgrade", "", "bring the tables to the version of this command",
     "Programs of this version and of the one before use the tables meanwhile. Routines that are\n"
     "missing or have another body are made again.\n"
     "Exit status: 0 done; 75 others kept the tables locked for a minute: run it again.\n",
     upgrade_options, 0, 0, cmd_upgrade},
    {"check", "", "say what is wrong with the database for locks",
     "Exit status: 0 fine, warnings included; 1 something is bad.\n", json_options, 0, 0,
     cmd_check},
    {"help", "[COMMAND]", "explain a command", "", no_options, 0, 1, run_help},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const char *const exit_help =
    "Exit status:\n"
    "   0  done                               74  standard output cannot be written\n"
    "   1  show, break, once: no such thing;  75  not acquired (run, acquire: -E changes it)\n"
    "      check: something is bad            76  lost: the grant is gone\n"
    "  64  bad usage, name or URL             77  the database denies it\n"
    "  69  the database is unreachable        78  no tables, read-only, or not supported\n"
    "  70  internal or database error        126, 127  run: cannot execute, not found\n"
    "  run passes on the command's own status. If a signal ended the command, run dies of the\n"
    "  same signal, which a shell shows as 128 plus its number.\n";

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void print_global_help(void)
{
    static const int global[] = {OPT_URL, OPT_HELP, OPT_VERSION, OPT_END};
    puts("Usage: rowlock [--url URL] COMMAND ...\n"
         "Lease locks kept in a table of a database.\n\n"
         "Commands:");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-12s %s\n", commands[i].name, commands[i].purpose);
    puts("\nOptions:");
    options_print(global);
    puts("\nURLs: postgresql://USER@HOST/DATABASE  mysql://USER@HOST/DATABASE  sqlite:/PATH\n"
         "Durations: 500ms, 1.5 (seconds), 30s, 5m, 2h, 1d\n");
    fputs(exit_help, stdout);
    puts("\n'rowlock COMMAND --help' explains a command.");
}

static void print_help(const struct command *command)
{
    static const int everybodys[] = {OPT_URL, OPT_HELP, OPT_END};
    bool has_options = command->options[0] != OPT_END;
    printf("Usage: rowlock %s%s %s\n%c", command->name, has_options ? " [OPTION]..." : "",
           command->arguments, command->purpose[0] - 'a' + 'A');
    printf("%s.\n\n%s%sOptions:\n", command->purpose + 1, command->details,
           command->details[0] ? "\n" : "");
    options_print(command->options);
    options_print(everybodys);
}

static int run_help(struct cli *cli)
{
    if (cli->argument_count == 0) {
        print_global_help();
        return EXIT_FINE;
    }
    const struct command *command = find_command(cli->arguments[0]);
    if (!command)
        return usage_error(cli, "unknown command '%s'", cli->arguments[0]);
    print_help(command);
    return EXIT_FINE;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    const struct command *command = find_command(argv[0]);
    if (!command)
        return usage_error(cli, "unknown command '%s'", argv[0]);
    cli->command = command;
    int status = options_of_command(cli, argc, argv);
    if (status != EXIT_FINE)
        return status;
    if (cli->set.help) {
        print_help(command);
        return EXIT_FINE;
    }
    return command->run(cli);
}

static int run_cli(struct cli *cli, int argc, char **argv)
{
    int used = 0;
    int status = options_before_command(cli, argc, argv, &used);
    if (status != EXIT_FINE)
        return status;
    if (cli->set.help) {
        print_global_help();
        return EXIT_FINE;
    }
    if (cli->set.version) {
        printf("rowlock %s\n", rowlock_version());
        return EXIT_FINE;
    }
    if (used >= argc)
        return usage_error(cli, "which command?");
    return run_command(cli, argc - used, argv + used);
}

/* Where a standard stream is closed, the database's file or socket could become that stream and get
 * to see our messages. A read-only one in its place makes writing fail as it would have. */
static void occupy_standard_streams(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    /* Static, since the handles in it may have to outlive main(): see leave_grant. */
    static struct cli cli = {.set = {.wait_ms = UNSET,
                                     .ttl_ms = UNSET,
                                     .min_hold_ms = UNSET,
                                     .max_hold_ms = UNSET,
                                     .stall_ms = UNSET,
                                     .grace_ms = UNSET,
                                     .older_than_ms = UNSET,
                                     .once_older_than_ms = UNSET,
                                     .idle_ms = UNSET,
                                     .every_ms = UNSET,
                                     .conflict_status = UNSET,
                                     .token = UNSET,
                                     .if_token = UNSET,
                                     .batch = UNSET,
                                     .by = UNSET,
                                     .permits = UNSET,
                                     .interval_ms = UNSET,
                                     .count = UNSET}};
    occupy_standard_streams();
    int status = run_cli(&cli, argc, argv);
    disconnect_database(&cli);
    status = finish_output(status);
    free(cli.arguments);
    die_of_signal(status);
    if (cli.abandon)
        _exit(status); /* a thread may still be inside the database's client library */
    return status;
}
