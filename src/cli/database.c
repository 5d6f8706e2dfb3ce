/* SPDX-License-Identifier: MIT
 *
 * Finds the URL of the database, or those of a quorum. The library knows how to reach it.
 */
#include "cli/print/print.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME "sqlite:"

/* The bounds of the random pauses between two tries to connect. */
enum { SHORTEST_RANGE_MS = 50, LONGEST_RANGE_MS = 1000 };

/* How long the library tries to connect, and the shortest time that this is cut to. */
enum { CONNECT_MS = 5000, SHORTEST_CONNECT_MS = 1000 };

/* ---------------------------------------------------------------- which databases */

#define WHITE_SPACE " \t\r\n"

/* White space does not end a URL by itself: the path of a file may have some. */
static bool begins_url(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    return length > 0 && text[length] == ':';
}

void find_urls(struct cli *cli)
{
    const char *value = getenv("ROWLOCK_URL");
    if (general.url_count > 0 || !value)
        return;
    cli->url_words = must_have(strdup(value));
    char *at = cli->url_words + strspn(value, WHITE_SPACE);
    general.urls[general.url_count++] = at;
    while (*at) {
        size_t space = strspn(at, WHITE_SPACE);
        bool another = space > 0 && begins_url(at + space);
        if (another || (space > 0 && !at[space]))
            *at = '\0';
        at += space > 0 ? space : 1;
        if (another && general.url_count < URLS_MOST)
            general.urls[general.url_count] = at;
        general.url_count += another;
    }
}

char *joined_urls(void)
{
    char *text;
    FILE *file = open_text(&text);
    for (int i = 0; i < general.url_count; i++)
        fprintf(file, "%s%s", i ? " " : "", general.urls[i]);
    return closed_text(file, &text);
}

bool is_quorum(const struct cli *cli)
{
    return general.url_count > 1 && cli->member == 0;
}

void check_urls(const struct cli *cli)
{
    const char *from = cli->url_words ? "ROWLOCK_URL" : "--url";
    int count = general.url_count;
    /* A script's variable was not set, most likely. A wrong database protects nothing. */
    for (int i = 0; i < count && i < URLS_MOST; i++) {
        bool lasts = strcmp(general.urls[i], SCHEME ":memory:") != 0;
        if (!*general.urls[i] || !lasts)
            usage_error(cli, "%s is %s; give a URL, or leave it out for the embedded database",
                        from, lasts ? "empty" : "in memory, and ends with the command");
    }
    if (count > 1 && count != 3 && count != URLS_MOST)
        usage_error(cli, "%s: %d URLs; give 1, or 3 or %d for a lock over independent databases",
                    from, count, URLS_MOST);
}

/* ---------------------------------------------------------------- the embedded database */

/* The URL of the embedded database. Free it. NULL: there is no home for it. */
static char *embedded_url(void)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *below = "";
    /* The specification of that variable says: ignore a relative path. */
    if (!state || state[0] != '/') {
        state = getenv("HOME");
        below = "/.local/state";
    }
    if (!state || state[0] != '/')
        return NULL;
    return new_text(SCHEME "%s%s/rowlock/locks.db", state, below);
}

/* Makes the folders above the file, for this user only. Returns 0, or the reason after saying
 * it. */
static int make_folders(char *path)
{
    int failed = 0;
    for (char *slash = strchr(path + 1, '/'); slash && !failed; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        failed = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        if (failed)
            complain("make folder '%s': %s", path, strerror(failed));
        *slash = '/';
    }
    return failed;
}

/* ---------------------------------------------------------------- a server that is away */

/* Random, and longer from try to try: all hosts at once would overrun a server that starts. */
static int pause_ms(int tries)
{
    int range = tries < 5 ? SHORTEST_RANGE_MS << tries : LONGEST_RANGE_MS;
    uint16_t random = 0;
    (void)!getentropy(&random, sizeof random);
    return range - random % range;
}

static bool may_pass(int result, const rowlock_error *error)
{
    bool busy_or_standby = result == ROWLOCK_ESERVER || result == ROWLOCK_EREADONLY;
    return result == ROWLOCK_ECONN || (busy_or_standby && error->retryable);
}

int try_until_there(struct cli *cli, attempt *make, void *context, rowlock_error *error)
{
    const char *server = is_quorum(cli) ? "a majority of the members" : "the server";
    int result;
    int tries = 0;
    while (may_pass(result = make(cli, context, error), error) && now_ms() < cli->wait_until_ms) {
        if (tries == 0)
            complain("%s: %s is %s; still waiting: %s", error->action, server,
                     result == ROWLOCK_ESERVER ? "busy" : "away", error->text);
        pause_until(at_most(now_ms() + pause_ms(tries++), cli->wait_until_ms), -1);
    }
    if (result == ROWLOCK_OK && tries > 0)
        complain("%s is back", server);
    return result;
}

/* Which job is it? In a mail of cron the command line may be missing. */
static void name_lock(const struct cli *cli, rowlock_error *error)
{
    char action[sizeof error->action];
    if (strncmp(cli->command->arguments, "NAME", 4) != 0)
        return;
    snprintf(action, sizeof action, "%s '%.250s': %.20s", cli->command->name, cli->arguments[0],
             error->action);
    memcpy(error->action, action, sizeof action);
}

/* Connecting takes no longer than what is left of --wait. It may take a second even then: the
 * connection has the same time when it is made again. */
