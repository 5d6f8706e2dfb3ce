/* SPDX-License-Identifier: MIT
 *
 * Errors, exit statuses, and texts that are safe on a terminal. json.c has JSON.
 */
#include "cli/cli.h"

#include "cli/run/signals.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *must_have(void *memory)
{
    if (!memory) {
        fputs("rowlock: out of memory\n", stderr);
        exit(EXIT_INTERNAL);
    }
    return memory;
}

static bool never_wait;

void complain_without_waiting(void)
{
    never_wait = true;
}

static bool would_wait(void)
{
    struct pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT};
    return never_wait && poll(&file, 1, 0) == 0;
}

static int member;

void complain_for_member(int number)
{
    member = number;
}

void print_member(const struct cli *cli)
{
    if (cli->member)
        printf("member %d: ", cli->member);
}

/* One call writes the line, so that lines of two processes do not mix. */
void complain(const char *format, ...)
{
    char text[1400];
    va_list arguments;
    if (would_wait())
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *safe = printable(text);
    if (member)
        fprintf(stderr, "rowlock: member %d: %s\n", member, safe);
    else
        fprintf(stderr, "rowlock: %s\n", safe);
    free(safe);
}

bool talkative(const struct cli *cli)
{
    return cli->set.verbose || isatty(STDERR_FILENO);
}

int status_of(int result)
{
    static const struct {
        int result;
        int status;
    } map[] = {
        {ROWLOCK_OK, EXIT_FINE},
        {ROWLOCK_BUSY, EXIT_NOT_ACQUIRED},
        {ROWLOCK_TIMEOUT, EXIT_NOT_ACQUIRED},
        {ROWLOCK_LOST, EXIT_LOST},
        {ROWLOCK_LAPSED, EXIT_LOST},
        {ROWLOCK_NONE, EXIT_NOTHING},
        {ROWLOCK_STALE, EXIT_LOST},
        {ROWLOCK_CONFLICT, EXIT_NOT_ACQUIRED},
        {ROWLOCK_MISMATCH, EXIT_NOT_ACQUIRED},
        {ROWLOCK_DEADLOCK, EXIT_NOT_ACQUIRED},
        {ROWLOCK_EUNCERTAIN, EXIT_UNREACHABLE},
        {ROWLOCK_ECONN, EXIT_UNREACHABLE},
        {ROWLOCK_ESCHEMA, EXIT_UNFIT},
        {ROWLOCK_EINVAL, EXIT_USAGE},
        {ROWLOCK_EREADONLY, EXIT_UNFIT},
        {ROWLOCK_EDENIED, EXIT_DENIED},
        {ROWLOCK_EUNSUPPORTED, EXIT_UNFIT},
    };
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++) {
        if (map[i].result == result)
            return map[i].status;
    }
    return EXIT_INTERNAL;
}

/* A server that takes no writes now may do so later, or another one. */
int status_of_error(int result, const rowlock_error *error)
{
    return result == ROWLOCK_EREADONLY && error->retryable ? EXIT_UNREACHABLE : status_of(result);
}

int report_failure(const struct cli *cli, int result)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_error(cli->db, &error);
    if (error.code == result)
        complain("%s: %s", error.action, error.text);
    else
        complain("%s: %s", cli->command->name, rowlock_result_name(result));
    return status_of_error(result, &error);
}

static bool nothing_reads(void)
{
    struct pollfd file = {.fd = STDOUT_FILENO};
    return poll(&file, 1, 0) > 0 && (file.revents & POLLERR);
}

int finish_output(int status)
{
    bool unread = nothing_reads();
    /* Closing is part of writing: some file systems report only then that the disk is full. */
    bool failed = ferror(stdout) != 0;
    /* 0: the reason of an earlier failure is not known any more. */
    int reason = 0;
    if (fflush(stdout) != 0 && !failed) {
        failed = true;
        reason = errno;
    }
    if (fclose(stdout) != 0 && !failed) {
        failed = true;
        reason = errno;
    }
    if (!failed)
        return status;
    if ((unread || reason == EPIPE) && die_of_pipe_later())
        return EXIT_SIGNAL + SIGPIPE;
    complain("write to standard output: %s",
             reason ? strerror(reason) : "not all of it could be written");
    return status == EXIT_FINE ? EXIT_OUTPUT : status;
}

/* ---------------------------------------------------------------- texts for a terminal */

