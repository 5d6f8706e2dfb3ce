/* SPDX-License-Identifier: MIT
 *
 * Reads the command line. The commands list their options; parsing and help come from these lists.
 * The commands decide what the values mean.
 */
#include "cli/print/print.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct general_options general = {.interval_ms = UNSET};

static const struct option_row common[] = {
    OPTION("url", 0, "URL", "the database (default: $ROWLOCK_URL, or a SQLite file)", URLS,
           general.urls),
    FLAG_OPTION("help", 'h', "print this help", general.help),
    OPTIONS_END,
};

static const struct option_row before_command[] = {
    FLAG_OPTION("version", 'V', "print the version, and those of the client libraries",
                general.version),
    OPTIONS_END,
};

/* A URL in the wrong place may contain a password. */
static const char *hide_url(char *text)
{
    char *url = strstr(text, "://");
    char *end = url ? strrchr(url, '\'') : NULL;
    if (!url)
        return "";
    if (end)
        memmove(url + 6, end, strlen(end) + 1);
    memcpy(url + 3, end ? "..." : "...'", end ? 3 : 5);
    return "; a URL stands after --url, or in ROWLOCK_URL";
}

int usage_error(const struct cli *cli, const char *format, ...)
{
    const char *command = cli->command ? cli->command->name : NULL;
    /* With room for what hide_url() writes. */
    char text[600 + 8];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text - 8, format, arguments);
    va_end(arguments);
    const char *advice = hide_url(text);
    if (command)
        complain("%s: %s%s", command, text, advice);
    else
        complain("%s%s", text, advice);
    fprintf(stderr, "Try 'rowlock %s%s--help'.\n", command ? command : "", command ? " " : "");
    return EXIT_USAGE;
}

/* ---------------------------------------------------------------- values */

bool parse_number(const char *text, int64_t least, int64_t most, int64_t *out)
{
    int64_t value = 0;
    if (!*text)
        return false;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c - '0', &value))
            return false;
    }
    if (value < least || value > most)
        return false;
    *out = value;
    return true;
}

static int64_t unit_ms(const char *suffix)
{
    static const struct {
        const char *suffix;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(suffix, units[i].suffix) == 0)
            return units[i].ms;
    }
    return 0;
}

/* "500ms", "1.5", "30s", "5m", "2h", "1d" in milliseconds, rounded up. False: not a duration.
 * Integers only. A binary fraction could turn 0.3s into 299 ms, and the decimal point of strtod()
 * depends on the locale. */
static bool parse_duration(const char *text, int64_t *out)
{
    int64_t whole = 0, part = 0, scale = 1;
    const char *c = text;
    const char *digits = c;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *c - '0', &whole))
            return false;
    }
    ptrdiff_t count = c - digits;
    if (*c == '.') {
        digits = ++c;
        for (; *c >= '0' && *c <= '9'; c++) {
            if (scale >= 1000000000)
                return false;
            part = part * 10 + (*c - '0');
            scale *= 10;
        }
        count += c - digits;
    }
    int64_t unit = unit_ms(c);
    int64_t rest = (part * unit + scale - 1) / scale;
    if (count == 0 || unit == 0 || __builtin_mul_overflow(whole, unit, &whole))
        return false;
    return !__builtin_add_overflow(whole, rest, out);
}

static int store_duration(struct cli *cli, const struct option_row *row, const char *text)
{
    int64_t *value = row->value;
    if (row->kind == LENGTH_OR_NEVER && strcmp(text, "never") == 0) {
        *value = NEVER;
        return EXIT_FINE;
    }
    if (!parse_duration(text, value))
        return usage_error(cli,
                           "--%s: '%s' is not a duration such as 500ms, 1.5, 30s, 5m, 2h or 1d",
                           row->name, text);
    if (row->kind != DURATION && *value == 0)
        return usage_error(cli, "--%s: the duration must be more than 0", row->name);
    if (*value < row->least)
        return usage_error(cli, "--%s: the duration must be at least %lldms", row->name,
                           (long long)row->least);
    return EXIT_FINE;
}

static int store_number(struct cli *cli, const struct option_row *row, const char *text)
{
    if (parse_number(text, row->least, row->most, row->value))
        return EXIT_FINE;
    if (row->most == INT64_MAX)
        return usage_error(cli, "--%s: '%s' is not a token; give a number above 0", row->name,
                           text);
    return usage_error(cli, "--%s: '%s' is not a number from %lld to %lld", row->name, text,
                       (long long)row->least, (long long)row->most);
}

