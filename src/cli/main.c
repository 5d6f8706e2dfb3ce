/* SPDX-License-Identifier: MIT
 *
 * The command: the table of its subcommands, the help, and what is done before and after them.
 */
#include "cli/print/print.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command help_command;
static const struct command *const commands[] = {
    &run_command,     &lead_command,    &leader_command,  &acquire_command, &renew_command,
    &release_command, &verify_command,  &wait_command,    &list_command,    &show_command,
    &watch_command,   &metrics_command, &sweep_command,   &once_command,    &break_command,
    &raise_command,   &install_command, &upgrade_command, &check_command,   &join_command,
    &help_command};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* ---------------------------------------------------------------- help */

static const char *const exit_help =
    "Exit status:\n"
    "   0  done                              75  not acquired (-E changes it)\n"
    "   1  not found; once last: not done;   76  lost: the grant is gone\n"
    "      check: something is bad           77  the database denies access\n"
    "  64  wrong usage, name or URL          78  no tables, disk full, or not supported\n"
    "  69  unreachable, or without writes   126  run: COMMAND cannot be executed\n"
    "  70  internal or database error       127  run: COMMAND was not found\n"
    "  74  the output is not writable\n"
    "  run exits with the status of COMMAND. If a signal ended COMMAND, run dies of the same\n"
    "  signal; a shell shows that as 128 plus the signal's number.\n";

static int print_global_help(void)
{
    puts("Usage: rowlock [--url URL]... COMMAND ...\n"
         "Lease locks in a table of the database that you have.\n\n"
         "Commands:");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-12s %s\n", commands[i]->name, commands[i]->purpose);
    puts("\nOptions:");
    options_print(NULL);
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
    return EXIT_FINE;
}

static int print_help(const struct command *command)
{
    printf("Usage: rowlock %s%s%s%s\n%c", command->name,
           command->options->name ? " [OPTION]..." : "", *command->arguments ? " " : "",
           command->arguments, command->purpose[0] - 'a' + 'A');
    printf("%s.\n\n%s%sOptions:\n", command->purpose + 1, command->details,
           command->details[0] ? "\n" : "");
    options_print(command);
    return EXIT_FINE;
}

/* man must print the page's path: without manuals it may be a program that only says so. */
static bool has_page(const char *page)
{
    char *line = new_text("man -w 1 %s 2>/dev/null", page);
    /* The words of the line are ours. NOLINTNEXTLINE(cert-env33-c) */
    FILE *answer = popen(line, "r");
    bool found = answer && fgetc(answer) == '/';
    if (answer)
        pclose(answer);
    free(line);
    return found;
}

/* On a terminal it becomes man(1), if there is the page. */
static int run_help(struct cli *cli)
{
    const char *name = cli->argument_count > 0 ? cli->arguments[0] : NULL;
    const struct command *command = name ? find_command(name) : NULL;
    if (name && !command)
        usage_error(cli, "unknown command '%s'", name);
    char *page = new_text("rowlock%s%s", name ? "-" : "", name ? name : "");
    if (isatty(STDOUT_FILENO) && has_page(page))
        execlp("man", "man", "1", page, (char *)NULL);
    free(page);
    return command ? print_help(command) : print_global_help();
}

static const struct option_row no_options[] = {{.name = NULL}};

static const struct command help_command =
    COMMAND("help", "[COMMAND]", "open the manual",
            "Without a terminal or the manual's page, it prints the same as --help.\n", no_options,
            0, 1, false, QUORUM, run_help);

/* ---------------------------------------------------------------- running */

static int run_named(struct cli *cli, int argc, char **argv)
{
    const struct command *command = find_command(argv[0]);
    if (!command)
        usage_error(cli, "unknown command '%s'", argv[0]);
    cli->command = command;
    options_of_command(cli, argc, argv);
    if (general.help)
        return print_help(command);
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

static int run_cli(struct cli *cli, int argc, char **argv)
{
    int used = options_before_command(cli, argv);
    if (general.help)
        return print_global_help();
    if (general.version) {
        /* The first line is for scripts. */
        printf("rowlock %s\n", rowlock_version());
        return status_of(rowlock_list_drivers(print_driver, NULL));
    }
    if (used >= argc)
        usage_error(cli, "which command? rowlock needs one, such as run or list");
    return run_named(cli, argc - used, argv + used);
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
    static struct cli cli;
    occupy_standard_streams();
    signals_note_originals();
    int status = run_cli(&cli, argc, argv);
    disconnect_database(&cli);
    status = finish_output(status);
    free(cli.arguments);
    free(cli.url_words);
    die_of_signal(status);
    /* A thread may still be inside the database's client library, whose memory exit() frees. */
    if (cli.abandon || is_quorum(&cli))
        _exit(status);
    return status;
}
