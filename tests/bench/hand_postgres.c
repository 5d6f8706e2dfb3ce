/* SPDX-License-Identifier: MIT
 *
 * Steps that people write by hand, sent with libpq: prepared, with numbers in binary form. */
#include "hand.h"

#include <libpq-fe.h>

#include <endian.h>

enum { AT_ONCE = 100 };

static PGresult *check(PGconn *conn, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die("PostgreSQL: %s", PQerrorMessage(conn));
    return result;
}

static struct answer take_answer(struct session *s, const struct step *step, PGresult *r)
{
    struct value cells[COLUMNS_MAX];
    struct answer answer = {0};
    check(s->conn, r);
    for (int row = 0; row < PQntuples(r) && step->kept > 0; row++) {
        for (int i = 0; i < step->kept; i++)
            cells[i] = (struct value){.kind = TEXT_VALUE, .text = PQgetvalue(r, row, i)};
        hand_keep(s, step, cells, step->kept);
    }
    answer.rows = PQnfields(r) > 0 ? PQntuples(r) : strtoll(PQcmdTuples(r), NULL, 10);
    PQclear(r);
    return answer;
}

static struct answer query(struct session *s, const struct step *step, const char *sql)
{
    return take_answer(s, step, PQexec(s->conn, sql));
}

struct sent {
    const char *values[VALUES_MAX];
    int lengths[VALUES_MAX], binary[VALUES_MAX];
    int64_t numbers[VALUES_MAX];
};

static void give(const struct prepared *p, const struct value *values, struct sent *out)
{
    for (int i = 0; i < p->count; i++) {
        bool number = values[i].kind == INT_VALUE;
        out->numbers[i] = (int64_t)htobe64((uint64_t)values[i].number);
        out->values[i] = number ? (const char *)&out->numbers[i] : values[i].text;
        out->lengths[i] = number ? (int)sizeof out->numbers[i] : (int)values[i].length;
        out->binary[i] = values[i].kind != TEXT_VALUE;
    }
}

static void prepare(struct session *s, struct prepared *p)
{
    if (p->handle)
        return;
    PQclear(check(s->conn, PQprepare(s->conn, p->step->name, p->sql, 0, NULL)));
    p->handle = p;
}

static struct answer execute(struct session *s, struct prepared *p, const struct value *values)
{
    struct sent sent;
    prepare(s, p);
    give(p, values, &sent);
    return take_answer(s, p->step,
                       PQexecPrepared(s->conn, p->step->name, p->count, sent.values, sent.lengths,
                                      sent.binary, 0));
}

static void take_answers(struct session *s, const struct prepared *p, int count)
{
    for (int i = 0; i < count; i++) {
        if (take_answer(s, p->step, PQgetResult(s->conn)).rows != 1)
            die("PostgreSQL: a row was not changed");
        PQclear(PQgetResult(s->conn)); /* NULL: the end of this one */
    }
}

/* No more at once than the sockets hold of answers. */
static void pipeline(struct session *s, struct prepared *p)
{
    struct value values[VALUES_MAX];
    struct sent sent;
    prepare(s, p);
    PQenterPipelineMode(s->conn);
    for (int i = 0; i < BATCH_ROWS; i++) {
        hand_values(s, p, i, values);
        give(p, values, &sent);
        if (!PQsendQueryPrepared(s->conn, p->step->name, p->count, sent.values, sent.lengths,
                                 sent.binary, 1))
            die("PostgreSQL: %s", PQerrorMessage(s->conn));
        if ((i + 1) % AT_ONCE == 0) {
            PQsendFlushRequest(s->conn);
            PQflush(s->conn);
            if (i + 1 > AT_ONCE)
                take_answers(s, p, AT_ONCE);
        }
    }
    take_answers(s, p, AT_ONCE);
    PQpipelineSync(s->conn);
    PQclear(PQgetResult(s->conn));
    PQexitPipelineMode(s->conn);
}

const struct hand hand_postgres = {
    .raw = &raw_postgres,
    .server_dir_env = "ROWLOCK_TEST_POSTGRES_DIR",
    .numbered = true,
    .use_schema = "SET search_path =",
    .query = query,
    .execute = execute,
    .pipeline = pipeline,
};
