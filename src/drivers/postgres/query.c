/* SPDX-License-Identifier: MIT
 *
 * Runs one statement with its values, and reads its cells. Decides which statements are
 * prepared. */
#include "driver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

enum {
    /* the protocol's limit */
    MOST_VALUES = 65535,
    /* the longest message to the server, and so the longest value */
    LARGEST = 0x3fffffff,
    /* more room than this is freed after each statement */
    USUAL = 65536
};

static bool has_text(const rowlock_value *value)
{
    return value->kind == ROWLOCK_TEXT || value->kind == ROWLOCK_DECIMAL ||
           value->kind == ROWLOCK_TIME;
}

/* Why a value cannot be sent. NULL: it can. */
static const char *fault_of(const rowlock_value *value, size_t index, size_t before)
{
    bool text = has_text(value), bytes = value->kind == ROWLOCK_BYTES;
    size_t length = !text && !bytes ? 0 : value->length < LARGEST ? value->length : LARGEST;
    if (text && length > 0 && memchr(value->text, '\0', length))
        return "has a zero byte, which a text in PostgreSQL cannot have";
    if (before + (bytes ? 2 * length : length) >= LARGEST)
        return "makes the statement larger than 1 GB, the limit of PostgreSQL";
    if (index >= MOST_VALUES)
        return "is above the limit of PostgreSQL: 65535 values in a statement";
    return NULL;
}

/* Each text ends with a zero byte. */
static enum rlk_class write_values(struct conn *p, struct rlk_call *call,
                                   const struct rlk_query *query)
{
    p->written.length = 0;
    for (size_t i = 0; i < query->count; i++) {
        const char *fault = fault_of(&query->values[i], i, p->written.length);
        if (fault)
            return rlk_refuse(call, RLK_INVALID, "value %zu %s", i + 1, fault);
        rlk_buffer_value(&p->written, &query->values[i]);
        rlk_buffer_add(&p->written, "", 1);
    }
    const char *at = p->written.text;
    const char **values = rlk_room_for(&p->values, query->count * sizeof *values);
    if (p->written.no_memory || !values)
        return RLK_NOMEM;
    for (size_t i = 0; i < query->count; i++) {
        values[i] = query->values[i].kind == ROWLOCK_NULL ? NULL : at;
        at += strlen(at) + 1;
    }
    return RLK_DONE;
}

/* ---- cells */

/* By type number. The numbers are the same in all versions of the server. All other types are
 * text. */
static const unsigned char kinds[] = {
    [16] = ROWLOCK_BOOL,      [17] = ROWLOCK_BYTES, /* bytea */
    [20] = ROWLOCK_INT,       [21] = ROWLOCK_INT,    [23] = ROWLOCK_INT,
    [26] = ROWLOCK_INT, /* oid */
    [700] = ROWLOCK_REAL,     [701] = ROWLOCK_REAL, /* float4, float8 */
    [1082] = ROWLOCK_TIME,    [1083] = ROWLOCK_TIME, /* date, time */
    [1114] = ROWLOCK_TIME,    [1184] = ROWLOCK_TIME, [1266] = ROWLOCK_TIME, /* timestamps, timetz */
    [1700] = ROWLOCK_DECIMAL, /* numeric */
};

static rowlock_kind kind_of(Oid type)
{
    return type < sizeof kinds && kinds[type] ? (rowlock_kind)kinds[type] : ROWLOCK_TEXT;
}

/* false: the text is not a number that 64 bits can hold */
static bool read_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end > text && *end == '\0' && errno == 0;
}

/* If memory was missing, the text is given as a decimal. */
static rowlock_value read_real(const char *text)
{
    double real = rlk_read_real(text);
    bool endless = strcmp(text, "NaN") == 0 || strstr(text, "Infinity");
    return isfinite(real) || endless ? rowlock_real(real) : rowlock_decimal(text);
}

/* false: no memory to decode bytes */
static bool read_cell(const PGresult *r, int row, int column, rowlock_value *out)
{
    rowlock_kind kind = kind_of(PQftype(r, column));
    const char *text = PQgetvalue(r, row, column);
    size_t length = (size_t)PQgetlength(r, row, column);
    int64_t number;
    if (length == 0 && PQgetisnull(r, row, column))
        *out = rowlock_null();
    else if (kind == ROWLOCK_INT)
        *out = read_int(text, &number) ? rowlock_int(number) : rowlock_text(text);
    else if (kind == ROWLOCK_BOOL)
        *out = rowlock_bool(text[0] == 't');
    else if (kind == ROWLOCK_REAL)
        *out = read_real(text);
    else
        *out = rowlock_textn(kind, text, length);
    if (out->kind == ROWLOCK_BYTES)
        out->text = (char *)PQunescapeBytea((const unsigned char *)text, &out->length);
    return out->text || out->kind != ROWLOCK_BYTES;
}

static void free_bytes(rowlock_value *cells, int count)
{
    for (int i = 0; i < count; i++)
        if (cells[i].kind == ROWLOCK_BYTES)
            PQfreemem((void *)cells[i].text);
}

