/* SPDX-License-Identifier: MIT
 *
 * Claims, completes and gives back the key of `run --once` and `run --every`. The locks are held
 * exclusively. So a claim that is found belongs to a run that is gone: the library sees that by its
 * smaller token. A key that is given back has no token: then only the time of --retry-after counts.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_KEY 255

/* When the key was claimed. */
static int64_t claimed_ms;

/* ---------------------------------------------------------------- keys */

/* The lengths of the names come first: different names and keys never give the same text. */
char *once_key(char *const *names, int count, const char *key)
{
    char *text;
    FILE *file = open_text(&text);
    for (int i = 0; i < count; i++)
        fprintf(file, "%s%zu", i ? "+" : "", strlen(names[i]));
    for (int i = 0; i < count; i++)
        fprintf(file, ":%s", names[i]);
    fprintf(file, ":%s", key);
    return closed_text(file, &text);
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
    return new_text("%s", text);
}

bool once_is_under(const char *stored, const char *name)
{
    const char *first = strchr(stored, ':');
    const char *end = first ? past_name(first + 1, strlen(name)) : NULL;
    return end && strtoul(stored, NULL, 10) == strlen(name) &&
           strncmp(first + 1, name, strlen(name)) == 0;
}

void once_settings(const struct cli *cli)
{
    const char *option = asked.once ? "--once" : "--every";
    const char *key = asked.once ? asked.once : PERIOD_KEY_LONGEST;
    bool keyed = asked.once || asked.every_ms;
    if (!keyed && asked.retry_after_ms)
        usage_error(cli, "--retry-after needs --every or --once");
    if (!keyed)
        return;
    if (asked.once && !*asked.once)
        usage_error(cli, "--once: the key is empty; it takes 1 to 255 bytes");
    if (asked.shared || asked.permits)
        usage_error(cli, "%s needs the lock exclusively: leave out --shared and --permits", option);
    if (asked.retry_after_ms > LEAP_YEAR_MS)
        usage_error(cli, "--retry-after: must be at most 366d");
    char *whole = once_key(cli->arguments, cli->name_count, key);
    size_t length = strlen(whole);
    free(whole);
    if (length > LONGEST_KEY)
        usage_error(cli, "%s: key and name together are too long by %zu bytes; shorten the %s",
                    option, length - LONGEST_KEY, asked.once ? "key" : "name");
}

/* ---------------------------------------------------------------- claiming */

static int say_done(const struct cli *cli)
{
    size_t length;
    const char *result = rowlock_once_result(cli->once, &length);
    json_t *stored = talkative() ? json_loadb(result, length, 0, NULL) : NULL;
    const char *time = json_string_value(json_object_get(stored, "ended_at"));
    if (talkative())
        tell(cli, "'%s' was done before%s%s; nothing is run", asked.once, time ? ", at " : "",
             time ? time : "");
    json_decref(stored);
    return EXIT_FINE;
}

/* A period is done, also if its command has changed since. */
static int say_mismatch(const struct cli *cli)
{
    tell(cli,
         asked.every_ms ? "'%s' was done before, by another command; nothing is run; if these are "
                          "two jobs, give each its name"
                        : "the key '%s' was used for another command; choose another key, or free "
                          "it with `rowlock once forget NAME KEY`",
         asked.once);
    return asked.every_ms ? EXIT_FINE : EXIT_USAGE;
}

bool once_has_failed(const rowlock_once_record *record)
{
    return !record->done && record->token == 0;
}

/* The first key with this prefix is the key itself. */
static int take_record(void *context, const rowlock_once_record *record)
{
    *(rowlock_once_record *)context = *record;
    return 1;
}

/* -n is silent. Without it, the wait for the lock was in vain. */
static void say_busy(const struct cli *cli, const char *key)
{
    rowlock_once_record record = {.token = UNSET};
    int result = rowlock_once_list(cli->db, key, take_record, &record);
    if (result != ROWLOCK_OK || !once_has_failed(&record)) {
        if (talkative() || !asked.nonblock)
            tell(cli, "'%s' is in progress: another run has claimed it", asked.once);
    } else if (talkative()) {
        tell(cli, "'%s' failed %s ago; it is not repeated for another %s", asked.once,
             duration_text(record.age_ms).text, duration_text(record.remaining_ms).text);
    }
}

/* The library names the whole key of the database. */
static int report_key(const struct cli *cli, const char *verb, int result)
{
    const rowlock_error *error = rowlock_db_error(cli->db);
    tell(cli, "%s '%s': %s", verb, asked.once,
         error->code == result ? error->text : rowlock_result_name(result));
    return status_of(result);
}

static int not_claimed(const struct cli *cli, const char *key, int result)
{
    if (result == ROWLOCK_DONE)
        return say_done(cli);
    if (result == ROWLOCK_MISMATCH)
        return say_mismatch(cli);
    if (result != ROWLOCK_BUSY)
        return report_key(cli, "claim", result);
    say_busy(cli, key);
    return conflict_status(EXIT_NOT_ACQUIRED);
}

