/* SPDX-License-Identifier: MIT
 *
 * Claims, completes and gives back the key of `run --once`. The locks are held exclusively. So a
 * claim that is found belongs to a run that is gone: the library sees that by its smaller token.
 */
#include "once.h"

#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST_RUN_MS (INT64_C(366) * 86400000)
#define FINGERPRINT_SIZE 17
#define LONGEST_KEY 255

/* ---------------------------------------------------------------- keys */

/* The lengths of the names come first, so that different names and keys never give the same
 * text. */
char *once_key(char *const *names, int count, const char *key)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = must_have(open_memstream(&text, &size));
    for (int i = 0; i < count; i++)
        fprintf(file, "%s%zu", i ? "+" : "", strlen(names[i]));
    for (int i = 0; i < count; i++)
        fprintf(file, ":%s", names[i]);
    fprintf(file, ":%s", key);
    must_have(fclose(file) == 0 ? text : NULL);
    return text;
}

/* The text after a name of that length and its colon. NULL: there is no such name. */
static const char *past_name(const char *at, size_t length)
{
    return strlen(at) > length && at[length] == ':' ? at + length + 1 : NULL;
}

char *once_names(const char *stored, const char **key)
{
    char text[600];
    int used = 0;
    const char *lengths = stored;
    const char *name = stored + strspn(stored, "0123456789+");
    if (name == stored || *name++ != ':')
        return NULL;
    for (char *end; *lengths != ':'; lengths = *end == '+' ? end + 1 : end) {
        unsigned long length = strtoul(lengths, &end, 10);
        const char *next = end == lengths || length > 255 ? NULL : past_name(name, length);
        if (!next)
            return NULL;
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%.*s", used ? ", " : "",
                         (int)length, name);
        name = next;
    }
    *key = name;
    return must_have(strdup(text));
}

int once_settings(const struct cli *cli)
{
    const char *key = cli->set.once;
    if (!key)
        return EXIT_FINE;
    if (!*key)
        return usage_error(cli, "--once: the key is empty; it takes 1 to 255 bytes");
    char *whole = once_key(cli->arguments, cli->name_count, key);
    size_t length = strlen(whole);
    free(whole);
    if (length > LONGEST_KEY)
        return usage_error(cli,
                           "--once: key and name together are too long by %zu bytes; shorten the "
                           "key",
                           length - LONGEST_KEY);
    if (cli->set.shared || cli->set.permits != UNSET)
        return usage_error(cli,
                           "--once needs the lock exclusively: leave out --shared and --permits");
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- claiming */

/* FNV-1a, with the zero byte at the end, so that "a b" differs from "a", "b". */
static uint64_t mix(uint64_t sum, const char *word)
{
    do
        sum = (sum ^ (unsigned char)*word) * UINT64_C(1099511628211);
    while (*word++);
    return sum;
}

/* Of the locks' names and the command's words. The words may be secret, so they are not stored. */
static void make_fingerprint(const struct cli *cli, char text[FINGERPRINT_SIZE])
{
    uint64_t sum = UINT64_C(14695981039346656037);
    for (int i = 0; i < cli->argument_count; i++)
        sum = mix(i == cli->name_count ? mix(sum, "") : sum, cli->arguments[i]);
    snprintf(text, FINGERPRINT_SIZE, "%016" PRIx64, sum);
}

/* How long a run may take. Only a sweep uses this: other runs compare tokens. */
static int64_t longest_ms(const struct settings *set)
{
    int64_t most = LONGEST_RUN_MS - set->grace_ms - set->ttl_ms;
    if (set->max_hold_ms == UNSET || set->max_hold_ms > most)
        return LONGEST_RUN_MS;
    return set->max_hold_ms + set->grace_ms + set->ttl_ms;
}

static char *time_of(json_t *stored)
{
    const char *time = json_string_value(json_object_get(stored, "ended_at"));
    return time ? printable(time) : NULL;
}

static void say_done(const struct cli *cli)
{
    size_t length;
    const char *result = rowlock_once_result(cli->once, &length);
    if (!talkative(cli))
        return;
    json_t *stored = json_loadb(result, length, 0, NULL);
    char *time = time_of(stored);
    complain("run %s: '%s' was done before%s%s; nothing is run", cli->title, cli->set.once,
             time ? ", at " : "", time ? time : "");
    free(time);
    json_decref(stored);
}

static int not_claimed(const struct cli *cli, int result)
{
    if (result == ROWLOCK_DONE) {
        say_done(cli);
        return EXIT_FINE;
    }
    if (result == ROWLOCK_MISMATCH) {
        complain(
            "run %s: the key '%s' was used for another command; choose another key, or free it "
            "with `rowlock once forget`",
            cli->title, cli->set.once);
        return EXIT_USAGE;
    }
    if (result != ROWLOCK_BUSY)
        return report_failure(cli, result);
    complain("run %s: '%s' is in progress: another run has claimed it", cli->title, cli->set.once);
    return cli->set.conflict_status == UNSET ? EXIT_NOT_ACQUIRED : (int)cli->set.conflict_status;
}

/* A slow database may have used up the lease. Then the job would be ended at once. */
static bool still_held(const struct cli *cli)
{
    for (int i = 0; i < cli->lock_count; i++)
        if (rowlock_lock_remaining_ms(cli->locks[i]) <= cli->margin_ms)
            return false;
    return true;
}

bool once_claim(struct cli *cli, int *status)
{
    char fingerprint[FINGERPRINT_SIZE];
    rowlock_once_options options = ROWLOCK_ONCE_OPTIONS_INIT;
    if (!cli->set.once)
        return true;
    make_fingerprint(cli, fingerprint);
    options.fingerprint = fingerprint;
    options.ttl_ms = longest_ms(&cli->set);
    options.token = rowlock_lock_token(cli->locks[0]);
    char *key = once_key(cli->arguments, cli->name_count, cli->set.once);
    int result = rowlock_once_claim(cli->db, key, &options, &cli->once);
    free(key);
    if (result != ROWLOCK_OK) {
        *status = not_claimed(cli, result);
        return false;
    }
    if (still_held(cli))
        return true;
    complain(
        "run %s: the lease ended before the job could begin; try again, or give a longer --ttl",
        cli->title);
    once_give_back(cli);
    *status = EXIT_LOST;
    return false;
}

/* ---------------------------------------------------------------- afterwards */

static char *make_result(void)
{
    struct timespec now;
    json_t *object = must_have(json_object());
    clock_gettime(CLOCK_REALTIME, &now);
    json_put_integer(object, "status", EXIT_FINE);
    json_put_time(object, "ended", (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    char *text = must_have(json_dumps(object, JSON_COMPACT));
    json_decref(object);
    return text;
}

int once_complete(struct cli *cli)
{
    if (!cli->once)
        return EXIT_FINE;
    char *text = make_result();
    int result = rowlock_once_complete(cli->once, cli->db, text, strlen(text));
    free(text);
    if (result == ROWLOCK_OK)
        return EXIT_FINE;
    int status = report_failure(cli, result);
    if (result == ROWLOCK_LOST)
        complain("run %s: '%s' was done, but another run may have done it as well", cli->title,
                 cli->set.once);
    else
        complain(
            "run %s: '%s' was done, but may not be recorded as done: the next run may do it again",
            cli->title, cli->set.once);
    return status;
}

void once_give_back(struct cli *cli)
{
    int result = cli->once ? rowlock_once_abandon(cli->once) : ROWLOCK_OK;
    if (result != ROWLOCK_OK)
        report_failure(cli, result);
}