static int open_once(struct cli *cli, void *context, rowlock_error *error)
{
    rowlock_db_options *options = context;
    int64_t left_ms = cli->wait_until_ms - now_ms();
    if (cli->wait_until_ms > 0 && left_ms < CONNECT_MS)
        options->connect_timeout_ms = within(left_ms, SHORTEST_CONNECT_MS, CONNECT_MS);
    int result = rowlock_db_open(cli->url, options, &cli->db, error);
    name_lock(cli, error);
    return result;
}

/* It takes the URL, which is freed with cli. */
static int open_url(struct cli *cli, char *url, const rowlock_db_options *options)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_options copy = options ? *options : (rowlock_db_options)ROWLOCK_DB_OPTIONS_INIT;
    cli->url = url;
    return report_error(try_until_there(cli, open_once, &copy, &error), &error);
}

/* A command that does not need the file must not create it. Instead it gets an empty database in
 * memory. Cron does not read the user's profile, so a URL may have been forgotten. Then every host
 * runs the job. It is said only once: cron would send mail each time. */
static int open_file(struct cli *cli, char *url, const rowlock_db_options *options)
{
    char *path = url + strlen(SCHEME);
    const char *name = cli->command->name;
    bool makes = cli->command->creates && !general.sql;
    int failed = makes ? make_folders(path) : 0;
    bool missing = access(path, F_OK) != 0;
    if (!makes && missing && errno != ENOENT) {
        failed = errno;
        complain("look for '%s': %s", path, strerror(failed));
    }
    if (failed)
        return failed == EACCES || failed == EPERM ? EXIT_DENIED : EXIT_UNREACHABLE;
    cli->no_file = missing && !makes;
    if (cli->no_file && !general.quiet && !(cli->command->creates && general.sql))
        complain("%s: there are no locks yet: '%s' does not exist; `rowlock install` or `rowlock "
                 "run` creates it",
                 name, path);
    int status = open_url(cli, new_text("%s", cli->no_file ? SCHEME ":memory:" : url), options);
    if (status == EXIT_FINE && makes && missing)
        complain("%s: neither --url nor ROWLOCK_URL is set; made '%s', for this host only", name,
                 path);
    return status;
}

/* The embedded database installs itself, so that trying rowlock takes one command. install and
 * check look at the tables as they are. */
static int open_embedded(struct cli *cli, const rowlock_db_options *options)
{
    char *url = embedded_url();
    if (!url) {
        complain("find the embedded database: neither HOME nor XDG_STATE_HOME is set; "
                 "give --url or set ROWLOCK_URL");
        return EXIT_USAGE;
    }
    int status = open_file(cli, url, options);
    free(url);
    if (status != EXIT_FINE || strcmp(cli->command->name, "check") == 0 ||
        strcmp(cli->command->name, "install") == 0)
        return status;
    return reported(cli, rowlock_install(cli->db));
}

/* ---------------------------------------------------------------- the library's log */

static pthread_mutex_t warning_mutex = PTHREAD_MUTEX_INITIALIZER;
static char warning[WARNING_SIZE];

/* Keeps only the reason of a keeper's warning. The message about it names the lease. */
void keep_warning(const char *line)
{
    static const char preface[] = "could not be renewed: ";
    const char *reason = strstr(line, preface);
    pthread_mutex_lock(&warning_mutex);
    snprintf(warning, sizeof warning, "%s", reason ? reason + strlen(preface) : line);
    pthread_mutex_unlock(&warning_mutex);
}

bool last_warning(char text[WARNING_SIZE])
{
    pthread_mutex_lock(&warning_mutex);
    memcpy(text, warning, sizeof warning);
    pthread_mutex_unlock(&warning_mutex);
    return text[0] != '\0';
}

static void log_line(void *context, rowlock_log_level level, const char *line)
{
    const struct cli *cli = context;
    if (level == ROWLOCK_LOG_WARNING)
        keep_warning(line);
    if (general.verbose || (cli->waiting && level == ROWLOCK_LOG_WARNING))
        complain("%s", line);
}

void listen_to_library(struct cli *cli)
{
    rowlock_log_set(log_line, cli, general.verbose ? ROWLOCK_LOG_INFO : ROWLOCK_LOG_WARNING);
}

int connect_database(struct cli *cli, const rowlock_db_options *options)
{
    listen_to_library(cli);
    signals_ignore_pipe();
    const char *required = getenv("ROWLOCK_REQUIRE_URL");
    if (general.url_count == 0 && required && *required)
        usage_error(cli, "neither --url nor ROWLOCK_URL is set, and ROWLOCK_REQUIRE_URL is");
    if (general.url_count == 0)
        return open_embedded(cli, options);
    check_urls(cli);
    const char *one = general.urls[cli->member ? cli->member - 1 : 0];
    return open_url(cli, is_quorum(cli) ? joined_urls() : new_text("%s", one), options);
}

void disconnect_database(struct cli *cli)
{
    if (cli->leave_grant || cli->abandon)
        return;
    for (int i = 0; i < cli->lock_count; i++)
        rowlock_lock_close(cli->locks[i]);
    rowlock_once_close(cli->once);
    rowlock_db_close(cli->db);
    free(cli->url);
    free(cli->locks);
    free(cli->title);
    cli->db = NULL;
    cli->once = NULL;
    cli->url = cli->title = NULL;
    cli->locks = NULL;
    cli->lock_count = 0;
}