static int store(struct cli *cli, const struct option_row *row, const char *text)
{
    switch (row->kind) {
    case FLAG:
        *(bool *)row->value = true;
        return EXIT_FINE;
    case TEXT:
        *(const char **)row->value = text;
        return EXIT_FINE;
    case URLS:
        if (general.url_count < URLS_MOST)
            general.urls[general.url_count] = text;
        general.url_count++;
        return EXIT_FINE;
    case NUMBER:
        return store_number(cli, row, text);
    case DURATION:
    case LENGTH:
    case LENGTH_OR_NEVER:
        break;
    }
    return store_duration(cli, row, text);
}

/* ---------------------------------------------------------------- parsing */

enum { ROWS_MOST = 40, FIRST_CODE = 256 };

/* What getopt_long() needs, made from our rows. It returns a letter, or FIRST_CODE and the place of
 * the row. */
struct grammar {
    const struct option_row *rows[ROWS_MOST];
    struct option longs[ROWS_MOST + 1];
    char shorts[2 * ROWS_MOST + 4];
    int count;
};

static bool has_option(const struct command *command, const struct option_row *row)
{
    return !row->users || strstr(row->users, command->name);
}

static void grammar_add(struct grammar *grammar, const struct cli *cli,
                        const struct option_row *row)
{
    for (; row->name; row++) {
        if (!has_option(cli->command, row))
            continue;
        int argument = row->argument ? required_argument : no_argument;
        grammar->rows[grammar->count] = row;
        grammar->longs[grammar->count] =
            (struct option){row->name, argument, NULL, FIRST_CODE + grammar->count};
        grammar->count++;
        char letter[] = {(char)row->letter, row->argument ? ':' : '\0', '\0'};
        strcat(grammar->shorts, letter);
    }
}

/* order: '+' stops at the first word that is not an option. '-' returns such words one by one. The
 * colon makes getopt_long() distinguish a missing argument from an unknown option. */
static void grammar_start(struct grammar *grammar, const struct cli *cli, char order,
                          const struct option_row *rows)
{
    *grammar = (struct grammar){.shorts = {order, ':'}};
    grammar_add(grammar, cli, rows);
    grammar_add(grammar, cli, common);
    opterr = 0;
    /* Not 1: only 0 makes getopt_long() forget an earlier command line. */
    optind = 0;
}

static const struct option_row *row_found(const struct grammar *grammar, int code)
{
    for (int i = 0; i < grammar->count; i++)
        if (FIRST_CODE + i == code || grammar->rows[i]->letter == code)
            return grammar->rows[i];
    return NULL;
}

static bool runs_another(const struct cli *cli)
{
    return cli->command && cli->command->most_arguments == NO_LIMIT;
}

/* getopt_long() has refused word: say why. After two words it may be an option of the command that
 * is to run. */
static int refuse(const struct cli *cli, const struct grammar *grammar, int code, const char *word)
{
    const struct option_row *row = optopt ? row_found(grammar, optopt) : NULL;
    const char *hint = runs_another(cli) && cli->argument_count > 1
                           ? "; if it belongs to COMMAND, the first -- has to stand before that"
                           : "";
    if (code == ':' && row)
        return usage_error(cli, "--%s needs an argument: %s", row->name, row->argument);
    if (optopt >= FIRST_CODE && row)
        return usage_error(cli, "--%s takes no argument", row->name);
    if (optopt)
        return usage_error(cli, "unknown option '-%c'%s", optopt, hint);
    return usage_error(cli, "no such option here, or an abbreviation of several: '%s'%s", word,
                       hint);
}

/* Dry: the value is not stored. */
static int take_option(struct cli *cli, const struct grammar *grammar, int code, char **argv,
                       bool dry)
{
    if (code == '?' || code == ':')
        return refuse(cli, grammar, code, argv[optind - 1]);
    return dry ? EXIT_FINE : store(cli, row_found(grammar, code), optarg);
}

