/* SPDX-License-Identifier: MIT
 *
 * Texts in Prometheus's format 0.0.4, and files of them. And run --metrics: a file for each job.
 */
#include "cli/run/run.h"

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

static const struct timespec twenty_ms = {.tv_nsec = 20000000};

/* All of it is on the disk then, or the reason why not. */
static int fill_file(int fd, const char *text)
{
    int reason = fchmod(fd, 0644) == 0 ? 0 : errno;
    while (*text && reason == 0) {
        ssize_t written = write(fd, text, strlen(text));
        if (written < 0 && errno != EINTR)
            reason = errno;
        text += written > 0 ? written : 0;
    }
    if (reason == 0 && fsync(fd) != 0)
        reason = errno;
    return reason;
}

/* Locks an open file. False: another process has it, or the name belongs to another file now. Only
 * the process that has the lock may give the name away. */
static bool lock_named(int fd, const char *name)
{
    struct stat ours, named;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &ours) == 0 && lstat(name, &named) == 0 &&
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
            nanosleep(&twenty_ms, NULL);
    }
    return reason ? reason : EWOULDBLOCK;
}

/* The lock ends with the last step, when the name is free again. */
static int replace(const char *path, const char *beside, const char *text)
{
    int fd;
    int reason = open_locked(beside, &fd);
    if (reason != 0)
        return reason;
    reason = fill_file(fd, text);
    if (reason == 0 && rename(beside, path) != 0)
        reason = errno;
    if (reason != 0)
        unlink(beside);
    close(fd);
    return reason;
}

int metrics_write(const char *path, const char *text)
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
    int reason = replace(path, beside, text);
    if (reason == EWOULDBLOCK)
        complain(
            "write '%s': another process is writing it, and has not finished: it has '%s' open",
            path, beside);
    else if (reason != 0)
        complain("write '%s': %s", path, strerror(reason));
    free(beside);
    return reason == 0 ? EXIT_FINE : EXIT_OUTPUT;
}

/* ---------------------------------------------------------------- the metrics of a job */

enum { LAST_START, LAST_SUCCESS, EXIT_CODE, TOOK, WAIT, RUNS, LOST, PERIOD, METRICS };

#define JOB(index, name, unit, help) [index] = {"rowlock_job_" name, help, "", 0, unit}

static const struct metric about[METRICS] = {
    JOB(LAST_START, "last_start_timestamp_seconds", MILLISECONDS,
        "When the last run of the job started on this host."),
    JOB(LAST_SUCCESS, "last_success_timestamp_seconds", MILLISECONDS,
        "When a run last ended with 0 on this host. Missing: never."),
    JOB(EXIT_CODE, "exit_code", COUNT, "The exit status of rowlock run, as a shell shows it."),
    JOB(TOOK, "duration_seconds", MILLISECONDS, "How long the last run held its locks."),
    JOB(WAIT, "wait_seconds", MILLISECONDS, "How long the last run waited for its locks."),
    JOB(RUNS, "runs_total", COUNT, "Runs on this host."),
    JOB(LOST, "lost_total", COUNT,
        "Runs whose locks were lost, or whose job was ended because of them."),
    JOB(PERIOD, "period_seconds", MILLISECONDS, "The period of --every. Missing: there is none."),
};

static char *text_of(const char *name, const int64_t *values)
{
    char *text = NULL;
    FILE *out = open_text(&text);
    for (int i = 0; i < METRICS; i++) {
        metrics_begin(out, &about[i]);
        if ((i != LAST_SUCCESS && i != PERIOD) || values[i] != 0)
            metrics_sample(out, &about[i], 0, name, values[i]);
    }
    return closed_text(out, &text);
}

/* In milliseconds, if the metric has them. The file may have been written by anyone. */
static int64_t value_of(const char *text, enum unit unit)
{
    char *end;
    int64_t part = 0, whole = within(strtoll(text, &end, 10), 0, INT64_C(1000000000000000));
    if (unit == COUNT)
        return whole;
    if (*end == '.')
        parse_number(end + 1, 0, 999, &part);
    return whole * 1000 + part;
}

static void read_line(char *line, int64_t *values)
{
    char *value = strrchr(line, ' ');
    line[strcspn(line, "{")] = '\0';
    for (int i = 0; value && i < METRICS; i++)
        if (strcmp(line, about[i].name) == 0)
            values[i] = value_of(value + 1, about[i].unit);
}

/* All values stay 0 without a file. They also do if the file is not ours: a FIFO, or too large. */
static void read_file(const char *path, int64_t *values)
{
    /* Ours have some kilobytes. */
    enum { MOST = 1000000 };
    struct stat there;
    char *line = NULL;
    size_t room = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    bool ours = fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_size <= MOST;
    if (!ours)
        complain("'%s' is no file of this command, so its counters begin at 0", path);
    FILE *file = must_have(fdopen(fd, "r"));
    while (ours && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        read_line(line, values);
    }
    free(line);
    fclose(file);
}

/* A name has any bytes, and a file's name has at most 255. What had to be changed gets a hash of
 * the whole name. No other name has a ~ in its file's name. */
static char *path_of(const char *folder, const char *name)
{
    enum { LONGEST = 200 };
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    bool fits = strspn(name, safe) == strlen(name) && strlen(name) <= LONGEST;
    char hash[20] = "", file[LONGEST + 1] = "";
    snprintf(file, sizeof file, "%s", name);
    for (int i = 0; file[i]; i++)
        if (!strchr(safe, file[i]))
            file[i] = '_';
    if (!fits)
        snprintf(hash, sizeof hash, "~%016llx",
                 (unsigned long long)hash_of(HASH_BEGIN, name, strlen(name)));
    return new_text("%s/rowlock_%s%s.prom", folder, file, hash);
}

/* Another run may have started later and ended sooner. Then its figures stay. A time to come was
 * written when the host's clock was wrong. */
static void add_run(int64_t *values, int64_t wait_ms, int64_t start_ms, int status, bool lost)
{
    int64_t end_ms = wall_clock_us() / 1000, duration_ms = now_ms() - start_ms;
    for (int i = LAST_START; i <= LAST_SUCCESS; i++)
        values[i] = values[i] > end_ms ? 0 : values[i];
    values[RUNS]++;
    values[LOST] += lost;
    if (status == EXIT_FINE)
        values[LAST_SUCCESS] = end_ms;
    if (end_ms - duration_ms < values[LAST_START])
        return;
    values[LAST_START] = end_ms - duration_ms;
    values[EXIT_CODE] = status;
    values[TOOK] = duration_ms;
    values[PERIOD] = asked.every_ms;
    values[WAIT] = wait_ms;
}

void metrics_run_ends(const struct cli *cli, int64_t start_ms, int status, bool lost)
{
    const char *folder = asked.metrics;
    int64_t values[METRICS] = {0};
    if (!folder)
        return;
    char *name = lines_of_locks(cli, false);
    char *path = path_of(folder, name);
    /* Two runs of one job may end at the same moment. So the folder is locked while the file is
     * read and replaced. Another run holds it for a moment only, unless it is frozen. Without it a
     * counter may miss a run. */
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int tries = 1; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && tries < 50; tries++)
        nanosleep(&twenty_ms, NULL);
    read_file(path, values);
    add_run(values, start_ms - cli->begin_ms, start_ms, status, lost);
    char *text = text_of(name, values);
    metrics_write(path, text);
    if (fd >= 0)
        close(fd);
    free(text);
    free(path);
    free(name);
}
