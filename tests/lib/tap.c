/* SPDX-License-Identifier: MIT
 *
 * Counts checks and prints their lines; see tap.h. */
#include "tap.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024 };

static _Thread_local struct place {
    const char *file;
    int line;
} here;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int checks, failures;

/* TAP is a protocol of lines, and a name may contain any byte. */
static void flatten(char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\r' || *text == '#')
            *text = ' ';
}

struct held {
    struct held *next;
    struct place place;
    char *name, *difference;
    bool passed;
};
static _Thread_local struct {
    bool on, failed;
    struct held *first, **end;
} hold;

static void hold_back(bool passed, const char *name, const char *difference)
{
    struct held *held = malloc(sizeof *held);
    if (!held)
        abort();
    *held = (struct held){.place = here,
                          .name = strdup(name),
                          .difference = difference ? strdup(difference) : NULL,
                          .passed = passed};
    *hold.end = held;
    hold.end = &held->next;
    hold.failed |= !passed;
}

static void print(bool passed, const char *name, const char *difference, struct place place)
{
    pthread_mutex_lock(&guard);
    checks++;
    failures += !passed;
    printf("%s %d - %s\n", passed ? "ok" : "not ok", checks, name);
    if (!passed && place.file)
        printf("# %s:%d\n", place.file, place.line);
    fflush(stdout);
    if (!passed) {
        fprintf(stderr, "#   failed: %s (%s:%d)\n", name, place.file, place.line);
        if (difference)
            fprintf(stderr, "#   %s\n", difference);
        fflush(stderr);
    }
    pthread_mutex_unlock(&guard);
}

static bool report(bool passed, const char *format, va_list arguments, const char *difference)
{
    char name[LINE_MAX_BYTES];
    vsnprintf(name, sizeof name, format, arguments);
    flatten(name);
    if (hold.on)
        hold_back(passed, name, difference);
    else
        print(passed, name, difference, here);
    return passed;
}

void tap_here(const char *file, int line)
{
    here = (struct place){file, line};
}

void tap_hold(void)
{
    hold.on = true;
    hold.failed = false;
    hold.end = &hold.first;
}

bool tap_held_failed(void)
{
    return hold.failed;
}

static void end_hold(bool keep)
{
    hold.on = false;
    while (hold.first) {
        struct held *held = hold.first;
        hold.first = held->next;
        if (keep)
            print(held->passed, held->name, held->difference, held->place);
        free(held->name);
        free(held->difference);
        free(held);
    }
}

void tap_keep(void)
{
    end_hold(true);
}

void tap_drop(void)
{
    end_hold(false);
}

bool(tap_ok)(bool passed, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(passed, format, arguments, NULL);
    va_end(arguments);
    return passed;
}

bool(tap_is_int)(long long got, long long want, const char *format, ...)
{
    char difference[100];
    snprintf(difference, sizeof difference, "got %lld, wanted %lld", got, want);
    va_list arguments;
    va_start(arguments, format);
    report(got == want, format, arguments, difference);
    va_end(arguments);
    return got == want;
}

bool(tap_is_str)(const char *got, const char *want, const char *format, ...)
{
    char difference[LINE_MAX_BYTES];
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    snprintf(difference, sizeof difference, "got '%s', wanted '%s'", got ? got : "(NULL)",
             want ? want : "(NULL)");
    flatten(difference);
    va_list arguments;
    va_start(arguments, format);
    report(same, format, arguments, difference);
    va_end(arguments);
    return same;
}

void tap_skip(int count, const char *why)
{
    pthread_mutex_lock(&guard);
    while (count-- > 0)
        printf("ok %d # SKIP %s\n", ++checks, why);
    fflush(stdout);
    pthread_mutex_unlock(&guard);
}

void tap_note(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    flatten(line);
    pthread_mutex_lock(&guard);
    fprintf(stderr, "# %s\n", line);
    fflush(stderr);
    pthread_mutex_unlock(&guard);
}

int tap_skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    fflush(stdout);
    return EXIT_SUCCESS;
}

int tap_done(void)
{
    pthread_mutex_lock(&guard);
    printf("1..%d\n", checks);
    fflush(stdout);
    bool good = checks > 0 && failures == 0;
    if (checks == 0)
        fprintf(stderr, "# no check was made\n");
    else if (failures > 0)
        fprintf(stderr, "# %d of %d checks failed\n", failures, checks);
    pthread_mutex_unlock(&guard);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
