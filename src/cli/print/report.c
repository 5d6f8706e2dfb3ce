/* SPDX-License-Identifier: MIT
 *
 * Messages, errors, and exit statuses.
 */
#include "cli/print/print.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool never_wait;

void complain_without_waiting(void)
{
    never_wait = true;
}

static char member[24];

void speak_for_member(int number)
{
    member[0] = '\0';
    if (number)
        snprintf(member, sizeof member, "member %d: ", number);
}

/* One call writes the line, so that lines of two processes do not mix. */
void speak(enum voice voice, const char *format, ...)
{
    va_list arguments;
    struct pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (voice == COMPLAIN && never_wait && poll(&file, 1, 0) == 0)
        return;
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    char *safe = printable(text);
    fprintf(voice == COMPLAIN ? stderr : stdout, "%s%s%s\n", voice == COMPLAIN ? "rowlock: " : "",
            voice == SAY ? "" : member, safe);
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
    switch (result) {
    case ROWLOCK_OK:
        return EXIT_FINE;
    case ROWLOCK_NONE:
        return EXIT_NOTHING;
    case ROWLOCK_BUSY:
    case ROWLOCK_TIMEOUT:
    case ROWLOCK_CONFLICT:
    case ROWLOCK_MISMATCH:
    case ROWLOCK_DEADLOCK:
        return EXIT_NOT_ACQUIRED;
    case ROWLOCK_LOST:
    case ROWLOCK_LAPSED:
    case ROWLOCK_STALE:
        return EXIT_LOST;
    case ROWLOCK_EUNCERTAIN:
    case ROWLOCK_ECONN:
        return EXIT_UNREACHABLE;
    case ROWLOCK_EINVAL:
        return EXIT_USAGE;
    case ROWLOCK_EDENIED:
        return EXIT_DENIED;
    case ROWLOCK_ESCHEMA:
    case ROWLOCK_EREADONLY:
    case ROWLOCK_EUNSUPPORTED:
        return EXIT_UNFIT;
    default:
        return EXIT_INTERNAL;
    }
}

rowlock_error last_error(const struct cli *cli)
{
    return *rowlock_db_error(cli->db);
}

int status_of_error(int result, const rowlock_error *error)
{
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
    rowlock_error error = last_error(cli);
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
