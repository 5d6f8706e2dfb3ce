/* SPDX-License-Identifier: MIT
 *
 * metrics: what is in the tables, for Prometheus. The library counts; this file knows the metrics.
 */
#include "cli/print/print.h"

#include <stdlib.h>
#include <string.h>

static const char *match, *textfile;

static const struct option_row options[] = {
    OPTION("match", 0, "GLOB", "also for each name like GLOB; * any text, ? a character", TEXT,
           match),
    OPTION("textfile", 0, "FILE", "write FILE, for the node exporter, as a whole", TEXT, textfile),
    {.name = NULL},
};

/* What one database has answered. */
struct reading {
    /* 0: there is one database. */
    int member;
    int64_t up;
    /* UNSET: not known. */
    int64_t worst;
    rowlock_figures figures;
    rowlock_name_figures *names;
    size_t name_count;
};

/* ---------------------------------------------------------------- reading */

static int keep_name(void *context, const rowlock_name_figures *figures)
{
    struct reading *r = context;
    r->names = must_have(realloc(r->names, (r->name_count + 1) * sizeof *r->names));
    r->names[r->name_count++] = *figures;
    return 0;
}

static int ask(struct cli *cli, struct reading *r)
{
    rowlock_verdict worst;
    int result = rowlock_check(cli->db, NULL, NULL, &worst);
    r->worst = result == ROWLOCK_OK ? (int64_t)worst : UNSET;
    if (result == ROWLOCK_OK)
        result = rowlock_measure(cli->db, &r->figures);
    if (result == ROWLOCK_OK && match)
        result = rowlock_measure_names(cli->db, match, keep_name, r);
    r->up = result == ROWLOCK_OK;
    return reported(cli, result);
}

static int read_databases(struct cli *cli, struct reading *readings, int count)
{
    int worst = EXIT_FINE;
    for (int i = 0; i < count; i++) {
        struct reading *r = &readings[i];
        *r = (struct reading){.worst = UNSET, .figures = ROWLOCK_FIGURES_INIT};
        r->member = cli->member = general.speaks_for = count > 1 ? i + 1 : 0;
        int status = connect_database(cli, NULL);
        if (status == EXIT_FINE)
            status = cli->no_file ? EXIT_UNFIT : ask(cli, r);
        disconnect_database(cli);
        worst = status > worst ? status : worst;
    }
    general.speaks_for = 0;
    return worst;
}

/* ---------------------------------------------------------------- the metrics */

#define OF(member) offsetof(struct reading, figures.member)

/* The samples of one metric stand together. */
static const struct metric rows[] = {
    {"rowlock_up", "1: the tables could be read. 0: they could not.", "",
     offsetof(struct reading, up), COUNT},
    {"rowlock_check_worst", "The worst finding of rowlock check. 0: fine. 1: warning. 2: bad.", "",
     offsetof(struct reading, worst), COUNT},
    {"rowlock_schema_version", "The version of the tables.", "", OF(version), COUNT},
    {"rowlock_locks",
     "Grants in the table. State expired: the lease is over, and the row waits for a sweep.",
     "kind=\"exclusive\",state=\"held\"", OF(exclusive), COUNT},
    {"rowlock_locks", "", "kind=\"shared\",state=\"held\"", OF(shared), COUNT},
    {"rowlock_locks", "", "kind=\"counted\",state=\"held\"", OF(counted), COUNT},
    {"rowlock_locks", "", "kind=\"exclusive\",state=\"expired\"", OF(expired_exclusive), COUNT},
    {"rowlock_locks", "", "kind=\"shared\",state=\"expired\"", OF(expired_shared), COUNT},
    {"rowlock_locks", "", "kind=\"counted\",state=\"expired\"", OF(expired_counted), COUNT},
    {"rowlock_longest_hold_seconds", "How long the oldest grant whose lease runs has been held.",
     "", OF(longest_hold_ms), MILLISECONDS},
    {"rowlock_waiters", "Clients that wait for a lock.", "", OF(waiters), COUNT},
    {"rowlock_oldest_waiter_seconds", "How long the waiter who came first has waited.", "",
     OF(longest_wait_ms), MILLISECONDS},
    {"rowlock_expired_tickets", "Tickets of waiters that are gone.", "", OF(expired_tickets),
     COUNT},
    {"rowlock_names", "Names that have a token counter.", "", OF(names), COUNT},
    {"rowlock_once_keys",
     "Once keys. State expired: claimed, not completed, and free to be claimed again.",
     "state=\"claimed\"", OF(once_claimed), COUNT},
    {"rowlock_once_keys", "", "state=\"expired\"", OF(once_expired), COUNT},
    {"rowlock_once_keys", "", "state=\"done\"", OF(once_done), COUNT},
    {"rowlock_token_floor", "The token that counters of new names start above.", "",
     OF(token_floor), COUNT},
    {"rowlock_last_sweep_timestamp_seconds",
     "When a sweep last ended, by the database's clock. Missing: never.", "", OF(swept_us),
     MICROSECONDS},
};

