/* SPDX-License-Identifier: MIT
 *
 * run --metrics: a file of metrics for each job. Two runs of one job may end at the same moment. So
 * the folder is locked while the old file is read and the new one is put in its place.
 */
#include "cli/run/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t begin_ms;

void metrics_run_begins(const struct cli *cli)
{
    begin_ms = now_ms();
    if (asked.metrics && !*asked.metrics)
        usage_error(cli, "--metrics: the folder's name is empty");
}

/* ---------------------------------------------------------------- the metrics */

enum { LAST_START, LAST_SUCCESS, EXIT_CODE, TOOK, WAIT, RUNS, LOST, METRICS };

static const struct metric about[METRICS] = {
    [LAST_START] = {"rowlock_job_last_start_timestamp_seconds",
                    "When the last run of the job started on this host.", "", 0, MILLISECONDS},
    [LAST_SUCCESS] = {"rowlock_job_last_success_timestamp_seconds",
                      "When a run last ended with 0 on this host. Missing: never.", "", 0,
                      MILLISECONDS},
    [EXIT_CODE] = {"rowlock_job_exit_code", "The exit status of rowlock run, as a shell shows it.",
                   "", 0, COUNT},
    [TOOK] = {"rowlock_job_duration_seconds", "How long the last run held its locks.", "", 0,
              MILLISECONDS},
    [WAIT] = {"rowlock_job_wait_seconds", "How long the last run waited for its locks.", "", 0,
              MILLISECONDS},
    [RUNS] = {"rowlock_job_runs_total", "Runs on this host.", "", 0, COUNT},
    [LOST] = {"rowlock_job_lost_total",
              "Runs whose locks were lost, or whose job was ended because of them.", "", 0, COUNT},
};

static char *text_of(const char *name, const int64_t *values, size_t *length)
{
    char *text = NULL;
    FILE *out = open_text(&text, length);
    for (int i = 0; i < METRICS; i++) {
        metrics_begin(out, &about[i]);
        if (i != LAST_SUCCESS || values[i] != 0)
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

/* Ours have some kilobytes. */
enum { FILE_MOST = 1000000 };

static bool is_ours(int fd)
{
    struct stat there;
    return fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_size <= FILE_MOST;
}

/* All values stay 0 without a file. They also do if the file is not ours: a FIFO, or too large. */
static void read_file(const char *path, int64_t *values)
{
    char *line = NULL;
    size_t room = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !is_ours(fd)) {
        complain("'%s' is no file of this command, so its counters begin at 0", path);
        close(fd);
        return;
    }
    FILE *file = fd < 0 ? NULL : must_have(fdopen(fd, "r"));
    while (file && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        read_line(line, values);
    }
    free(line);
    if (file)
        fclose(file);
}

/* ---------------------------------------------------------------- the file */

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

/* Another run holds it for a moment only, unless it is frozen. Without it a counter may miss a
 * run. */
static int lock_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        lock_file(fd, 50);
    return fd;
}

/* Another run may have started later and ended sooner. Then its figures stay. A time to come was
 * written when the host's clock was wrong. */
static void add_run(int64_t *values, int64_t start_ms, int status, bool lost)
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
    values[WAIT] = start_ms - begin_ms;
}

void metrics_run_ends(const struct cli *cli, int64_t start_ms, int status, bool lost)
{
    const char *folder = asked.metrics;
    int64_t values[METRICS] = {0};
    if (!folder)
        return;
    size_t length = 0;
    char *name = lines_of_locks(cli, false);
    char *path = path_of(folder, name);
    int fd = lock_folder(folder);
    read_file(path, values);
    add_run(values, start_ms, status, lost);
    char *text = text_of(name, values, &length);
    metrics_write(path, text, length);
    if (fd >= 0)
        close(fd);
    free(text);
    free(path);
    free(name);
}
