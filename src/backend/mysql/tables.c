/* SPDX-License-Identifier: MIT
 * Installing our tables and procedures. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

/* The procedures that are there with another body than ours, as objects.sql names them: "procedure
 * `x`". */
struct stale {
    char names[20 * 80];
    size_t length;
};

static int note_stale(void *context, const rowlock_value *cells, size_t count)
{
    enum { OBJECT, PROBLEM, MENDED, COLUMNS };
    struct stale *stale = context;
    if (count != COLUMNS || cells[MENDED].kind != ROWLOCK_INT || cells[MENDED].number != 1 ||
        cells[OBJECT].length >= sizeof stale->names - stale->length)
        return 0;
    memcpy(stale->names + stale->length, cells[OBJECT].text, cells[OBJECT].length);
    stale->length += cells[OBJECT].length;
    return 0;
}

static enum rlk_class find_stale(struct conn *c, struct rlk_call *call, struct stale *stale)
{
    rowlock_value schema = rowlock_text(c->texts->sql[RLK_STEP_SCHEMA]);
    *stale = (struct stale){.length = 0};
    return my_run_step(c, call, RLK_STEP_OBJECTS, &schema, note_stale, stale);
}

/* "`x`" of the first "`database`.`x`" in a statement. */
static void first_name(const char *statement, char *out, size_t cap)
{
    const char *name = strstr(statement, "`.`");
    snprintf(out, cap, "`%.*s`", name ? (int)strcspn(name + 3, "`") : 0, name ? name + 3 : "");
}

/* The statement that drops this, or NULL. */
static const char *drop_of(const struct conn *c, const char *name)
{
    for (const char *sql = c->texts->sql[RLK_STEP_DROP]; *sql; sql += rlk_statement_length(sql)) {
        char found[80];
        first_name(sql, found, sizeof found);
        if (strcmp(found, name) == 0)
            return sql;
    }
    return NULL;
}

/* One statement at a time: to send them together would need a setting that a borrowed connection
 * may not have. A procedure that is called between its drop and its creation is not there:
 * ESCHEMA. */
enum rlk_class my_install(void *conn, struct rlk_call *call)
{
    struct conn *c = conn;
    struct stale stale;
    enum rlk_class class = my_check_fit(c, call);
    if (class == RLK_DONE)
        class = find_stale(c, call, &stale);
    for (const char *sql = c->texts->sql[RLK_STEP_SCHEMA]; class == RLK_DONE && *sql;) {
        char name[80];
        size_t length = rlk_statement_length(sql);
        first_name(sql, name, sizeof name);
        const char *drop = strstr(stale.names, name) ? drop_of(c, name) : NULL;
        if (drop)
            class = my_send(c, call, drop, rlk_statement_length(drop));
        if (class == RLK_DONE)
            class = my_send(c, call, sql, length);
        sql += length;
    }
    return class;
}
