/* SPDX-License-Identifier: MIT
 * Names of results, and what an error says. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

const char *rowlock_result_name(int result)
{
    enum { LEAST = ROWLOCK_ESERVER, MOST = ROWLOCK_DONE };
#define NAME(result) [ROWLOCK_##result - LEAST] = "ROWLOCK_" #result
    static const char *const names[MOST - LEAST + 1] = {
        NAME(OK),           NAME(BUSY),      NAME(TIMEOUT),    NAME(LOST),     NAME(LAPSED),
        NAME(NONE),         NAME(CANCELLED), NAME(STALE),      NAME(CONFLICT), NAME(MISMATCH),
        NAME(DEADLOCK),     NAME(PENDING),   NAME(GONE),       NAME(EXISTS),   NAME(UNDONE),
        NAME(DONE),         NAME(VIOLATION), NAME(EUNCERTAIN), NAME(ECONN),    NAME(ESCHEMA),
        NAME(EINVAL),       NAME(ENOMEM),    NAME(EREADONLY),  NAME(EDENIED),  NAME(EMISUSE),
        NAME(EUNSUPPORTED), NAME(ESERVER),
    };
#undef NAME
    const char *name = result >= LEAST && result <= MOST ? names[result - LEAST] : NULL;
    return name ? name : "unknown result";
}

const char *rowlock_version(void)
{
#define TEXT_OF(x) #x
#define DOTTED(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
    return DOTTED(ROWLOCK_VERSION_MAJOR, ROWLOCK_VERSION_MINOR, ROWLOCK_VERSION_PATCH);
}

/* Each call of the library begins with this, and snprintf() is slow. */
void rlk_error_begin(rowlock_error *error, const char *verb, const char *name)
{
    const char *const parts[] = {verb, name ? " '" : "", name ? name : "", name ? "'" : ""};
    size_t used = 0;
    memset(error, 0, sizeof *error);
    error->size = sizeof *error;
    error->row = -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t room = sizeof error->action - 1 - used;
        size_t length = strnlen(parts[i], room);
        memcpy(error->action + used, parts[i], length);
        used += length;
    }
}

static void set_code(rowlock_error *error, int code)
{
    error->code = code;
    error->native = 0;
    error->sqlstate[0] = '\0';
    error->retryable = code == ROWLOCK_ECONN || code == ROWLOCK_ENOMEM || code == ROWLOCK_BUSY ||
                       code == ROWLOCK_TIMEOUT;
    error->transaction_over = 0;
    error->constraint = ROWLOCK_CONSTRAINT_NONE;
    error->answer_lost = 0;
    error->row = -1;
}

int rlk_error_vset(rowlock_error *error, int code, const char *format, va_list args)
{
    vsnprintf(error->text, sizeof error->text, format, args);
    set_code(error, code);
    return code;
}

void rlk_error_end(rowlock_error *error, int code)
{
    if (error->code == code)
        return;
    set_code(error, code);
    error->text[0] = '\0';
}

int rlk_error_set(rowlock_error *error, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rlk_error_vset(error, code, format, args);
    va_end(args);
    return code;
}

void rlk_error_copy(rowlock_error *out, const rowlock_error *in)
{
    if (!out || out->size < sizeof out->size)
        return;
    size_t size = out->size < sizeof *in ? out->size : sizeof *in;
    size_t callers = out->size;
    memcpy(out, in, size);
    out->size = callers;
}

int rlk_error_no_out(rowlock_error *err, const char *verb)
{
    rowlock_error why;
    rlk_error_begin(&why, verb, NULL);
    rlk_error_set(&why, ROWLOCK_EINVAL, "the place for the new handle is NULL");
    rlk_error_copy(err, &why);
    return ROWLOCK_EINVAL;
}
