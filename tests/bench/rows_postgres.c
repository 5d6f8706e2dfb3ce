/* SPDX-License-Identifier: MIT
 *
 * Version updates as one would write them by hand with libpq: prepared statements, binary parameters, and a
 * batch as one UPDATE … FROM unnest of arrays.
 */
#include "bench.h"

#include <libpq-fe.h>

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INT8_OID = 20, TEXT_OID = 25, INT8S_OID = 1016, TEXTS_OID = 1009 };
enum { ARRAY_CAP = 20 + BATCH_ROWS * (4 + NOTE_CAP), AT_ONCE = 100 };

struct session {
    const struct hand *hand;
    PGconn *conn;
    char table[200];
    bool prepared;
    char arrays[4][ARRAY_CAP];
};

static PGresult *check(struct session *s, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die("PostgreSQL: %s", PQerrorMessage(s->conn));
    return result;
}

static char *with_table(const struct session *s, const char *sql)
{
    char *text = NULL;
    const char *at = strchr(sql, '?');
    if (asprintf(&text, "%.*s%s%s", at ? (int)(at - sql) : (int)strlen(sql), sql,
                 at ? s->table : "", at ? at + 1 : "") < 0)
        die("out of memory");
    return text;
}

static void run(void *session, const char *sql)
{
    struct session *s = session;
    char *text = with_table(s, sql);
    PQclear(check(s, PQexec(s->conn, text)));
    free(text);
}

static void prepare(struct session *s, const char *id, const char *sql)
{
    char *text = with_table(s, sql);
    PQclear(check(s, PQprepare(s->conn, id, text, 0, NULL)));
    free(text);
}

static void *open_session(const struct hand *hand, const struct place *place, const char *table)
{
    struct session *s = calloc(1, sizeof *s);
    void *conn = NULL;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.schema = place->schema;
    if (!s)
        die("out of memory");
    rowlock_db_close(hand->adopt(place, &options, &conn));
    s->hand = hand;
    s->conn = conn;
    snprintf(s->table, sizeof s->table, "%s.%s", place->schema, table);
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    s->hand->hang_up(s->conn);
    free(s);
}

/* ---- batches */

/* When the table is there. */
static void prepare_all(struct session *s)
{
    if (s->prepared)
        return;
    s->prepared = true;
    prepare(s, "row",
            "UPDATE ? SET amount = $3::bigint, note = $4::text, version = version + 1"
            " WHERE id = $1::bigint AND version = $2::bigint");
    prepare(s, "set",
            "UPDATE ? AS t SET amount = v.amount, note = v.note, version = t.version + 1"
            " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])"
            " AS v (id, version, amount, note)"
            " WHERE t.id = v.id AND t.version = v.version RETURNING t.id, t.version");
    prepare(s, "insert",
            "INSERT INTO ? (id, amount, note, version)"
            " SELECT v.*, 1 FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS v"
            " ON CONFLICT (id) DO NOTHING");
    prepare(s, "read", "SELECT amount, version FROM ? WHERE id = 1");
    prepare(s, "lock", "SELECT amount, version FROM ? WHERE id = 1 FOR UPDATE");
    prepare(s, "write",
            "UPDATE ? SET amount = $1::bigint, version = version + 1"
            " WHERE id = 1 AND version = $2::bigint");
    prepare(s, "add", "UPDATE ? SET amount = amount + 1, version = version + 1 WHERE id = 1");
}

struct row_values {
    int64_t number[3];
    const char *values[4];
    int lengths[4];
};

static void fill_row(struct row_values *v, const struct rows *rows, int i)
{
    v->number[0] = (int64_t)htobe64((uint64_t)rows->id[i]);
    v->number[1] = (int64_t)htobe64((uint64_t)rows->version[i]);
    v->number[2] = (int64_t)htobe64((uint64_t)rows->amount[i]);
    for (int k = 0; k < 3; k++) {
        v->values[k] = (const char *)&v->number[k];
        v->lengths[k] = sizeof v->number[k];
    }
    v->values[3] = rows->note[i];
    v->lengths[3] = (int)strlen(rows->note[i]);
}

static const int binary[] = {1, 1, 1, 1};

static void must_be_changed(struct session *s, PGresult *r)
{
    check(s, r);
    if (strcmp(PQcmdTuples(r), "1") != 0)
        die("PostgreSQL: a row was not changed");
    PQclear(r);
}

static void row_by_row(void *session, const struct rows *rows)
{
    struct session *s = session;
    struct row_values v;
    prepare_all(s);
    run(s, "BEGIN");
    for (int i = 0; i < BATCH_ROWS; i++) {
        fill_row(&v, rows, i);
        must_be_changed(s, PQexecPrepared(s->conn, "row", 4, v.values, v.lengths, binary, 1));
    }
    run(s, "COMMIT");
}

static void take_answers(struct session *s, int count)
{
    for (int i = 0; i < count; i++) {
        must_be_changed(s, PQgetResult(s->conn));
        PQclear(PQgetResult(s->conn)); /* NULL: the end of this one */
    }
}

/* No more at once than the sockets hold of answers. */
static void pipelined(void *session, const struct rows *rows)
{
    struct session *s = session;
    struct row_values v;
    prepare_all(s);
    run(s, "BEGIN");
    PQenterPipelineMode(s->conn);
    for (int i = 0; i < BATCH_ROWS; i++) {
        fill_row(&v, rows, i);
        if (!PQsendQueryPrepared(s->conn, "row", 4, v.values, v.lengths, binary, 1))
            die("PostgreSQL: %s", PQerrorMessage(s->conn));
        if ((i + 1) % AT_ONCE == 0) {
            PQsendFlushRequest(s->conn);
            PQflush(s->conn);
            if (i + 1 > AT_ONCE)
                take_answers(s, AT_ONCE);
        }
    }
    take_answers(s, AT_ONCE);
    PQpipelineSync(s->conn);
    PQclear(PQgetResult(s->conn));
    PQexitPipelineMode(s->conn);
    run(s, "COMMIT");
}

