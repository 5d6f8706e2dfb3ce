/* SPDX-License-Identifier: MIT
 *
 * The command: the table of its subcommands, the help, and what happens before and after each of
 * them. cmd_*.c has the subcommands.
 */
#include "cli/commands/commands.h"

#include "cli/commands/manual.h"
#include "cli/run/signals.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run_help(struct cli *cli);

#if RLK_WITH_CURSES
#define SCREEN_HELP                                                                     \
    "On a terminal it is a screen: q or Ctrl-C ends it, arrows and page keys scroll.\n" \
    "Elsewhere it prints everything as text, once in each interval.\n"
#else
#define SCREEN_HELP                                                    \
    "It prints everything as text, once in each interval. The screen " \
    "for terminals is\nnot built in.\n"
#endif

static const int no_options[] = {OPT_END};

static const struct command commands[] = {
    {"run", "NAME... [--] COMMAND [ARGUMENT]...", "hold a lock while a command runs",
     "rowlock holds the lock NAME and renews its lease while COMMAND runs. If the lease is lost\n"
     "or cannot be renewed, COMMAND and its process group are ended before the lease runs out.\n"
     "\n"
     "  rowlock run -n nightly -- ./report.sh            other hosts exit with 75 meanwhile\n"
     "  rowlock run -w 5m deploy -- ./deploy.sh          wait in the queue, at most 5 minutes\n"
     "  rowlock run -n report --every 1d -- ./report.sh  once a day, over all hosts\n"
     "\n"
     "- Several locks: all words before the first -- are names. All are acquired, or none.\n"
     "  Without a -- the first word is the name.\n"
     "- Waiting: locks are granted in the order of the queue. Without -n, rowlock also waits\n"
     "  for a server that is away or takes no writes.\n"
     "- COMMAND gets ROWLOCK_NAME, ROWLOCK_TOKEN, ROWLOCK_OWNER and ROWLOCK_EXPIRES_AT in its\n"
     "  environment.\n"
     "- Exit status: that of COMMAND; 75 not acquired; 76 the lock was lost.\n"
     "- A signal that ends COMMAND or the wait ends rowlock too.\n"
     "- --once KEY: if COMMAND has ended with 0 under this key before, nothing is run, and the\n"
     "  exit status is 0. If another command has, it is 64.\n"
     "- --every DURATION: each period has one success, over all hosts. Call it often, from cron\n"
     "  for example. If the period is done, nothing is run, and the exit status is 0.\n"
     "  The database's clock counts. Periods of whole days, and those that divide a day, begin\n"
     "  at --at of the --timezone. $ROWLOCK_PERIOD is the start of the period.\n"
     "- --stall: each byte written to the file descriptor $ROWLOCK_PROGRESS_FD is progress.\n"
     "- --metrics: DIR/rowlock_NAME.prom tells of the last start, the last success, the exit\n"
     "  status, the duration, the wait and of losses, on this host.\n",
     run_options, 2, NO_LIMIT, true, QUORUM, cmd_run},
    {"lead", "NAME [--] COMMAND [ARGUMENT]...", "hold a lock again and again while a command runs",
     "Like run, but when COMMAND ends, or the lease was lost, rowlock waits for the lock again. "
     "So\n"
     "one of several hosts is the leader. Each term has a token: $ROWLOCK_TOKEN.\n"
     "\n"
     "- There is a pause before the next term: 1s, then 2s and so on up to 1m. After a term of a\n"
     "  minute it begins with 1s again.\n"
     "- --note carries an address: rowlock leader prints it.\n"
     "- SIGUSR1 resigns: COMMAND is ended, and rowlock goes to the end of the queue.\n"
     "- SIGTERM, SIGINT and SIGQUIT end COMMAND and rowlock, as they end run.\n"
     "- Exit status: that of COMMAND, after a signal; 75 not acquired within --wait; 126 or 127\n"
     "  if COMMAND cannot be executed.\n",
     lead_options, 2, NO_LIMIT, true, QUORUM, cmd_lead},
    {"leader", "NAME", "print who holds a lock, with its note",
     "It prints token, holder and note. The token is the number of the term.\n"
     "With --watch it prints a line at each change, \"-\" for no leader, and goes on through an\n"
     "outage of the database.\n"
     "Exit status: 0 there is a leader; 75 there is none.\n",
     leader_options, 1, 1, false, QUORUM, cmd_leader},
    {"acquire", "NAME", "get a lock and print its token",
     "The grant stays when this command ends, until it is released or its lease runs out.\n"
     "To renew or release it you need its owner. So give --owner, set ROWLOCK_OWNER, or use\n"
     "the random owner that --json prints.\n",
     acquire_options, 1, 1, true, QUORUM, cmd_acquire},
    {"renew", "NAME", "extend the lease of a grant",
     "Exit status: 0 renewed; 76 the grant is gone.\n", renew_options, 1, 1, false, QUORUM,
     cmd_renew},
    {"release", "NAME", "release a lock",
     "Exit status: 0 released; 76 the grant was gone already.\n", grant_options, 1, 1, false,
     QUORUM, cmd_release},
    {"verify", "NAME", "ask whether a grant is still valid",
     "Exit status: 0 valid; 76 the grant is gone, or its lease has run out.\n", grant_options, 1, 1,
     false, QUORUM, cmd_verify},
    {"wait", "NAME", "wait until a lock is free",
     "It acquires nothing: another client may get the lock a moment later.\n"
     "Exit status: 0 the lock is free; 75 the time is over.\n",
     wait_options, 1, 1, false, QUORUM, cmd_wait},
    {"list", "", "show all grants, or all waiters", "Expired grants are shown until a sweep.\n",
     list_options, 0, 0, false, QUORUM, cmd_list},
    {"show", "NAME", "show everything about one lock",
     "Exit status: 0 the lock has a grant, waiters or a last token; 1 the name is not known.\n",
     json_options, 1, 1, false, QUORUM, cmd_show},
    {"watch", "[NAME]", "show holders and waiters live",
     SCREEN_HELP "With --json it prints one object on one line for each look.\n", watch_options, 0,
     1, false, QUORUM, cmd_watch},
    {"metrics", "", "print figures for Prometheus",
     "One line for each number: locks, waiters, once keys, the last sweep, the worst finding of\n"
     "check. rowlock_up is 0 if the tables could not be read. With several URLs the label member\n"
     "says which one it is.\n"
     "- --match: also held, remaining, waiters, grants and so on, with the label name.\n"
     "- --textfile: the exit status is 0 if FILE is written, also while the database is away.\n"
     "  Without it the exit status is 0 only if the tables could be read.\n",
     metrics_options, 0, 0, false, QUORUM, cmd_metrics},
    {"sweep", "", "remove expired grants and old keys",
     "Locks work without it. It keeps the tables small: run it from cron, or with --every.\n"
     "It also forgets idle token counters and old keys of run --once.\n",
     sweep_options, 0, 0, false, EACH_MEMBER, cmd_sweep},
    {"once", "list [NAME]... | show [NAME]... KEY | forget [NAME]... KEY",
     "list or forget the keys of run --once and --every",
     "With NAME: the keys of that lock. With several: the keys of runs with all of them, in\n"
     "this order. Without NAME: list shows all keys; show and forget take a key that a program\n"
     "has claimed through the library.\n"
     "forget makes a key free: the next run with it runs its command.\n"
     "Exit status of show and forget: 0 found; 1 there is no such key.\n",
     once_options, 1, ANY_NUMBER, false, ONE_DATABASE, cmd_once},
    {"break", "NAME", "take a lock away from its holder",
     "The holder's token is out of date from now on. The holder learns it at its next renewal.\n"
     "Exit status: 0 taken away; 1 the lock has no holder, or the holder has another token.\n",
     break_options, 1, 1, false, EACH_MEMBER, cmd_break},
    {"raise-tokens", "", "raise all tokens after a failover or a restore",
     "Run it after a failover to a replica that may lack the newest grants, or after restoring a\n"
     "backup, before locks are used again. N must be larger than the number of grants that may\n"
     "be missing. It prints the new highest token. Later tokens are above it. Grants go on, but\n"
     "their holders are fenced out.\n",
     raise_options, 0, 0, true, ONE_DATABASE, cmd_raise_tokens},
    {"install", "", "create the tables",
     "If the tables are there, it changes nothing. Without the privilege, let a DBA run what\n"
     "--print prints: psql -v ON_ERROR_STOP=1 -f FILE, or mysql DATABASE < FILE.\n",
     install_options, 0, 0, true, EACH_MEMBER, cmd_install},
    {"upgrade", "", "bring the tables to the version of this command",
     "Programs of this version and of the one before can use the tables meanwhile. It makes\n"
     "routines again that are missing or have another body.\n"
     "Exit status: 0 done; 75 other transactions kept the tables locked for a minute: run it\n"
     "again.\n",
     upgrade_options, 0, 0, false, EACH_MEMBER, cmd_upgrade},
    {"check", "", "examine whether the database is fit for locks",
     "Exit status: 0 fine, perhaps with warnings; 1 something is bad.\n", json_options, 0, 0, false,
     EACH_MEMBER, cmd_check},
    {"quorum-join", "", "make databases a quorum, or let a member vote again",
     "Run it with the URLs of all members, after install. Run it again after a member was\n"
     "restarted, restored or failed over: until then that member does not vote. It waits until\n"
     "the leases are over that the member may have forgotten, and raises its tokens above all\n"
     "others. Locks go on with the other members meanwhile.\n"
     "Another database in the place of a member is refused. --replace N takes it.\n"
     "Exit status: 0 all members vote; 69 a member is away: run it again when it is back.\n",
     quorum_join_options, 0, 0, false, QUORUM, cmd_quorum_join},
    {"help", "[COMMAND]", "open the manual",
     "Without a terminal or the manual's page, it prints the same as --help.\n", no_options, 0, 1,
     false, QUORUM, run_help},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const char *const exit_help =
    "Exit status:\n"
    "   0  done                              75  not acquired (-E changes it)\n"
    "   1  show, break, once: not found;     76  lost: the grant is gone\n"
    "      check: something is bad           77  the database denies access\n"
    "  64  wrong usage, name or URL          78  no tables, disk full, or not supported\n"
    "  69  unreachable, or without writes   126  run: COMMAND cannot be executed\n"
    "  70  internal or database error       127  run: COMMAND was not found\n"
    "  74  the output is not writable\n"
    "  run exits with the status of COMMAND. If a signal ended COMMAND, run dies of the same\n"
    "  signal; a shell shows that as 128 plus the signal's number.\n";

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
    puts("Usage: rowlock [--url URL]... COMMAND ...\n"
         "Lease locks in a table of the database that you have.\n\n"
         "Commands:");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-12s %s\n", commands[i].name, commands[i].purpose);
    puts("\nOptions:");
    options_print(global);
    puts(
        "\nExamples:\n"
        "  rowlock install                         create the tables, once for all hosts\n"
        "  rowlock run -n nightly -- ./report.sh   run it on one host; the others exit with 75\n"
        "  rowlock list                            who holds what\n"
        "\nURLs: postgresql://USER@HOST/DATABASE  mysql://USER@HOST/DATABASE  sqlite:/PATH\n"
        "Durations: 500ms, 1.5 (seconds), 30s, 5m, 2h, 1d\n"
        "Without a URL: ROWLOCK_URL, or else a SQLite file below ~/.local/state/rowlock\n"
        "With 3 or 5 URLs (--url each, or in ROWLOCK_URL with white space between them): one lock\n"
        "over independent databases. It is held while a majority of them has it.\n");
    fputs(exit_help, stdout);
    puts("\n'rowlock COMMAND --help' explains a command, 'rowlock help COMMAND' opens its manual.");
}