#undef OF
#define OF(member) offsetof(rowlock_name_figures, member)

/* With --match: for each name. */
static const struct metric name_rows[] = {
    {"rowlock_lock_held", "Grants of the name whose leases run.", "", OF(holders), COUNT},
    {"rowlock_lock_held_seconds", "How long the oldest of them has been held. 0: free.", "",
     OF(held_ms), MILLISECONDS},
    {"rowlock_lock_remaining_seconds", "What is left of the lease that ends first. 0: free.", "",
     OF(remaining_ms), MILLISECONDS},
    {"rowlock_lock_lapsed_seconds",
     "How long a lease had run out when it was last renewed: the longest. 0: none had.", "",
     OF(lapsed_ms), MILLISECONDS},
    {"rowlock_lock_waiters", "Clients that wait for the name.", "", OF(waiters), COUNT},
    {"rowlock_lock_oldest_waiter_seconds", "How long the waiter who came first has waited.", "",
     OF(waited_ms), MILLISECONDS},
    {"rowlock_lock_grants_total",
     "The highest token of the name. Each grant adds one, and so does break.", "", OF(token),
     COUNT},
};

#undef OF
#define ROWS(rows) (sizeof(rows) / sizeof(rows)[0])

static int64_t number_at(const void *from, const struct metric *row)
{
    return *(const int64_t *)(const void *)((const char *)from + row->offset);
}

/* What never happened has no time. As 0 it would be drawn in 1970. Whether the tables could be read
 * is known, and so is what the check found before. */
static bool has_sample(const struct reading *r, const struct metric *row)
{
    int64_t number = number_at(r, row);
    if (row->offset == offsetof(struct reading, up) ||
        row->offset == offsetof(struct reading, worst))
        return number != UNSET;
    return r->up && (row->unit != MICROSECONDS || number != 0);
}

/* The samples of one metric, of each database and, for name_rows, of each name. */
static void print_row(FILE *out, const struct metric *row, bool of_names, const struct reading *r,
                      int count)
{
    metrics_begin(out, row);
    for (const struct reading *end = r + count; r < end; r++) {
        if (!of_names && has_sample(r, row))
            metrics_sample(out, row, r->member, NULL, number_at(r, row));
        for (size_t n = 0; of_names && r->up && n < r->name_count; n++)
            metrics_sample(out, row, r->member, r->names[n].name, number_at(&r->names[n], row));
    }
}

/* A file is written after a failure too, so that an alert can see it. A mistake of the caller, such
 * as a URL that cannot be, is told by the exit status too. */
static int give(const struct reading *readings, int count, int status)
{
    char *text = NULL;
    FILE *out = open_text(&text);
    for (size_t i = 0; i < ROWS(rows); i++)
        print_row(out, &rows[i], false, readings, count);
    for (size_t i = 0; match && i < ROWS(name_rows); i++)
        print_row(out, &name_rows[i], true, readings, count);
    closed_text(out, &text);
    if (textfile) {
        int written = metrics_write(textfile, text);
        status = written == EXIT_FINE && status == EXIT_USAGE ? status : written;
    } else {
        fputs(text, stdout);
    }
    free(text);
    return status;
}

static int run_metrics(struct cli *cli)
{
    struct reading readings[URLS_MOST];
    check_urls(cli);
    if (match && (!*match || strlen(match) > 255))
        usage_error(cli, "--match: the pattern must have 1 to 255 bytes");
    int count = is_quorum(cli) ? general.url_count : 1;
    int status = give(readings, count, read_databases(cli, readings, count));
    for (int i = 0; i < count; i++)
        free(readings[i].names);
    return status;
}

const struct command metrics_command = COMMAND(
    "metrics", "", "print figures for Prometheus",
    "One line for each number: locks, waiters, once keys, the last sweep, the worst finding of\n"
    "check. rowlock_up is 0 if the tables could not be read. With several URLs the label member\n"
    "says which one it is.\n"
    "- --match: also held, remaining, waiters, grants and so on, with the label name.\n"
    "- --textfile: the exit status is 0 if FILE is written, also while the database is away.\n"
    "  Without it the exit status is 0 only if the tables could be read.\n",
    options, 0, 0, false, QUORUM, run_metrics);