/* A slow database may have used up the lease. Then the job would be ended at once. */
static bool still_held(const struct cli *cli)
{
    for (int i = 0; i < cli->lock_count; i++)
        if (rowlock_lock_remaining_ms(cli->locks[i]) <= cli->margin_ms)
            return false;
    return true;
}

/* Only a sweep uses how long a run may take: other runs compare tokens. */
static int claim_held(struct cli *cli, const char *key)
{
    int64_t job_ms = asked.max_hold_ms ? at_most(asked.max_hold_ms, LEAP_YEAR_MS) : LEAP_YEAR_MS;
    /* A hash of the names and the command's words, which may be secret and are not stored. */
    char fingerprint[17];
    uint64_t sum = HASH_BEGIN;
    rowlock_once_options options = ROWLOCK_ONCE_OPTIONS_INIT;
    for (int i = 0; i < cli->argument_count; i++) {
        /* With the zero byte at the end, so that "a b" differs from "a", "b". */
        sum = i == cli->name_count ? hash_of(sum, "", 1) : sum;
        sum = hash_of(sum, cli->arguments[i], strlen(cli->arguments[i]) + 1);
    }
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)sum);
    options.fingerprint = fingerprint;
    options.ttl_ms = at_most(job_ms + asked.grace_ms + asked.ttl_ms, LEAP_YEAR_MS);
    options.token = rowlock_lock_token(cli->locks[0]);
    return rowlock_once_claim(cli->db, key, &options, &cli->once);
}

bool once_claim(struct cli *cli, int *status)
{
    /* The period of the moment at which the database granted or renewed the lease. */
    if (asked.every_ms)
        asked.once = period_key(rowlock_lock_expires_us(cli->locks[0]) / 1000 - asked.ttl_ms);
    if (!asked.once)
        return true;
    claimed_ms = now_ms();
    rowlock_once_record record = {.done = 1};
    char *key = once_key(cli->arguments, cli->name_count, asked.once);
    int result = claim_held(cli, key);
    /* This is another command, such as the repaired one. It has the key without a pause. */
    if (result == ROWLOCK_MISMATCH) {
        result = rowlock_once_forget(cli->db, key, rowlock_lock_token(cli->locks[0]));
        result = result < 0 ? result : claim_held(cli, key);
    }
    /* If it is not done, a later holder of the lock has claimed it. */
    if (result == ROWLOCK_MISMATCH &&
        rowlock_once_list(cli->db, key, take_record, &record) == ROWLOCK_OK && !record.done)
        result = ROWLOCK_BUSY;
    if (result != ROWLOCK_OK)
        *status = not_claimed(cli, key, result);
    free(key);
    if (result != ROWLOCK_OK || still_held(cli))
        return result == ROWLOCK_OK;
    tell(cli, "the lease ended before the job could begin; try again, or give a longer --ttl");
    *status = EXIT_LOST;
    once_failed(cli, *status);
    return false;
}

/* ---------------------------------------------------------------- afterwards */

/* What became of the run, for `once list` and `once show`. Free it. */
/* LOGNAME says who: a lookup of accounts may wait for a server. */
static char *history_of(const struct cli *cli, int status)
{
    char host[65] = "", user[65];
    const char *login = getenv("LOGNAME");
    gethostname(host, sizeof host - 1);
    snprintf(user, sizeof user, "%s", login && *login ? login : "-");
    json_t *run = must_have(json_object());
    json_put_integer(run, "status", status);
    json_put_text(run, "user", user);
    json_put_text(run, "host", host);
    json_put_integer(run, "pid", getpid());
    json_put_integer(run, "token", rowlock_lock_token(cli->locks[0]));
    json_put_integer(run, "duration_ms", now_ms() - claimed_ms);
    json_put_time(run, "ended", wall_clock_us());
    char *text = must_have(json_dumps(run, JSON_COMPACT));
    json_decref(run);
    return text;
}

json_t *once_history(const rowlock_once_record *record)
{
    json_t *run = record->result_length < 0
                      ? NULL
                      : json_loadb(record->result, (size_t)record->result_length, 0, NULL);
    if (json_is_integer(json_object_get(run, "status")) &&
        json_is_string(json_object_get(run, "host")))
        return run;
    json_decref(run);
    return NULL;
}

int once_complete(struct cli *cli)
{
    if (!cli->once)
        return EXIT_FINE;
    char *text = history_of(cli, EXIT_FINE);
    int result = rowlock_once_complete(cli->once, cli->db, text, strlen(text));
    free(text);
    if (result == ROWLOCK_OK)
        return EXIT_FINE;
    if (result == ROWLOCK_LOST) {
        tell(cli, "'%s' was done, but its key is gone: another run may do it as well", asked.once);
        return status_of(result);
    }
    tell(cli, "'%s' was done, but may not be recorded as done: the next run may do it again",
         asked.once);
    return report_key(cli, "complete", result);
}

/* A later holder of the lock may have taken the key over. Then nothing changes it. */
void once_failed(struct cli *cli, int status)
{
    if (!cli->once)
        return;
    char *text = history_of(cli, status);
    int result = rowlock_once_abandon(cli->once, asked.retry_after_ms, text, strlen(text));
    free(text);
    if (result != ROWLOCK_OK)
        report_key(cli, "give back", result);
}
