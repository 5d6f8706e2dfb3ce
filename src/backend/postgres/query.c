/* SPDX-License-Identifier: MIT
 *
 * Runs one statement with its values, and reads its cells. Decides which statements are
 * prepared. */
#include "driver.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- values */

enum {
    /* the protocol's limit */
    MOST_VALUES = 65535,
    /* the longest message to the server, and so the longest value */
    LARGEST = 0x3fffffff,
    /* enough for the values of most steps */
    SMALL = 1024
};

/* The values as texts: pointers first, then the texts. */
struct written {
    const char **values;
    /* NULL: they are in small */
    void *memory;
    const char *small[SMALL / sizeof(const char *)];
};

static bool has_text(const rowlock_value *value)
{
    return value->kind == ROWLOCK_TEXT || value->kind == ROWLOCK_DECIMAL ||
           value->kind == ROWLOCK_TIME;
}

/* The size of its text, including the zero byte at the end. */
static size_t size_of(const rowlock_value *value)
{
    size_t length = value->length < LARGEST ? value->length : LARGEST;
    if (has_text(value))
        return length + 1;
    if (value->kind == ROWLOCK_BYTES)
        return 2 * length + sizeof "\\x";
    return value->kind == ROWLOCK_INT    ? RLK_INT_TEXT
           : value->kind == ROWLOCK_REAL ? RLK_REAL_TEXT
                                         : 0;
}

static const char *write_value(const rowlock_value *value, char *out)
{
    switch (value->kind) {
    case ROWLOCK_NULL:
        return NULL;
    case ROWLOCK_BOOL:
        return value->number ? "t" : "f";
    case ROWLOCK_INT:
        return rlk_write_int(value->number, out);
    case ROWLOCK_REAL:
        rlk_write_real(value->real, out);
        return out;
    case ROWLOCK_BYTES:
        memcpy(out, "\\x", 2);
        *rlk_write_hex(value->text, value->length, out + 2) = '\0';
        return out;
    default:
        if (value->length > 0)
            memcpy(out, value->text, value->length);
        out[value->length] = '\0';
        return out;
    }
}

/* Why a value cannot be sent. NULL: it can. */
static const char *fault_of(const rowlock_value *value)
{
    if (has_text(value) && value->length > 0 && memchr(value->text, '\0', value->length))
        return "has a zero byte, which a text in PostgreSQL cannot have";
    if (value->kind == ROWLOCK_REAL && !isfinite(value->real))
        return "is not a finite number";
    return NULL;
}

static enum rlk_class check_values(struct rlk_call *call, const struct rlk_query *query,
                                   size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < query->count; i++) {
        const char *fault = fault_of(&query->values[i]);
        *size += size_of(&query->values[i]);
        if (!fault && *size > LARGEST)
            fault = "makes the statement larger than 1 GB, the limit of PostgreSQL";
        if (!fault && i >= MOST_VALUES)
            fault = "is above the limit of PostgreSQL: 65535 values in a statement";
        if (fault)
            return rlk_refuse(call, RLK_INVALID, "value %zu %s", i + 1, fault);
    }
    return RLK_DONE;
}

