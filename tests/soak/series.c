/* SPDX-License-Identifier: MIT
 *
 * Samples of what must not grow, and the judgement: the second half of a run may not have more than
 * the first, but for some slack. PostgreSQL looks for tables to vacuum once a minute, and tables
 * grow meanwhile. So a run whose halves are shorter has more slack. */
#include "soak.h"

#include <dirent.h>
#include <math.h>

enum { SECONDS, PAIRS, TABLES, INDEXES, DEAD, LOG, RSS, FILES, COLUMNS };
static const struct column columns[COLUMNS] = {
    {"second", "second", 0},       {"acquires/s", "acquires_per_second", 0},
    {"tables MB", "tables_mb", 2}, {"indexes MB", "indexes_mb", 2},
    {"dead rows", "dead_rows", 0}, {"WAL MB", "wal_mb", 2},
    {"client MB", "client_mb", 1}, {"files", "files", 0},
};

/* The most of the second half may be this factor of the first half's, and so much more. */
static const struct limit {
    int column;
    double factor, slack;
    const char *what;
} limits[] = {
    {TABLES, 1.5, 4, "MB of tables"},  {INDEXES, 1.5, 4, "MB of indexes"},
    {DEAD, 2, 50000, "dead rows"},     {LOG, 2, 8, "MB of write-ahead log"},
    {RSS, 1.2, 8, "MB of the client"}, {FILES, 1, 1, "open files of the client"},
};

enum { FEWEST_SAMPLES = 6, SHORT_HALF_S = 70, SHORT_SLACK = 4 };

struct side {
    struct session *session;
    int64_t done;
    double last_s;
};

struct series {
    const struct site *site;
    struct side ours, bare;
    double began_s;
    /* of ours */
    double (*samples)[COLUMNS];
    int count, room;
};

struct series *series_open(const struct site *site)
{
    struct series *s = zeroed(1, sizeof *s);
    s->site = site;
    s->ours.session = hand_open(&site->ours, "observer");
    s->bare.session = hand_open(&site->theirs, "observer");
    s->began_s = s->ours.last_s = s->bare.last_s = clock_s();
    report_columns(columns, COLUMNS);
    return s;
}

void series_close(struct series *s)
{
    hand_close(s->ours.session);
    hand_close(s->bare.session);
    free(s->samples);
    free(s);
}

static double client_mb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        die("cannot read /proc/self/statm");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static double open_files(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    if (!all)
        die("cannot read /proc/self/fd");
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

static void sample_side(struct series *s, struct side *side, int64_t done, double *out)
{
    double now = clock_s();
    hand_do(side->session, "sizes");
    const struct value *values = side->session->values;
    bool has_server = s->site->hand->server_dir_env != NULL;
    for (int i = 0; i < COLUMNS; i++)
        out[i] = NAN;
    out[SECONDS] = now - s->began_s;
    out[PAIRS] = (double)(done - side->done) / (now - side->last_s);
    out[TABLES] = (double)values[NUMBER].number / 1e6;
    out[INDEXES] = has_server ? (double)values[STANDING].number / 1e6 : NAN;
    out[DEAD] = has_server ? (double)values[COUNT].number : NAN;
    out[LOG] = has_server ? NAN : (double)hand_written(side->session) / 1e6;
    side->done = done;
    side->last_s = now;
}

static double *new_sample(struct series *s)
{
    if (s->count == s->room) {
        s->room = 2 * s->room + 100;
        s->samples = realloc(s->samples, (size_t)s->room * sizeof *s->samples);
        if (!s->samples)
            die("out of memory");
    }
    return s->samples[s->count++];
}

void series_sample(struct series *s)
{
    double *sample = new_sample(s), theirs[COLUMNS];
    sample_side(s, &s->ours, work_ours(), sample);
    sample[RSS] = client_mb();
    sample[FILES] = open_files();
    sample_side(s, &s->bare, work_bare(), theirs);
    report_row("soak", "rowlock", 0, columns, sample, COLUMNS);
    report_row("soak", "bare INSERT + DELETE", 0, columns, theirs, COLUMNS);
}

static double most(const struct series *s, int column, int from, int to)
{
    double most = 0;
    for (int i = from; i < to; i++)
        if (s->samples[i][column] > most)
            most = s->samples[i][column];
    return most;
}

bool series_judge(const struct series *s)
{
    bool bounded = true;
    double slack =
        s->count && s->samples[s->count - 1][SECONDS] < 2 * SHORT_HALF_S ? SHORT_SLACK : 1;
    if (s->count < FEWEST_SAMPLES)
        report_line("    too few samples to judge\n");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0] && s->count >= FEWEST_SAMPLES; i++) {
        const struct limit *limit = &limits[i];
        double before = most(s, limit->column, 0, s->count / 2);
        double after = most(s, limit->column, s->count / 2, s->count);
        if (after <= before * limit->factor + limit->slack * slack)
            continue;
        bounded = false;
        report_line("    FAILED: %.1f %s in the second half, after %.1f in the first\n", after,
                    limit->what, before);
    }
    return bounded;
}