int options_before_command(struct cli *cli, int argc, char **argv, int *used)
{
    struct grammar grammar;
    int code;
    grammar_start(&grammar, cli, '+', before_command);
    while ((code = getopt_long(argc, argv, grammar.shorts, grammar.longs, NULL)) != -1) {
        int status = take_option(cli, &grammar, code, argv, false);
        if (status != EXIT_FINE)
            return status;
    }
    *used = optind;
    return EXIT_FINE;
}

static int count_arguments(const struct cli *cli)
{
    const struct command *command = cli->command;
    if (general.help)
        return EXIT_FINE;
    bool nothing_to_run = runs_another(cli) && cli->argument_count <= cli->name_count;
    if (cli->argument_count < command->least_arguments || nothing_to_run)
        return usage_error(cli, "too few arguments; it takes %s", command->arguments);
    if (command->most_arguments != NO_LIMIT && cli->argument_count > command->most_arguments)
        return usage_error(cli, "unexpected argument '%s'",
                           cli->arguments[command->most_arguments]);
    return EXIT_FINE;
}

/* Takes options and at most `most` words, or all words up to a "--". *dashes gets whether there was
 * one. The rest of the line begins at optind. */
static int take_words(struct cli *cli, int argc, char **argv, int most, bool dry, bool *dashes)
{
    struct grammar grammar;
    /* The last argument of an option: it may look like "--". */
    const char *taken = NULL;
    int code, status = EXIT_FINE;
    grammar_start(&grammar, cli, '-', cli->command->options);
    cli->argument_count = 0;
    *dashes = false;
    while ((code = getopt_long(argc, argv, grammar.shorts, grammar.longs, NULL)) != -1) {
        taken = optarg;
        if (code == 1 && cli->argument_count == most) {
            optind--;
            return EXIT_FINE;
        }
        if (code == 1)
            cli->arguments[cli->argument_count++] = optarg;
        else
            status = take_option(cli, &grammar, code, argv, dry);
        if (status != EXIT_FINE)
            return status;
    }
    *dashes = optind > 1 && argv[optind - 1] != taken && strcmp(argv[optind - 1], "--") == 0;
    return EXIT_FINE;
}

static bool has_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return true;
    }
    return false;
}

/* "-- NAME -- COMMAND": the first -- is there because NAME may begin with a dash. */
static void skip_second_dashes(struct cli *cli, int argc, char **argv)
{
    if (optind + 1 >= argc || strcmp(argv[optind + 1], "--") != 0)
        return;
    cli->arguments[cli->argument_count++] = argv[optind];
    optind += 2;
}

/* A command that runs another leaves that one's options alone. All words before the first "--" are
 * names. Without a "--" the first word is the name. */
static int take_names(struct cli *cli, int argc, char **argv)
{
    bool dashes = false;
    int status =
        has_dashes(argc, argv) ? take_words(cli, argc, argv, NO_LIMIT, true, &dashes) : EXIT_FINE;
    if (status == EXIT_FINE)
        status = take_words(cli, argc, argv, dashes ? NO_LIMIT : 1, false, &dashes);
    if (dashes && cli->argument_count > 1)
        cli->name_count = cli->argument_count;
    if (status == EXIT_FINE && dashes && cli->argument_count == 0)
        skip_second_dashes(cli, argc, argv);
    return status;
}

int options_of_command(struct cli *cli, int argc, char **argv)
{
    bool dashes;
    cli->arguments = must_have(calloc((size_t)argc + 1, sizeof *cli->arguments));
    cli->name_count = 1;
    int status = runs_another(cli) ? take_names(cli, argc, argv)
                                   : take_words(cli, argc, argv, NO_LIMIT, false, &dashes);
    if (status != EXIT_FINE)
        return status;
    while (optind < argc)
        cli->arguments[cli->argument_count++] = argv[optind++];
    return count_arguments(cli);
}

static void print_rows(const struct command *command, const struct option_row *row)
{
    for (; row->name; row++) {
        char letter[] = {'-', (char)row->letter, ',', '\0'};
        if (!has_option(command, row))
            continue;
        char *names = new_text("--%s%s%s", row->name, row->argument ? " " : "",
                               row->argument ? row->argument : "");
        printf("  %3s %-26s %s\n", row->letter ? letter : "", names, row->help);
        free(names);
    }
}

void options_print(const struct command *command)
{
    if (command)
        print_rows(command, command->options);
    print_rows(command, common);
    if (!command)
        print_rows(command, before_command);
}
