/* SPDX-License-Identifier: MIT
 *
 * Reads the command line. The commands list their options; parsing and help come from these lists.
 * The commands decide what the values mean.
 */
#include "cli/print/print.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct general_options general = {.interval_ms = UNSET, .looks_most = UNSET};

static const struct option_row common[] = {
    OPTION("url", 0, "URL", "the database (default: $ROWLOCK_URL, or a SQLite file)", URLS,
           general.urls),
    FLAG_OPTION("help", 'h', "print this help", general.help),
    {.name = NULL},
};

static const struct option_row before_command[] = {
    FLAG_OPTION("version", 'V', "print the version, and those of the client libraries",
                general.version),
    {.name = NULL},
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

void usage_error(const struct cli *cli, const char *format, ...)
{
    const char *command = cli->command ? cli->command->name : "";
    /* With room for what hide_url() writes. */
    char text[600 + 8];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text - 8, format, arguments);
    va_end(arguments);
    const char *advice = hide_url(text);
    complain("%s%s%s%s", command, *command ? ": " : "", text, advice);
    fprintf(stderr, "Try 'rowlock %s%s--help'.\n", command, *command ? " " : "");
    exit(EXIT_USAGE);
}

/* ---------------------------------------------------------------- values */

/* Moves *at past decimal digits. False: the number is too large. */
static bool read_digits(const char **at, int64_t *value)
{
    for (*value = 0; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, **at - '0', value))
            return false;
    return true;
}

bool parse_number(const char *text, int64_t least, int64_t most, int64_t *out)
{
    int64_t value;
    const char *end = text;
    if (!read_digits(&end, &value) || end == text || *end || value < least || value > most)
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
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(suffix, units[i].suffix) == 0)
            return units[i].ms;
    return 0;
}

/* "500ms", "1.5", "30s", "5m", "2h", "1d" in milliseconds, rounded up. False: not a duration.
 * Integers only. A binary fraction could turn 0.3s into 299 ms, and the decimal point of strtod()
 * depends on the locale. */
static bool parse_duration(const char *text, int64_t *out)
{
    int64_t whole, part = 0, scale = 1;
    const char *end = text;
    if (!read_digits(&end, &whole))
        return false;
    ptrdiff_t digits = end - text;
    if (*end == '.') {
        const char *point = end++;
        if (!read_digits(&end, &part) || end - point > 10)
            return false;
        digits += end - point - 1;
        while (++point < end)
            scale *= 10;
    }
    int64_t unit = unit_ms(end);
    if (digits == 0 || unit == 0 || __builtin_mul_overflow(whole, unit, &whole))
        return false;
    return !__builtin_add_overflow(whole, (part * unit + scale - 1) / scale, out);
}

static void store_duration(const struct cli *cli, const struct option_row *row, const char *text)
{
    int64_t *value = row->value;
    if (row->kind == LENGTH_OR_NEVER && strcmp(text, "never") == 0)
        *value = NEVER;
    else if (!parse_duration(text, value))
        usage_error(cli, "--%s: '%s' is not a duration such as 500ms, 1.5, 30s, 5m, 2h or 1d",
                    row->name, text);
    else if (row->kind != DURATION && *value == 0)
        usage_error(cli, "--%s: the duration must be more than 0", row->name);
    else if (*value < row->least)
        usage_error(cli, "--%s: the duration must be at least %lldms", row->name,
                    (long long)row->least);
}

static void store_number(const struct cli *cli, const struct option_row *row, const char *text)
{
    if (parse_number(text, row->least, row->most, row->value))
        return;
    if (row->most == INT64_MAX)
        usage_error(cli, "--%s: '%s' is not a token; give a number above 0", row->name, text);
    usage_error(cli, "--%s: '%s' is not a number from %lld to %lld", row->name, text,
                (long long)row->least, (long long)row->most);
}

static void store(const struct cli *cli, const struct option_row *row, const char *text)
{
    if (row->kind == FLAG)
        *(bool *)row->value = true;
    else if (row->kind == TEXT)
        *(const char **)row->value = text;
    else if (row->kind == NUMBER)
        store_number(cli, row, text);
    else if (row->kind != URLS)
        store_duration(cli, row, text);
    else if (general.url_count++ < URLS_MOST)
        general.urls[general.url_count - 1] = text;
}

/* ---------------------------------------------------------------- parsing */

static bool runs_another(const struct cli *cli)
{
    return cli->command && cli->command->most_arguments == NO_LIMIT;
}

static bool has_option(const struct command *command, const struct option_row *row)
{
    return !row->users || (command && strstr(row->users, command->name));
}

/* The option with that letter. 0: with that name, which may be cut if no other begins so. */
static const struct option_row *find_row(const struct cli *cli, int letter, const char *name,
                                         size_t length)
{
    const struct option_row *const lists[] = {cli->command ? cli->command->options : before_command,
                                              common};
    const struct option_row *found = NULL;
    int count = 0;
    for (int i = 0; i < 2; i++)
        for (const struct option_row *row = lists[i]; row->name; row++) {
            bool begins = strncmp(row->name, name, length) == 0 && has_option(cli->command, row);
            if (letter ? row->letter == letter && has_option(cli->command, row)
                       : begins && strlen(row->name) == length)
                return row;
            found = begins ? row : found;
            count += begins;
        }
    return !letter && count == 1 ? found : NULL;
}

