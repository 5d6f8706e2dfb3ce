/* SPDX-License-Identifier: MIT
 *
 * Words of the tests about the application's own tables; see tables.h. The promises about those are
 * in tests/rows/ and tests/lock/. */
#include "tables.h"

const char *const op_names[] = {"update", "touch", "expect", "insert", "remove"};

struct site site_open(const struct contract *c)
{
    return (struct site){.c = c, .db = must_open(c->url), .look = c->raw->open(c->url)};
}

struct site site_adopt(const struct contract *c)
{
    struct site s = {.c = c, .session = c->raw->open(c->url), .look = c->raw->open(c->url)};
    s.db = must_adopt(c->raw, s.session, NULL);
    return s;
}

void site_close(struct site *s)
{
    rowlock_db_close(s->db);
    if (s->session)
        s->c->raw->close(s->session);
    s->c->raw->close(s->look);
}

void site_run(const struct site *s, const char *format, ...)
{
    OWNED(text) char *sql = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&sql, format, arguments) < 0)
        abort();
    va_end(arguments);
    raw_run(s->c->raw, s->look, "%s", sql);
}

/* In the order in which they were made: a table may refer to an older one. */
static char made[30][40];
static int made_count;

void drop_site_tables(const struct contract *c)
{
    char ignored[200];
    OWNED(session) void *session = made_count > 0 ? c->raw->open(c->url) : NULL;
    while (made_count > 0)
        c->raw->run(session, textf("DROP TABLE IF EXISTS %s", made[--made_count]), ignored,
                    sizeof ignored);
}

void site_table(const struct site *s, const char *name, const char *columns)
{
    int known = 0;
    while (known < made_count && strcmp(made[known], name) != 0)
        known++;
    made_count += known == made_count;
    snprintf(made[known], sizeof made[known], "%s", name);
    site_run(s, "DROP TABLE IF EXISTS %s", name);
    site_run(s, "CREATE TABLE %s (%s)%s", name, columns, is_mysql(s->c) ? " ENGINE = InnoDB" : "");
}

bool site_finds(const struct site *s, const char *want, const char *what, const char *format, ...)
{
    char sql[1000], text[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    bool found = s->c->raw->ask(s->look, sql, text, sizeof text);
    return tap_is_str(found ? text : NULL, want, "%s", what);
}

rowlock_table *must_describe(const struct site *s, const struct about *about)
{
    rowlock_table *t = NULL;
    if (open_table(s->db, about, &t) != ROWLOCK_OK)
        raw_failed(about->name, why(s->db));
    return t;
}

rowlock_table *must_open_table(const struct site *s, const char *name, const char *const *columns)
{
    return must_describe(s, TABLE(.name = name, .key = NAMES("id"), .columns = columns));
}

int change_rows(rowlock_table *t, enum op op, rowlock_change *changes, size_t count,
                const rowlock_change_options *options)
{
    switch (op) {
    case UPDATE:
        return rowlock_update(t, changes, count, options);
    case TOUCH:
        return rowlock_touch(t, changes, count, options);
    case EXPECT:
        return rowlock_expect(t, changes, count, options);
    case INSERT:
        return rowlock_insert(t, changes, count, options);
    default:
        return rowlock_remove(t, changes, count, options);
    }
}

bool rows_say(const rowlock_change *changes, size_t count, const char *want, const char *what)
{
    bool with_versions = strpbrk(want, "0123456789") != NULL;
    char got[1000] = "", version[30] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof got; i++) {
        if (with_versions)
            snprintf(version, sizeof version, " %lld", (long long)changes[i].current);
        used +=
            (size_t)snprintf(got + used, sizeof got - used, "%s%s%s", i ? ", " : "",
                             rowlock_result_name(changes[i].result) + strlen("ROWLOCK_"), version);
    }
    return tap_is_str(got, want, "%s", what);
}

rowlock_change *few_from(struct few *few, int64_t id, int64_t version)
{
    for (int i = 0; i < COUNT(few->keys); i++) {
        few->keys[i] = rowlock_int(id + i);
        few->values[i] = rowlock_int(10 + i);
        few->changes[i] =
            (rowlock_change){.key = &few->keys[i], .values = &few->values[i], .version = version};
    }
    return few->changes;
}

void becomes(const struct site *s, rowlock_table *t, enum op op, rowlock_change change, int want,
             int64_t current, const char *what)
{
    change.result = -1000;
    change.current = -1000;
    int result = change_rows(t, op, &change, 1, NULL);
    is_result(s->db, result, want, "%s: %s", op_names[op], what);
    /* After a CONFLICT the change only says that it was not applied. */
    if (want < 0 || want == ROWLOCK_CONFLICT)
        return;
    tap_is_result(change.result, want, "the row says the same");
    tap_is_int(change.current, current, "with the version that it has now");
}

void row_becomes(const struct site *s, rowlock_table *t, enum op op, int64_t id,
                 const rowlock_value *values, int64_t version, int want, int64_t current,
                 const char *what)
{
    rowlock_value key = rowlock_int(id);
    becomes(s, t, op, (rowlock_change){.key = &key, .values = values, .version = version}, want,
            current, what);
}