/* Out of memory here is like a lost answer: what the statement did cannot be reported. */
static enum rlk_class give_cells(struct conn *p, struct rlk_call *call, const PGresult *r,
                                 const struct rlk_query *query)
{
    rowlock_value *cells = p->cells.memory;
    int columns = PQnfields(r);
    bool more = true;
    if (columns > MOST_COLUMNS)
        return rlk_refuse(call, RLK_MISFIT,
                          "the server answered with more columns than it can have");
    for (int row = 0; more && row < PQntuples(r); row++) {
        int read = 0;
        while (read < columns && read_cell(r, row, read, &cells[read]))
            read++;
        bool whole = read == columns;
        if (whole)
            more = query->each(query->context, cells, (size_t)columns) == 0;
        free_bytes(cells, read);
        if (!whole)
            return rlk_refuse(call, RLK_UNCERTAIN, "out of memory");
    }
    return RLK_DONE;
}

/* No statement of ours changes more than INT32_MAX rows. */
static enum rlk_class give_answer(struct conn *p, struct rlk_call *call, PGresult *r,
                                  struct rlk_query *query)
{
    int64_t changed = 0;
    bool counted = read_int(PQcmdTuples(r), &changed);
    query->changed = !counted || changed < 0 ? 0 : changed > INT32_MAX ? INT32_MAX : changed;
    query->counted = PQnfields(r) == 0;
    return query->each ? give_cells(p, call, r, query) : RLK_DONE;
}

/* ---- statements that are prepared */

enum { PLAN_US = 1000000 };

/* A statement that was planned for small tables would read them whole when they have grown. */
static bool is_stale(struct prepared *kept, enum rlk_step step)
{
    int64_t now_us = rlk_now_us();
    if (!(rlk_steps[step].is & RLK_GROWS) || now_us - kept->since_us < PLAN_US)
        return false;
    kept->since_us = now_us;
    return true;
}

/* After its table was altered, a prepared statement may fail: its result has another shape, or it
 * refuses a value that fits today. So it is prepared again. A changed shape is certain
 * (RLK_UNSUPPORTED), and nothing was done. It is a conflict, also inside a transaction, and the
 * next try succeeds. A step of ours refuses no value. */
static enum rlk_class doubt(struct prepared *kept, const struct rlk_call *call, bool theirs,
                            enum rlk_class class)
{
    bool unfit = class == RLK_INVALID ||
                 (class == RLK_VIOLATION && call->constraint == ROWLOCK_CONSTRAINT_VALUE);
    if (class != RLK_UNSUPPORTED && !(theirs && unfit))
        return class;
    kept->current = false;
    return !call->inside || class == RLK_UNSUPPORTED ? RLK_CONTENTION : class;
}

/* If the server refuses to prepare one step (RLK_REFUSED), it will refuse all. After another error,
 * such as missing tables or a cancel, the next use tries again. */
static enum rlk_class run_prepared(struct conn *p, struct rlk_call *call,
                                   const struct rlk_query *query, struct packet *s, PGresult **out)
{
    bool theirs = query->step == RLK_STEP_NONE, same;
    unsigned place = rlk_find_place(&p->places, query, &same);
    struct prepared *kept = &p->prepared[place];
    char name[40], drop[64];
    if (theirs)
        snprintf(name, sizeof name, "rowlock_query_%u", place - RLK_STEP_COUNT);
    else
        snprintf(name, sizeof name, "rowlock_%s", rlk_steps[query->step].name);
    snprintf(drop, sizeof drop, "DEALLOCATE %s", name);
    kept->current = kept->current && same && !is_stale(kept, query->step);
    s->id = name;
    s->drop = kept->exists && !kept->current ? drop : NULL;
    s->prepared = kept->current;
    enum rlk_class class = pg_exchange(p, call, s, out);
    if (theirs)
        class = pg_class_of_theirs(call, class);
    if (kept->current)
        return doubt(kept, call, theirs, class);
    if (s->prepared || s->dropped)
        kept->exists = kept->current = s->prepared;
    if (!theirs && !s->prepared && class == RLK_REFUSED)
        p->whole = true;
    return class;
}

static enum rlk_class run_any(struct conn *p, struct rlk_call *call, const struct rlk_query *query,
                              PGresult **out)
{
    struct packet s = {.text = query->sql, .count = (int)query->count, .values = p->values.memory};
    bool theirs = query->step == RLK_STEP_NONE;
    s.anew = rlk_steps[query->step].is & RLK_WIDE;
    if (!p->whole && !s.anew && (!theirs || query->id))
        return run_prepared(p, call, query, &s, out);
    enum rlk_class class = pg_exchange(p, call, &s, out);
    return theirs ? pg_class_of_theirs(call, class) : class;
}

/* Memory is allocated before anything is sent. */
enum rlk_class pg_run(struct conn *p, struct rlk_call *call, struct rlk_query *query)
{
    PGresult *r = NULL;
    query->changed = 0;
    if (query->each && !rlk_room_for(&p->cells, MOST_COLUMNS * sizeof(rowlock_value)))
        return RLK_NOMEM;
    if (query->own)
        *query->own = rowlock_text(pg_channel(p));
    enum rlk_class class = write_values(p, call, query);
    if (class == RLK_DONE) {
        pg_forget_wakeups(p);
        class = run_any(p, call, query, &r);
    }
    if (p->written.no_memory || p->written.room > USUAL)
        rlk_buffer_clear(&p->written);
    if (class == RLK_DONE)
        class = give_answer(p, call, r, query);
    PQclear(r);
    return class;
}

enum rlk_class pg_query(void *conn, struct rlk_call *call, struct rlk_query *query)
{
    struct conn *p = conn;
    enum rlk_class class = pg_check_usable(p, call);
    return class == RLK_DONE ? pg_run(p, call, query) : class;
}
