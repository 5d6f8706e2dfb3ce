/* SPDX-License-Identifier: MIT
 *
 * Three members of a quorum; see members.h. Checks are not here. */
#include "members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENT_MS = 1500, PATIENCE_MS = 30000 };

static void make_one(struct members *m, int i, const char *url)
{
    char own[40], *through = NULL;
    if (strncmp(url, "sqlite", 6) == 0) {
        snprintf(m->prefix[i], sizeof m->prefix[i], "rowlock_");
        if (asprintf(&m->straight[i], "%s.%d", url, i + 1) < 0)
            abort();
        m->urls[i] = m->straight[i];
    } else {
        snprintf(m->prefix[i], sizeof m->prefix[i], "member%d_", i + 1);
        snprintf(own, sizeof own, "rowlock_prefix=%s", m->prefix[i]);
        m->straight[i] = url_with(url, own);
        if (!(m->proxy[i] = faultproxy_start(m->straight[i], &through)))
            raw_failed("no proxy", url);
        m->urls[i] = through;
    }
    must_install(m->straight[i]);
}

void members_make(struct members *m, const struct raw *raw, const char *url)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    *m = (struct members){.raw = raw};
    for (int i = 0; i < MEMBERS; i++)
        make_one(m, i, url);
    if (rowlock_quorum_join((const char *const *)m->straight, MEMBERS, NULL, &err) != ROWLOCK_OK)
        raw_failed("join a quorum", err.text);
}

void members_drop(struct members *m)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (m->proxy[i]) {
            faultproxy_stop(m->proxy[i]);
            free((char *)m->urls[i]);
        }
        free(m->straight[i]);
    }
}

static rowlock_db_options impatient(void)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = options.connect_timeout_ms = options.reconnect_ms =
        slow_ms(STATEMENT_MS);
    return options;
}

/* A busy machine may miss so short a time limit. */
rowlock_db *members_open(const struct members *m)
{
    rowlock_db_options options = impatient();
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    int result = ROWLOCK_ECONN;
    for (int64_t end = clock_ms() + PATIENCE_MS; result == ROWLOCK_ECONN && clock_ms() < end;)
        result = rowlock_db_open_quorum(m->urls, MEMBERS, &options, &db, &err);
    if (result != ROWLOCK_OK)
        raw_failed("open a quorum", err.text);
    return db;
}

rowlock_keeper *members_keeper(const struct members *m)
{
    rowlock_db_options options = impatient();
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_keeper *keeper = NULL;
    int result = ROWLOCK_ECONN;
    for (int64_t end = clock_ms() + PATIENCE_MS; result == ROWLOCK_ECONN && clock_ms() < end;)
        result = rowlock_keeper_open_quorum(m->urls, MEMBERS, &options, &keeper, &err);
    if (result != ROWLOCK_OK)
        raw_failed("open a keeper of a quorum", err.text);
    return keeper;
}

/* The client library does not know our parameter. */
static char *plain_url(const struct members *m, int member)
{
    char *url = strdup(m->straight[member]);
    char *own = strstr(url, "rowlock_prefix=");
    if (own)
        own[-1] = '\0';
    return url;
}

static void write_sql(char sql[300], const struct members *m, int member, const char *format,
                      long long number)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(sql, 300, format, m->prefix[member], number);
#pragma GCC diagnostic pop
}

long long members_ask(const struct members *m, int member, const char *format)
{
    char sql[300];
    char *url = plain_url(m, member);
    write_sql(sql, m, member, format, 0);
    long long number = db_int(m->raw, url, "%s", sql);
    free(url);
    return number;
}

void members_change(const struct members *m, int member, const char *format, long long number)
{
    char sql[300];
    char *url = plain_url(m, member);
    write_sql(sql, m, member, format, number);
    db_exec(m->raw, url, "%s", sql);
    free(url);
}

int rows_in(const struct members *m, int member)
{
    return (int)members_ask(m, member, "SELECT count(*) FROM %slocks");
}

int rows_in_all(const struct members *m)
{
    int count = 0;
    for (int i = 0; i < MEMBERS; i++)
        count += rows_in(m, i);
    return count;
}

bool rows_become(const struct members *m, int a, int b, int c)
{
    for (int64_t end = clock_ms() + slow_ms(PATIENCE_MS); clock_ms() < end; sleep_ms(5))
        if (rows_in(m, 0) == a && rows_in(m, 1) == b && rows_in(m, 2) == c)
            return true;
    return false;
}