static void print_help(const struct command *command)
{
    static const int common[] = {OPT_URL, OPT_HELP, OPT_END};
    bool has_options = command->options[0] != OPT_END;
    printf("Usage: rowlock %s%s%s%s\n%c", command->name, has_options ? " [OPTION]..." : "",
           *command->arguments ? " " : "", command->arguments, command->purpose[0] - 'a' + 'A');
    printf("%s.\n\n%s%sOptions:\n", command->purpose + 1, command->details,
           command->details[0] ? "\n" : "");
    options_print(command->options);
    options_print(common);
}

static int run_help(struct cli *cli)
{
    const char *name = cli->argument_count > 0 ? cli->arguments[0] : NULL;
    const struct command *command = name ? find_command(name) : NULL;
    if (name && !command)
        return usage_error(cli, "unknown command '%s'", name);
    open_manual(name);
    if (command)
        print_help(command);
    else
        print_global_help();
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
    find_urls(cli);
    if (is_quorum(cli) && command->across != QUORUM)
        return run_for_members(cli);
    return command->run(cli);
}

static int print_driver(void *context, const char *driver, const char *client)
{
    (void)context;
    printf("%-9s %s\n", driver, client);
    return 0;
}

/* The first line is for scripts. */
static int print_version(void)
{
    printf("rowlock %s\n", rowlock_version());
    return status_of(rowlock_list_drivers(print_driver, NULL));
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
    if (cli->set.version)
        return print_version();
    if (used >= argc)
        return usage_error(cli, "which command? rowlock needs one, such as run or list");
    return run_command(cli, argc - used, argv + used);
}

/* If a standard stream is closed, the next file to be opened gets its number: the database's file
 * or socket would get our messages. A read-only file in its place makes writing fail instead. */
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
    /* Static: the handles in it may have to outlive main(). See leave_grant. */
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
                                     .retry_after_ms = UNSET,
                                     .conflict_status = UNSET,
                                     .token = UNSET,
                                     .if_token = UNSET,
                                     .replace = UNSET,
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
    free(cli.url_words);
    die_of_signal(status);
    /* A thread may still be inside the database's client library. */
    if (cli.abandon)
        _exit(status);
    return status;
}
