/* SPDX-License-Identifier: MIT
 *
 * Texts for people, safe on a terminal: messages, errors, figures. And exit statuses.
 */
#include "cli/print/print.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void *must_have(void *memory)
{
    if (!memory) {
        fputs("rowlock: out of memory\n", stderr);
        exit(EXIT_INTERNAL);
    }
    return memory;
}

static char *formatted(const char *format, va_list arguments)
{
    char *text = NULL;
    return must_have(vasprintf(&text, format, arguments) < 0 ? NULL : text);
}

char *new_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    return text;
}

/* The size is not needed: the texts have no zero byte in them. */
FILE *open_text(char **text)
{
    static _Thread_local size_t size;
    return must_have(open_memstream(text, &size));
}

char *closed_text(FILE *file, char **text)
{
    return must_have(fclose(file) == 0 ? *text : NULL);
}

/* ---------------------------------------------------------------- what a terminal may obey */

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
    size_t bytes = text[0] < 0x80                     ? 1
                   : text[0] < 0xc2 || text[0] > 0xf4 ? 0
                   : text[0] < 0xe0                   ? 2
                   : text[0] < 0xf0                   ? 3
                                                      : 4;
    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

char *printable(const char *text)
{
    char *safe = NULL;
    FILE *out = open_text(&safe);
    while (*text) {
        size_t escaped = dangerous_bytes(text);
        size_t kept = escaped ? 0 : character_bytes((const unsigned char *)text);
        if (!escaped && !kept)
            escaped = 1;
        fwrite(text, 1, kept, out);
        for (text += kept; escaped > 0; escaped--)
            fprintf(out, "\\x%02x", (unsigned char)*text++);
    }
    return closed_text(out, &safe);
}

