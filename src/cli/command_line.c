/* SPDX-License-Identifier: MIT
 *
 * Reads the command line. One table has all options; parsing and help come from it. The commands
 * decide what the values mean.
 */
#include "cli/cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, URLS, DURATION, LENGTH, LENGTH_OR_NEVER, NUMBER };

struct option_row {
    int id;
    /* 0: only the long name. */
    int letter;
    const char *name;
    /* As the help shows it. NULL: it takes none. */
    const char *argument;
    const char *help;
    /* LENGTH is a DURATION above 0. */
    enum kind kind;
    size_t offset;
    /* For a NUMBER. A LENGTH may have a least one too, in milliseconds. */
    int64_t least;
    int64_t most;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_row rows[] = {
    {OPT_NONBLOCK, 'n', "nonblock", NULL, "do not wait: exit at once if the lock is held", FLAG,
     AT(nonblock), 0, 0},
    {OPT_WAIT, 'w', "wait", "DURATION", "wait at most this long (default: no limit)", DURATION,
     AT(wait_ms), 0, 0},
    {OPT_CONFLICT, 'E', "conflict-exit-code", "N", "exit status if the lock is not acquired (75)",
     NUMBER, AT(conflict_status), 0, 255},
    {OPT_TTL, 0, "ttl", "DURATION", "length of the lease, unless it is renewed (30s)", LENGTH,
     AT(ttl_ms), 0, 0},
    {OPT_NEW_TTL, 0, "ttl", "DURATION", "length of the lease from now on (as before)", LENGTH,
     AT(ttl_ms), 0, 0},
    {OPT_SHARED, 's', "shared", NULL, "share the lock with all clients that use -s", FLAG,
     AT(shared), 0, 0},
    {OPT_PERMITS, 0, "permits", "N", "at most N holders at once; all must give the same N", NUMBER,
     AT(permits), 1, 1000000},
    {OPT_UNFAIR, 0, "unfair", NULL, "pass the queue if the lock is free", FLAG, AT(unfair), 0, 0},
    {OPT_GRACE, 0, "grace", "DURATION", "time from SIGTERM to SIGKILL, also after a stop (5s)",
     DURATION, AT(grace_ms), 0, 0},
    {OPT_MIN_HOLD, 0, "min-hold", "DURATION",
     "keep the lock at least this long, even if COMMAND ends (0)", DURATION, AT(min_hold_ms), 0, 0},
    {OPT_MAX_HOLD, 0, "max-hold", "DURATION",
     "end COMMAND when it has held the lock this long (no limit)", LENGTH, AT(max_hold_ms), 0, 0},
    {OPT_STALL, 0, "stall", "DURATION",
     "renew only while COMMAND reports progress this often (off)", LENGTH, AT(stall_ms), 0, 0},
    {OPT_OWNER, 0, "owner", "OWNER",
     "owner of the lock (run, lead: random; acquire: $ROWLOCK_OWNER)", TEXT, AT(owner), 0, 0},
    {OPT_NOTE, 0, "note", "TEXT", "a remark that list and show print", TEXT, AT(note), 0, 0},
    {OPT_ONCE, 0, "once", "KEY", "run COMMAND only if it was not done under this key", TEXT,
     AT(once), 0, 0},
    {OPT_PERIOD, 0, "every", "DURATION", "run COMMAND if it was not done in this period yet",
     LENGTH, AT(every_ms), 0, 0},
    {OPT_AT, 0, "at", "TIME", "when periods of --every begin: 02:00, 'mon 02:00' (00:00)", TEXT,
     AT(at), 0, 0},
    {OPT_TIMEZONE, 0, "timezone", "ZONE", "the time zone of --every and --at (UTC)", TEXT,
     AT(timezone), 0, 0},
    {OPT_RETRY_AFTER, 0, "retry-after", "DURATION",
     "do not repeat a failed COMMAND sooner (default: at the next call)", LENGTH,
     AT(retry_after_ms), 0, 0},
    {OPT_MATCH, 0, "match", "GLOB", "only keys whose 'NAME KEY' matches this pattern", TEXT,
     AT(match), 0, 0},
    {OPT_ITS_OWNER, 0, "owner", "OWNER", "the owner of the grant ($ROWLOCK_OWNER)", TEXT, AT(owner),
     0, 0},
    {OPT_ITS_TOKEN, 0, "token", "N", "the token of the grant ($ROWLOCK_TOKEN)", NUMBER, AT(token),
     1, INT64_MAX},
    {OPT_OLDER_THAN, 0, "older-than", "DURATION", "only leases that ended this long ago (0)",
     DURATION, AT(older_than_ms), 0, 0},
    {OPT_IDLE, 0, "idle", "DURATION", "forget counters idle for this long, or 'never' (30d)",
     LENGTH_OR_NEVER, AT(idle_ms), 0, 0},
    {OPT_ONCE_OLDER_THAN, 0, "once-older-than", "DURATION",
     "forget once keys done this long ago, or 'never' (30d)", LENGTH_OR_NEVER,
     AT(once_older_than_ms), 0, 0},
    {OPT_BATCH, 0, "batch", "N", "rows removed in one transaction (500)", NUMBER, AT(batch), 1,
     10000},
    {OPT_DRY_RUN, 0, "dry-run", NULL, "print what would be removed; remove nothing", FLAG,
     AT(dry_run), 0, 0},
    {OPT_TRY_RUN, 0, "dry-run", NULL, "print what would be done; change nothing", FLAG, AT(dry_run),
     0, 0},
    {OPT_SQL, 0, "sql", NULL, "print the SQL for the database's shell; change nothing", FLAG,
     AT(sql), 0, 0},
    {OPT_PRINT, 0, "print", NULL, "print the SQL for the database's shell; change nothing", FLAG,
     AT(print), 0, 0},
    {OPT_EVERY, 0, "every", "DURATION", "repeat the sweep, until a signal ends it", LENGTH,
     AT(every_ms), 0, 0},
    {OPT_IF_TOKEN, 0, "if-token", "N", "only if the grant has this token", NUMBER, AT(if_token), 1,
     INT64_MAX},
    {OPT_REPLACE, 0, "replace", "N", "another database takes the place of member N", NUMBER,
     AT(replace), 1, URLS_MOST},
    {OPT_BY, 0, "by", "N", "how far above the highest token (1000000)", NUMBER, AT(by), 1,
     INT64_C(1000000000000000)},
    {OPT_NEW_IDENTITY, 0, "new-identity", NULL, "also give a restored copy a new identity", FLAG,
     AT(new_identity), 0, 0},
    {OPT_WAITERS, 0, "waiters", NULL, "show the waiters instead of the grants", FLAG, AT(waiters),
     0, 0},
    {OPT_NAMES, 0, "names", NULL, "print only the names of the locks, each once", FLAG, AT(names),
     0, 0},
    {OPT_WATCH, 0, "watch", NULL, "print a line at each change, until a signal ends it", FLAG,
     AT(watch), 0, 0},
    {OPT_INTERVAL, 0, "interval", "DURATION", "time between two looks (1s)", LENGTH,
     AT(interval_ms), 50, 0},
    {OPT_COUNT, 0, "count", "N", "end after N looks (default: no end)", NUMBER, AT(count), 1,
     1000000000},
    {OPT_MATCH_NAMES, 0, "match", "GLOB", "also for each name like GLOB; * any text, ? a character",
     TEXT, AT(match), 0, 0},
    {OPT_TEXTFILE, 0, "textfile", "FILE", "write FILE, for the node exporter, as a whole", TEXT,
     AT(textfile), 0, 0},
    {OPT_METRICS, 0, "metrics", "DIR", "keep a file of metrics in DIR, for the node exporter", TEXT,
     AT(metrics), 0, 0},
    {OPT_JSON, 0, "json", NULL, "print JSON", FLAG, AT(json), 0, 0},
    {OPT_QUIET, 'q', "quiet", NULL, "print only errors", FLAG, AT(quiet), 0, 0},
    {OPT_VERBOSE, 'v', "verbose", NULL, "explain on standard error what happens", FLAG, AT(verbose),
     0, 0},
    {OPT_URL, 0, "url", "URL", "the database (default: $ROWLOCK_URL, or a SQLite file)", URLS,
     AT(urls), 0, 0},
    {OPT_HELP, 'h', "help", NULL, "print this help", FLAG, AT(help), 0, 0},
    {OPT_VERSION, 'V', "version", NULL, "print the version, and those of the client libraries",
     FLAG, AT(version), 0, 0},
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

static const int common[] = {OPT_URL, OPT_HELP, OPT_END};
static const int before_command[] = {OPT_URL, OPT_HELP, OPT_VERSION, OPT_END};

static const struct option_row *row_of(int id)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].id == id)
            return &rows[i];
    }
    return NULL;
}

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