/* After two words it may be an option of the command that is to run. */
static const char *hint(const struct cli *cli)
{
    return runs_another(cli) && cli->argument_count > 1
               ? "; if it belongs to COMMAND, the first -- has to stand before that"
               : "";
}

/* value NULL: it is the next word. Dry: it is not stored. */
static void take_value(const struct cli *cli, const struct option_row *row, const char *value,
                       char **argv, int *at, bool dry)
{
    if (row->argument && !value && !(value = argv[(*at)++]))
        usage_error(cli, "--%s needs an argument: %s", row->name, row->argument);
    if (!dry)
        store(cli, row, value);
}

static void take_long(const struct cli *cli, const char *word, char **argv, int *at, bool dry)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const struct option_row *row = find_row(cli, 0, name, length);
    if (!row)
        usage_error(cli, "no such option here, or an abbreviation of several: '%s'%s", word,
                    hint(cli));
    if (name[length] && !row->argument)
        usage_error(cli, "--%s takes no argument", row->name);
    take_value(cli, row, name[length] ? name + length + 1 : NULL, argv, at, dry);
}

/* "-n", "-nv", "-w 5m", "-nw5m" */
static void take_letters(const struct cli *cli, const char *letters, char **argv, int *at, bool dry)
{
    for (bool last = false; *letters && !last; letters++) {
        const struct option_row *row = find_row(cli, *letters, "", 0);
        if (!row)
            usage_error(cli, "unknown option '-%c'%s", *letters, hint(cli));
        last = row->argument;
        take_value(cli, row, last && letters[1] ? letters + 1 : NULL, argv, at, dry);
    }
}

/* Takes options and at most `most` words, or all words up to a "--". Returns whether there was one.
 * The rest of the line begins at *at. */
static bool take_words(struct cli *cli, char **argv, int most, bool dry, int *at)
{
    bool dashes = false;
    cli->argument_count = 0;
    for (*at = 1; argv[*at] && !dashes;) {
        char *word = argv[*at];
        bool is_option = word[0] == '-' && word[1];
        if (!is_option && cli->argument_count == most)
            break;
        ++*at;
        dashes = strcmp(word, "--") == 0;
        if (!is_option)
            cli->arguments[cli->argument_count++] = word;
        else if (!dashes && word[1] == '-')
            take_long(cli, word, argv, at, dry);
        else if (!dashes)
            take_letters(cli, word + 1, argv, at, dry);
    }
    return dashes;
}

int options_before_command(struct cli *cli, char **argv)
{
    int used;
    take_words(cli, argv, 0, false, &used);
    return used;
}

/* A command that runs another leaves that one's options alone. All words before the first "--" are
 * names. Without a "--" the first word is the name. */
static void take_names(struct cli *cli, char **argv, int *at)
{
    char **first = argv;
    while (*first && strcmp(*first, "--") != 0)
        first++;
    bool dashes = *first && take_words(cli, argv, NO_LIMIT, true, at);
    if (!take_words(cli, argv, dashes ? NO_LIMIT : 1, false, at))
        return;
    if (cli->argument_count > 1)
        cli->name_count = cli->argument_count;
    /* "-- NAME -- COMMAND": the first -- is there because NAME may begin with a dash. */
    if (cli->argument_count == 0 && argv[*at] && argv[*at + 1] &&
        strcmp(argv[*at + 1], "--") == 0) {
        cli->arguments[cli->argument_count++] = argv[*at];
        *at += 2;
    }
}

void options_of_command(struct cli *cli, int argc, char **argv)
{
    const struct command *command = cli->command;
    int at;
    cli->arguments = must_have(calloc((size_t)argc + 1, sizeof *cli->arguments));
    cli->name_count = 1;
    if (runs_another(cli))
        take_names(cli, argv, &at);
    else
        take_words(cli, argv, NO_LIMIT, false, &at);
    while (argv[at])
        cli->arguments[cli->argument_count++] = argv[at++];
    if (general.help)
        return;
    bool nothing_to_run = runs_another(cli) && cli->argument_count <= cli->name_count;
    if (cli->argument_count < command->least_arguments || nothing_to_run)
        usage_error(cli, "too few arguments; it takes %s", command->arguments);
    if (command->most_arguments != NO_LIMIT && cli->argument_count > command->most_arguments)
        usage_error(cli, "unexpected argument '%s'", cli->arguments[command->most_arguments]);
}

static void print_rows(const struct command *command, const struct option_row *row)
{
    for (; row->name; row++) {
        char letter[] = {'-', (char)row->letter, ',', '\0'};
        if (!has_option(command, row))
            continue;
        int used = printf("  %3s --%s%s%s", row->letter ? letter : "", row->name,
                          row->argument ? " " : "", row->argument ? row->argument : "");
        printf("%*s %s\n", used < 32 ? 32 - used : 0, "", row->help);
    }
}

void options_print(const struct command *command)
{
    print_rows(command, command ? command->options : common);
    print_rows(command, command ? common : before_command);
}
