/* SPDX-License-Identifier: MIT
 * The log goes to one callback of the caller. The library itself writes to no file. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    void (*log)(void *, rowlock_log_level, const char *);
    void *context;
    rowlock_log_level up_to;
} sink;

void rowlock_log_set(void (*log)(void *context, rowlock_log_level level, const char *line),
                     void *context, rowlock_log_level up_to)
{
    sink.log = log;
    sink.context = context;
    sink.up_to = up_to;
}

void rlk_log(rowlock_log_level level, const char *format, ...)
{
    if (!sink.log || level > sink.up_to)
        return;
    char line[900];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sink.log(sink.context, level, line);
}