/* Integers only. A binary fraction could turn 0.3s into 299 ms, and the decimal point of strtod()
 * depends on the locale. */
bool parse_duration(const char *text, int64_t *out)
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
    int64_t *value = (int64_t *)(void *)((char *)&cli->set + row->offset);
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
    int64_t *value = (int64_t *)(void *)((char *)&cli->set + row->offset);
    if (parse_number(text, row->least, row->most, value))
        return EXIT_FINE;
    if (row->most == INT64_MAX)
        return usage_error(cli, "--%s: '%s' is not a token; give a number above 0", row->name,
                           text);
    return usage_error(cli, "--%s: '%s' is not a number from %lld to %lld", row->name, text,
                       (long long)row->least, (long long)row->most);
}

static void store_url(struct settings *set, const char *url)
{
    if (set->url_count < URLS_MOST)
        set->urls[set->url_count] = url;
    set->url_count++;
}

static int store(struct cli *cli, const struct option_row *row, const char *text)
{
    char *member = (char *)&cli->set + row->offset;
    switch (row->kind) {
    case FLAG:
        *(bool *)(void *)member = true;
        return EXIT_FINE;
    case TEXT:
        *(const char **)(void *)member = text;
        return EXIT_FINE;
    case URLS:
        store_url(&cli->set, text);
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

/* What getopt_long() needs, made from our rows. */
struct grammar {
    struct option longs[ROW_COUNT + 1];
    char shorts[2 * ROW_COUNT + 4];
    size_t long_count;
    size_t short_count;
};

static void grammar_add(struct grammar *grammar, const int *ids)
{
    for (; *ids != OPT_END; ids++) {
        const struct option_row *row = row_of(*ids);
        grammar->longs[grammar->long_count++] = (struct option){
            row->name, row->argument ? required_argument : no_argument, NULL, row->id};
        if (row->letter) {
            grammar->shorts[grammar->short_count++] = (char)row->letter;
            if (row->argument)
                grammar->shorts[grammar->short_count++] = ':';
        }
    }
}

/* order: '+' stops at the first word that is not an option. '-' returns such words one by one. The
 * colon makes getopt_long() distinguish a missing argument from an unknown option. */
static void grammar_start(struct grammar *grammar, char order)
{
    memset(grammar, 0, sizeof *grammar);
    grammar->shorts[grammar->short_count++] = order;
    grammar->shorts[grammar->short_count++] = ':';
    opterr = 0;
    /* Not 1: only 0 makes getopt_long() forget an earlier command line. */
    optind = 0;
}

static const struct option_row *row_found(int code)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].id == code || (rows[i].letter && rows[i].letter == code))
            return &rows[i];
    }
    return NULL;
}

