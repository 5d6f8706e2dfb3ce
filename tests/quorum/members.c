/* SPDX-License-Identifier: MIT
 *
 * Three members of a quorum; see members.h. Checks are not here. */
#include "members.h"

#include "core/ask.h"

enum { PATIENCE_MS = 60000 };

static void make_one(struct members *m, int i, const char *url)
{
    char *through = NULL;
    if (strncmp(url, "sqlite", 6) == 0) {
        snprintf(m->prefix[i], sizeof m->prefix[i], "rowlock_");
        if (asprintf(&m->straight[i], "%s.%d", url, i + 1) < 0)
            abort();
        m->urls[i] = m->straight[i];
    } else {
        snprintf(m->prefix[i], sizeof m->prefix[i], "member%d_", i + 1);
        m->straight[i] = url_with(url, textf("rowlock_prefix=%s", m->prefix[i]));
        if (!(m->proxy[i] = faultproxy_start(m->straight[i], &through)))
            raw_failed("no proxy", url);
        m->urls[i] = through;
    }
}

void members_vote(const char *const *urls)
{
    static const char *const mark[MEMBERS] = {"mark 1", "mark 2", "mark 3"};
    for (int64_t i = 0; i < MEMBERS; i++) {
        OWNED(db) rowlock_db *db = must_open(urls[i]);
        if (rowlock_install(db) != ROWLOCK_OK)
            raw_failed("install", why(db));
        for (int64_t k = 0; k < MEMBERS; k++) {
            struct rlk_ask ask = {.step = RLK_STEP_MEMBER,
                                  .in = {rowlock_int(k + 1), rowlock_int(MEMBERS),
                                         rowlock_text("by hand"), rowlock_int(i == k),
                                         rowlock_text(mark[k])}};
            if (rlk_ask(db, &ask) != ROWLOCK_OK)
                raw_failed("write down a member", why(db));
        }
    }
}

void members_make(struct members *m, const struct raw *raw, const char *url)
{
    *m = (struct members){.raw = raw};
    for (int i = 0; i < MEMBERS; i++)
        make_one(m, i, url);
    members_vote((const char *const *)m->straight);
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

/* A busy machine may miss a short time limit. */
static void open_within(const struct members *m, int64_t ms, rowlock_db **db,
                        rowlock_keeper **keeper)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = ROWLOCK_ECONN;
    rowlock_db_options options =
        *OPTIONS(db, .statement_timeout_ms = ms, .connect_timeout_ms = ms, .reconnect_ms = ms);
    for (int64_t end = clock_ms() + PATIENCE_MS; result == ROWLOCK_ECONN && clock_ms() < end;)
        result = db ? rowlock_db_open(url_list(m->urls, MEMBERS).text, &options, db, &err)
                    : open_keeper_at(url_list(m->urls, MEMBERS).text, &options, keeper, &err);
    if (result != ROWLOCK_OK)
        raw_failed("open a quorum", err.text);
}

rowlock_db *members_open_within(const struct members *m, int64_t ms)
{
    rowlock_db *db = NULL;
    open_within(m, ms, &db, NULL);
    return db;
}

rowlock_db *members_open(const struct members *m)
{
    return members_open_within(m, PATIENCE_MS);
}

rowlock_keeper *members_keeper(const struct members *m, int64_t ms)
{
    rowlock_keeper *keeper = NULL;
    open_within(m, ms, NULL, &keeper);
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

static char *sql_of(const struct members *m, int member, const char *format, long long number)
{
    char *sql = NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (asprintf(&sql, format, m->prefix[member], number) < 0)
        abort();
#pragma GCC diagnostic pop
    return sql;
}

long long members_ask(const struct members *m, int member, const char *format)
{
    OWNED(text) char *url = plain_url(m, member), *sql = sql_of(m, member, format, 0);
    return db_int(m->raw, url, "%s", sql);
}

void members_change(const struct members *m, int member, const char *format, long long number)
{
    OWNED(text) char *url = plain_url(m, member), *sql = sql_of(m, member, format, number);
    db_exec(m->raw, url, "%s", sql);
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
    return EVENTUALLY(rows_in(m, 0) == a && rows_in(m, 1) == b && rows_in(m, 2) == c);
}