/* Control characters, new and old; marks that turn the direction of writing; separators of lines;
 * what has no width, so that two names look alike. The joiners U+200C and U+200D are not here:
 * some scripts need them. */
static const struct {
    unsigned char first[4], last[4];
} dangerous[] = {
    {"\x01", "\x1f"},
    {"\x7f", "\x7f"},
    {"\xc2\x80", "\xc2\x9f"},
    {"\xc2\xad", "\xc2\xad"},
    {"\xd8\x9c", "\xd8\x9c"},
    {"\xe2\x80\x8b", "\xe2\x80\x8b"},
    {"\xe2\x80\x8e", "\xe2\x80\x8f"},
    {"\xe2\x80\xa8", "\xe2\x80\xae"},
    {"\xe2\x81\xa0", "\xe2\x81\xaf"},
    {"\xef\xbb\xbf", "\xef\xbb\xbf"},
};

size_t dangerous_bytes(const char *text)
{
    for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++) {
        size_t bytes = strlen((const char *)dangerous[i].first);
        if (strnlen(text, bytes) == bytes && memcmp(text, dangerous[i].first, bytes) >= 0 &&
            memcmp(text, dangerous[i].last, bytes) <= 0)
            return bytes;
    }
    return 0;
}

/* The number of bytes of the UTF-8 character at text. 0: there is none. */
static size_t character_bytes(const unsigned char *text)
{
    size_t bytes = text[0] < 0x80   ? 1
                   : text[0] < 0xc2 ? 0
                   : text[0] < 0xe0 ? 2
                   : text[0] < 0xf0 ? 3
                                    : 4;
    if (text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    return bytes;
}

char *printable(const char *text)
{
    char *safe = must_have(malloc(4 * strlen(text) + 1));
    char *end = safe;
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        size_t escaped = dangerous_bytes((const char *)c);
        size_t kept = escaped ? 0 : character_bytes(c);
        if (!escaped && !kept)
            escaped = 1;
        memcpy(end, c, kept);
        end += kept;
        c += kept;
        for (; escaped > 0; escaped--)
            end += sprintf(end, "\\x%02x", *c++);
    }
    *end = '\0';
    return safe;
}

int columns_of(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

void duration_text(int64_t ms, char text[DURATION_TEXT_SIZE])
{
    /* The clock of the server has gone back since. */
    if (ms < 0)
        ms = 0;
    long long s = ms / 1000;
    if (s < 10)
        snprintf(text, DURATION_TEXT_SIZE, "%lld.%llds", s, (long long)(ms % 1000) / 100);
    else if (s < 120)
        snprintf(text, DURATION_TEXT_SIZE, "%llds", s);
    else if (s < 7200)
        snprintf(text, DURATION_TEXT_SIZE, "%lldm%02llds", s / 60, s % 60);
    else if (s < 172800)
        snprintf(text, DURATION_TEXT_SIZE, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(text, DURATION_TEXT_SIZE, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

static char *process_text(const char *program, int64_t pid, const char *host)
{
    char text[600];
    snprintf(text, sizeof text, "%s[%lld]@%s", program, (long long)pid, host);
    return printable(text);
}

char *holder_text(const rowlock_grant *grant)
{
    return process_text(grant->program, grant->pid, grant->host);
}

char *waiter_text(const rowlock_waiter *waiter)
{
    return process_text(waiter->program, waiter->pid, waiter->host);
}

char *held_text(const rowlock_grant *grant)
{
    char text[1000];
    char left[DURATION_TEXT_SIZE];
    char *who = holder_text(grant);
    duration_text(grant->remaining_ms > 0 ? grant->remaining_ms : 0, left);
    snprintf(text, sizeof text, "held by %s, its lease lasts %s more%s%s", who, left,
             grant->note[0] ? ": " : "", grant->note);
    free(who);
    return printable(text);
}

void kind_text(int32_t permits, char text[KIND_TEXT_SIZE])
{
    if (permits > 0)
        snprintf(text, KIND_TEXT_SIZE, "%d permit%s", permits, permits == 1 ? "" : "s");
    else
        snprintf(text, KIND_TEXT_SIZE, "%s", permits == ROWLOCK_SHARED ? "shared" : "exclusive");
}

int64_t grant_age_ms(const rowlock_grant *grant)
{
    int64_t lease_ms = (grant->expires_us - grant->acquired_us) / 1000;
    int64_t age_ms = lease_ms - grant->remaining_ms;
    return age_ms > 0 ? age_ms : 0;
}