static bool runs_another(const struct cli *cli)
{
    return cli->command && cli->command->most_arguments == NO_LIMIT;
}

/* getopt_long() has refused word: say why. After two words it may be an option of the command that
 * is to run. */
static int refuse(const struct cli *cli, int code, const char *word)
{
    const struct option_row *row = row_found(optopt);
    const char *hint = runs_another(cli) && cli->argument_count > 1
                           ? "; if it belongs to COMMAND, the first -- has to stand before that"
                           : "";
    if (code == ':' && row)
        return usage_error(cli, "--%s needs an argument: %s", row->name, row->argument);
    if (optopt >= OPT_URL && row)
        return usage_error(cli, "--%s takes no argument", row->name);
    if (optopt)
        return usage_error(cli, "unknown option '-%c'%s", optopt, hint);
    return usage_error(cli, "no such option here, or an abbreviation of several: '%s'%s", word,
                       hint);
}

/* Options with one name have different ids in different commands, but the same letter and member.
 * So the first row with that letter serves all. Long options come back as their id. */
static int take_option(struct cli *cli, int code, char **argv)
{
    if (code == '?' || code == ':')
        return refuse(cli, code, argv[optind - 1]);
    return store(cli, row_found(code), optarg);
}

int options_before_command(struct cli *cli, int argc, char **argv, int *used)
{
    struct grammar grammar;
    int code;
    grammar_start(&grammar, '+');
    grammar_add(&grammar, before_command);
    while ((code = getopt_long(argc, argv, grammar.shorts, grammar.longs, NULL)) != -1) {
        int status = take_option(cli, code, argv);
        if (status != EXIT_FINE)
            return status;
    }
    *used = optind;
    return EXIT_FINE;
}

static int count_arguments(const struct cli *cli)
{
    const struct command *command = cli->command;
    if (cli->set.help)
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
static int take_words(struct cli *cli, int argc, char **argv, int most, bool *dashes)
{
    struct grammar grammar;
    /* The last argument of an option: it may look like "--". */
    const char *taken = NULL;
    int code;
    grammar_start(&grammar, '-');
    grammar_add(&grammar, cli->command->options);
    grammar_add(&grammar, common);
    cli->argument_count = 0;
    *dashes = false;
    while ((code = getopt_long(argc, argv, grammar.shorts, grammar.longs, NULL)) != -1) {
        taken = optarg;
        if (code == 1 && cli->argument_count == most) {
            optind--;
            return EXIT_FINE;
        }
        int status = EXIT_FINE;
        if (code == 1)
            cli->arguments[cli->argument_count++] = optarg;
        else
            status = take_option(cli, code, argv);
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
    struct settings before = cli->set;
    bool dashes = false;
    int status = EXIT_FINE;
    if (has_dashes(argc, argv))
        status = take_words(cli, argc, argv, NO_LIMIT, &dashes);
    if (status == EXIT_FINE && !dashes) {
        cli->set = before;
        status = take_words(cli, argc, argv, 1, &dashes);
    }
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
                                   : take_words(cli, argc, argv, NO_LIMIT, &dashes);
    if (status != EXIT_FINE)
        return status;
    while (optind < argc)
        cli->arguments[cli->argument_count++] = argv[optind++];
    return count_arguments(cli);
}

void options_print(const int *ids)
{
    for (; *ids != OPT_END; ids++) {
        const struct option_row *row = row_of(*ids);
        char names[64];
        snprintf(names, sizeof names, "--%s%s%s", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        if (row->letter)
            printf("  -%c, %-26s %s\n", row->letter, names, row->help);
        else
            printf("      %-26s %s\n", names, row->help);
    }
}