/* The binary form of an array: dimensions, nulls, type, count, lowest index; then length and bytes of each. */
static char *put_int(char *at, uint32_t number)
{
    uint32_t wire = htobe32(number);
    memcpy(at, &wire, sizeof wire);
    return at + sizeof wire;
}

static char *begin_array(char *at, uint32_t type)
{
    at = put_int(at, 1);
    at = put_int(at, 0);
    at = put_int(at, type);
    at = put_int(at, BATCH_ROWS);
    return put_int(at, 1);
}

static int write_numbers(char *array, const int64_t *numbers)
{
    char *at = begin_array(array, INT8_OID);
    for (int i = 0; i < BATCH_ROWS; i++) {
        uint64_t wire = htobe64((uint64_t)numbers[i]);
        at = put_int(at, sizeof wire);
        memcpy(at, &wire, sizeof wire);
        at += sizeof wire;
    }
    return (int)(at - array);
}

static int write_texts(char *array, const struct rows *rows)
{
    char *at = begin_array(array, TEXT_OID);
    for (int i = 0; i < BATCH_ROWS; i++) {
        size_t length = strlen(rows->note[i]);
        at = put_int(at, (uint32_t)length);
        memcpy(at, rows->note[i], length);
        at += length;
    }
    return (int)(at - array);
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* What comes back names the rows that were changed, in any order. */
static void take_changed(const struct rows *rows, const PGresult *r)
{
    int count = PQntuples(r), found = 0;
    for (int i = 0; i < count; i++) {
        int64_t id;
        memcpy(&id, PQgetvalue(r, i, 0), sizeof id);
        id = (int64_t)be64toh((uint64_t)id);
        found += bsearch(&id, rows->id, BATCH_ROWS, sizeof id, compare) != NULL;
    }
    if (found != BATCH_ROWS)
        die("PostgreSQL: %d rows changed", count);
}

static void set_based(void *session, const struct rows *rows)
{
    struct session *s = session;
    const int64_t *numbers[] = {rows->id, rows->version, rows->amount};
    const char *values[4];
    int lengths[4];
    prepare_all(s);
    for (int i = 0; i < 3; i++)
        lengths[i] = write_numbers(s->arrays[i], numbers[i]);
    lengths[3] = write_texts(s->arrays[3], rows);
    for (int i = 0; i < 4; i++)
        values[i] = s->arrays[i];
    PGresult *r = check(s, PQexecPrepared(s->conn, "set", 4, values, lengths, binary, 1));
    take_changed(rows, r);
    PQclear(r);
}

static void insert(void *session, const struct rows *rows)
{
    struct session *s = session;
    const char *values[] = {s->arrays[0], s->arrays[1], s->arrays[2]};
    prepare_all(s);
    const int lengths[] = {write_numbers(s->arrays[0], rows->id),
                           write_numbers(s->arrays[1], rows->amount),
                           write_texts(s->arrays[2], rows)};
    PGresult *r = check(s, PQexecPrepared(s->conn, "insert", 3, values, lengths, binary, 1));
    if (atoi(PQcmdTuples(r)) != BATCH_ROWS)
        die("PostgreSQL: a row was not made");
    PQclear(r);
}

/* ---- one hot row */

static bool read_and_write(struct session *s, const char *how, void (*work)(void))
{
    char amount[24], version[24];
    const char *values[] = {amount, version};
    PGresult *r = check(s, PQexecPrepared(s->conn, how, 0, NULL, NULL, NULL, 0));
    snprintf(amount, sizeof amount, "%lld", strtoll(PQgetvalue(r, 0, 0), NULL, 10) + 1);
    snprintf(version, sizeof version, "%.23s", PQgetvalue(r, 0, 1));
    PQclear(r);
    work();
    r = check(s, PQexecPrepared(s->conn, "write", 2, values, NULL, NULL, 0));
    bool changed = strcmp(PQcmdTuples(r), "1") == 0;
    PQclear(r);
    return changed;
}

static bool try_once(void *session, void (*work)(void))
{
    prepare_all(session);
    return read_and_write(session, "read", work);
}

static void locked(void *session, void (*work)(void))
{
    prepare_all(session);
    run(session, "BEGIN");
    if (!read_and_write(session, "lock", work))
        die("PostgreSQL: a locked row was changed");
    run(session, "COMMIT");
}

static void atomic(void *session)
{
    struct session *s = session;
    prepare_all(s);
    must_be_changed(s, PQexecPrepared(s->conn, "add", 0, NULL, NULL, NULL, 0));
}

const struct rows_hand rows_postgres = {
    .name = "postgres",
    .note_type = "text",
    .open = open_session,
    .close = close_session,
    .run = run,
    .row_by_row = row_by_row,
    .pipelined = pipelined,
    .set_based = {set_based, NULL},
    .set_labels = {"UPDATE … FROM unnest", NULL},
    .insert = insert,
    .insert_label = "INSERT … ON CONFLICT",
    .try_once = try_once,
    .locked = locked,
    .atomic = atomic,
    .locked_legend = "SELECT … FOR UPDATE",
};