static enum rlk_class write_values(struct rlk_call *call, const struct rlk_query *query,
                                   struct written *out)
{
    size_t size;
    enum rlk_class class = check_values(call, query, &size);
    if (class != RLK_DONE)
        return class;
    size += query->count * sizeof *out->values;
    out->memory = size > sizeof out->small ? rlk_alloc(size) : NULL;
    out->values = out->memory ? out->memory : out->small;
    if (size > sizeof out->small && !out->memory)
        return RLK_NOMEM;
    char *at = (char *)(out->values + query->count);
    for (size_t i = 0; i < query->count; i++) {
        out->values[i] = write_value(&query->values[i], at);
        at += size_of(&query->values[i]);
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

/* Reads digits that 64 bits can hold. Anything else is false. */
static bool read_int(const char *text, int64_t *out)
{
    bool negative = *text == '-';
    uint64_t number = 0;
    const char *at = text + negative;
    do {
        unsigned digit = (unsigned)*at - '0';
        if (digit > 9 || number > INT64_MAX / 10)
            return false;
        number = 10 * number + digit;
    } while (*++at);
    *out = (int64_t)(negative ? -number : number);
    return number <= (uint64_t)INT64_MAX + negative;
}

static rowlock_value read_real(const char *text)
{
    double real = rlk_read_real(text);
    return isfinite(real) ? rowlock_real(real) : rowlock_decimal(text);
}

/* false: no memory to decode bytes */
static bool read_cell(const PGresult *r, int row, int column, rowlock_kind kind, rowlock_value *out)
{
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
    int columns = PQnfields(r);
    bool more = true;
    if (columns > MOST_COLUMNS)
        return rlk_refuse(call, RLK_MISFIT,
                          "the server answered with more columns than it can have");
    for (int i = 0; i < columns; i++)
        p->kinds[i] = (unsigned char)kind_of(PQftype(r, i));
    for (int row = 0; more && row < PQntuples(r); row++) {
        int read = 0;
        while (read < columns &&
               read_cell(r, row, read, (rowlock_kind)p->kinds[read], &p->cells[read]))
            read++;
        bool whole = read == columns;
        if (whole)
            more = query->each(query->context, p->cells, (size_t)columns) == 0;
        free_bytes(p->cells, read);
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

/* After its table was altered, a prepared statement may fail: its result has another shape, or it
 * refuses a value that fits today. So it is prepared again. A changed shape is certain
 * (RLK_UNSUPPORTED). It is a conflict, also inside a transaction, and the next try succeeds. */
static enum rlk_class doubt_named(uint64_t *id, const struct rlk_call *call, enum rlk_class class)
{
    bool unfit = class == RLK_VIOLATION && call->constraint == ROWLOCK_CONSTRAINT_VALUE;
    if (class != RLK_INVALID && class != RLK_UNSUPPORTED && !unfit)
        return class;
    *id = 0;
    return !call->inside || class == RLK_UNSUPPORTED ? RLK_CONTENTION : class;
}

static enum rlk_class run_named(struct conn *p, struct rlk_call *call, uint64_t id,
                                struct packet *s, PGresult **out)
{
    unsigned index = rlk_find_prepared(&p->named, id);
    uint64_t *named = &p->named.id[index];
    bool before = *named == id;
    char name[32], drop[64];
    snprintf(name, sizeof name, "rowlock_query_%u", index);
    snprintf(drop, sizeof drop, "DEALLOCATE %s", name);
    s->id = name;
    s->drop = p->on_server[index] && !before ? drop : NULL;
    s->prepared = before;
    enum rlk_class class = pg_class_of_theirs(call, pg_exchange(p, call, s, out));
    if (before)
        return doubt_named(named, call, class);
    if (s->prepared || s->dropped) {
        *named = s->prepared ? id : 0;
        p->on_server[index] = s->prepared;
    }
    return class;
}

enum { PLAN_US = 1000000 };

/* A statement that was planned for small tables would read them whole when they have grown. */
static bool is_stale(struct conn *p, enum rlk_step step)
{
    int64_t now_us = rlk_now_us();
    if (!(rlk_steps[step].is & RLK_GROWS) || now_us - p->prepared_us[step] < PLAN_US)
        return false;
    p->prepared_us[step] = now_us;
    return true;
}

/* If the server refuses to prepare one step (RLK_REFUSED), it will refuse all. After another error,
 * such as missing tables or a cancel, the next use tries again. If its tables were altered, the
 * answer of a prepared step may have another shape (RLK_UNSUPPORTED). Then nothing was done, and
 * the next use prepares it again. */
static enum rlk_class run_step(struct conn *p, struct rlk_call *call, enum rlk_step step,
                               struct packet *s, PGresult **out)
{
    char name[40], drop[64];
    snprintf(name, sizeof name, "rowlock_%s", rlk_steps[step].name);
    snprintf(drop, sizeof drop, "DEALLOCATE %s", name);
    s->anew = rlk_steps[step].is & RLK_WIDE;
    s->id = p->whole || s->anew ? NULL : name;
    s->prepared = p->prepared[step];
    if (s->prepared && (p->outdated[step] || is_stale(p, step))) {
        s->drop = drop;
        s->prepared = false;
    }
    bool used = s->prepared;
    enum rlk_class class = pg_exchange(p, call, s, out);
    p->prepared[step] = s->prepared || (s->drop && !s->dropped);
    p->outdated[step] = used ? class == RLK_UNSUPPORTED : p->outdated[step] && !s->dropped;
    if (used && class == RLK_UNSUPPORTED)
        return RLK_CONTENTION;
    if (s->id && !s->prepared && class == RLK_REFUSED)
        p->whole = true;
    return class;
}

static enum rlk_class run_any(struct conn *p, struct rlk_call *call, const struct rlk_query *query,
                              const char *const *values, PGresult **out)
{
    struct packet s = {.text = query->sql, .count = (int)query->count, .values = values};
    if (query->step != RLK_STEP_NONE)
        return run_step(p, call, query->step, &s, out);
    if (p->direct && query->id)
        return run_named(p, call, query->id, &s, out);
    return pg_class_of_theirs(call, pg_exchange(p, call, &s, out));
}

/* Memory is allocated before anything is sent. */
enum rlk_class pg_run(struct conn *p, struct rlk_call *call, struct rlk_query *query)
{
    struct written written;
    PGresult *r = NULL;
    query->changed = 0;
    if (query->each && !p->cells)
        p->cells = rlk_alloc(MOST_COLUMNS * sizeof *p->cells);
    if (query->each && !p->cells)
        return RLK_NOMEM;
    if (query->own)
        *query->own = rowlock_text(pg_channel(p));
    enum rlk_class class = write_values(call, query, &written);
    if (class != RLK_DONE)
        return class;
    pg_forget_wakeups(p);
    class = run_any(p, call, query, written.values, &r);
    rlk_free(written.memory);
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
