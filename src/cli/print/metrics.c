/* SPDX-License-Identifier: MIT
 *
 * Texts in Prometheus's format 0.0.4, and files of them.
 */
#include "cli/print/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- texts */

void metrics_begin(FILE *out, const struct metric *metric)
{
    if (*metric->help)
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
                strstr(metric->name, "_total") ? "counter" : "gauge");
}

/* A user may read this on a terminal, so what that could obey becomes \xNN, as in a list. */
static void print_escaped(FILE *out, const char *text)
{
    for (size_t escaped = 0; *text; text++) {
        if (escaped == 0)
            escaped = dangerous_bytes(text);
        if (*text == '\n')
            fputs("\\n", out);
        else if (escaped > 0)
            fprintf(out, "\\\\x%02x", (unsigned char)*text);
        else if (*text == '\\' || *text == '"')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
        escaped -= escaped > 0;
    }
}

static void print_value(FILE *out, int64_t value, enum unit unit)
{
    int64_t second = unit == MILLISECONDS ? 1000 : 1000000;
    if (unit == COUNT)
        fprintf(out, " %lld\n", (long long)value);
    else
        fprintf(out, " %lld.%0*lld\n", (long long)(value / second), unit == MILLISECONDS ? 3 : 6,
                (long long)(value % second));
}

void metrics_sample(FILE *out, const struct metric *metric, int member, const char *name,
                    int64_t value)
{
    const char *before = "{";
    fputs(metric->name, out);
    if (member) {
        fprintf(out, "%smember=\"%d\"", before, member);
        before = ",";
    }
    if (name) {
        fprintf(out, "%sname=\"", before);
        print_escaped(out, name);
        fputc('"', out);
        before = ",";
    }
    if (*metric->labels)
        fprintf(out, "%s%s", before, metric->labels);
    if (member || name || *metric->labels)
        fputc('}', out);
    print_value(out, value, metric->unit);
}

/* ---------------------------------------------------------------- files */

/* All of it is on the disk then, or the reason why not. */
static int fill_file(int fd, const char *text, size_t length)
{
    int reason = fchmod(fd, 0644) == 0 ? 0 : errno;
    while (length > 0 && reason == 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno != EINTR)
            reason = errno;
        text += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    if (reason == 0 && fsync(fd) != 0)
        reason = errno;
    return reason;
}

bool lock_file(int fd, int tries)
{
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (--tries <= 0)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return true;
}

/* Locks an open file. False: another process has it, or the name belongs to another file now. Only
 * the process that has the lock may give the name away. */
static bool lock_named(int fd, const char *name)
{
    struct stat ours, named;
    return lock_file(fd, 1) && fstat(fd, &ours) == 0 && lstat(name, &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* A writer that was killed has left the file. Returns 0, also if a writer still has it. */
static int remove_left(const char *name)
{
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int reason = fd < 0 ? errno : 0;
    if (fd >= 0 && lock_named(fd, name) && unlink(name) != 0)
        reason = errno;
    if (fd >= 0)
        close(fd);
    return reason == ENOENT ? 0 : reason;
}

/* Makes the file of that name, and locks it. Another writer has it for a moment only, unless it is
 * frozen. Returns 0 or the reason. */
static int open_locked(const char *name, int *fd)
{
    enum { TRIES = 100 };
    int reason = 0;
    for (int tries = 0; tries < TRIES && reason == 0; tries++) {
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (*fd >= 0 && lock_named(*fd, name))
            return 0;
        if (*fd < 0 && errno != EEXIST)
            return errno;
        if (*fd >= 0)
            close(*fd);
        reason = remove_left(name);
        if (reason == 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return reason ? reason : EWOULDBLOCK;
}

/* The lock ends with the last step, when the name is free again. */
static int replace(const char *path, const char *beside, const char *text, size_t length)
{
    int fd;
    int reason = open_locked(beside, &fd);
    if (reason != 0)
        return reason;
    reason = fill_file(fd, text, length);
    if (reason == 0 && rename(beside, path) != 0)
        reason = errno;
    if (reason != 0)
        unlink(beside);
    close(fd);
    return reason;
}

int metrics_write(const char *path, const char *text, size_t length)
{
    struct stat there;
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        complain("write '%s': it is there, and not a regular file", path);
        return EXIT_OUTPUT;
    }
    /* The new text is written beside the file first, always under the same name. The collector does
     * not read that name: it reads *.prom. Long names may share one. */
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    char *beside = new_text("%.*s.%.240s.new", folder, path, path + folder);
    int reason = replace(path, beside, text, length);
    if (reason == EWOULDBLOCK)
        complain(
            "write '%s': another process is writing it, and has not finished: it has '%s' open",
            path, beside);
    else if (reason != 0)
        complain("write '%s': %s", path, strerror(reason));
    free(beside);
    return reason == 0 ? EXIT_FINE : EXIT_OUTPUT;
}