int columns_of(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

uint64_t hash_of(uint64_t sum, const char *bytes, size_t length)
{
    for (; length > 0; length--)
        sum = (sum ^ (unsigned char)*bytes++) * UINT64_C(0x100000001b3);
    return sum;
}

/* ---------------------------------------------------------------- figures and people */

struct text duration_text(int64_t ms)
{
    struct text text;
    /* Below 0: the clock of the server has gone back since. */
    long long tenths = ms < 0 ? 0 : ms / 100;
    long long s = tenths / 10;
    if (s < 10)
        snprintf(text.text, sizeof text.text, "%lld.%llds", s, tenths % 10);
    else if (s < 120)
        snprintf(text.text, sizeof text.text, "%llds", s);
    else if (s < 7200)
        snprintf(text.text, sizeof text.text, "%lldm%02llds", s / 60, s % 60);
    else if (s < 172800)
        snprintf(text.text, sizeof text.text, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(text.text, sizeof text.text, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return text;
}

struct text kind_text(int32_t permits)
{
    struct text text = {.text = "exclusive"};
    if (permits > 0)
        snprintf(text.text, sizeof text.text, "%d permit%s", permits, permits == 1 ? "" : "s");
    else if (permits == ROWLOCK_SHARED)
        snprintf(text.text, sizeof text.text, "shared");
    return text;
}

struct text lease_text(int64_t remaining_ms)
{
    struct text text;
    if (remaining_ms >= 0)
        return duration_text(remaining_ms);
    snprintf(text.text, sizeof text.text, "expired %.40s ago", duration_text(-remaining_ms).text);
    return text;
}

struct text time_text(int64_t us)
{
    struct text text;
    char day[40] = "";
    time_t seconds = (time_t)(us / 1000000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts))
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text.text, sizeof text.text, "%s.%06dZ", day, (int)(us % 1000000));
    return text;
}

struct text process_text(const char *program, int64_t pid, const char *host)
{
    struct text text;
    snprintf(text.text, sizeof text.text, "%s[%lld]@%s", program, (long long)pid, host);
    return text;
}

struct text holder_text(const rowlock_grant *grant)
{
    return process_text(grant->program, grant->pid, grant->host);
}

struct text held_text(const rowlock_grant *grant)
{
    struct text text;
    snprintf(text.text, sizeof text.text, "held by %.600s, its lease lasts %.40s more%s%s",
             holder_text(grant).text, duration_text(grant->remaining_ms).text,
             grant->note[0] ? ": " : "", grant->note);
    return text;
}

int64_t grant_age_ms(const rowlock_grant *grant)
{
    int64_t lease_ms = (grant->expires_us - grant->acquired_us) / 1000;
    int64_t age_ms = lease_ms - grant->remaining_ms;
    return age_ms > 0 ? age_ms : 0;
}

/* ---------------------------------------------------------------- messages and statuses */

/* One call writes the line, so that lines of two processes do not mix. */
void speak(enum voice voice, const char *format, ...)
{
    va_list arguments;
    char member[24] = "";
    struct pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (voice == COMPLAIN && general.hurries && poll(&file, 1, 0) == 0)
        return;
    if (voice != SAY && general.speaks_for)
        snprintf(member, sizeof member, "member %d: ", general.speaks_for);
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    char *safe = printable(text);
    fprintf(voice == COMPLAIN ? stderr : stdout, "%s%s%s\n", voice == COMPLAIN ? "rowlock: " : "",
            member, safe);
    free(safe);
    free(text);
}

void tell(const struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    complain("%s %s: %s", cli->command->name, cli->title, text);
    free(text);
}

bool talkative(void)
{
    return general.verbose || isatty(STDERR_FILENO);
}

int status_of(int result)
{
    enum { LEAST = ROWLOCK_ESERVER, MOST = ROWLOCK_DONE };
#define OF(result, status) [ROWLOCK_##result - LEAST] = EXIT_##status
    static const unsigned char statuses[MOST - LEAST + 1] = {
        OF(NONE, NOTHING),
        OF(BUSY, NOT_ACQUIRED),
        OF(TIMEOUT, NOT_ACQUIRED),
        OF(CONFLICT, NOT_ACQUIRED),
        OF(MISMATCH, NOT_ACQUIRED),
        OF(DEADLOCK, NOT_ACQUIRED),
        OF(LOST, LOST),
        OF(LAPSED, LOST),
        OF(STALE, LOST),
        OF(EUNCERTAIN, UNREACHABLE),
        OF(ECONN, UNREACHABLE),
        OF(EINVAL, USAGE),
        OF(EDENIED, DENIED),
        OF(ESCHEMA, UNFIT),
        OF(EREADONLY, UNFIT),
        OF(EUNSUPPORTED, UNFIT),
    };
#undef OF
    int status = result >= LEAST && result <= MOST ? statuses[result - LEAST] : 0;
    return status || result == ROWLOCK_OK ? status : EXIT_INTERNAL;
}

int status_of_error(int result, const rowlock_error *error)
{
    if (result == ROWLOCK_ESERVER && error->retryable)
        return EXIT_NOT_ACQUIRED;
    return result == ROWLOCK_EREADONLY && error->retryable ? EXIT_UNREACHABLE : status_of(result);
}

int report_error(int result, const rowlock_error *error)
{
    if (result != ROWLOCK_OK)
        complain("%s: %s", error->action, error->text);
    return status_of_error(result, error);
}

int reported(const struct cli *cli, int result)
{
    rowlock_error error = *rowlock_db_error(cli->db);
    if (result == ROWLOCK_OK || error.code == result)
        return report_error(result, &error);
    complain("%s: %s", cli->command->name, rowlock_result_name(result));
    return status_of_error(result, &error);
}

int finish_output(int status)
{
    struct pollfd file = {.fd = STDOUT_FILENO};
    bool unread = poll(&file, 1, 0) > 0 && (file.revents & POLLERR);
    bool failed = ferror(stdout) != 0;
    /* 0: the reason of an earlier failure is not known any more. */
    int reason = fflush(stdout) != 0 && !failed ? errno : 0;
    /* Closing is part of writing: some file systems report only then that the disk is full. */
    if (fclose(stdout) != 0 && !failed && !reason)
        reason = errno;
    if (!failed && !reason)
        return status;
    if ((unread || reason == EPIPE) && die_of_pipe_later())
        return EXIT_SIGNAL + SIGPIPE;
    complain("write to standard output: %s",
             reason ? strerror(reason) : "not all of it could be written");
    return status == EXIT_FINE ? EXIT_OUTPUT : status;
}
