/* SPDX-License-Identifier: MIT
 *
 * Steps that people write by hand, sent with the MySQL client library. */
#include "hand.h"

#include <mysql.h>
#include <mysqld_error.h>

enum { TEXT_CAP = 256 };

/* ---- texts */

static struct answer query(struct session *s, const struct step *step, const char *sql)
{
    struct value cells[COLUMNS_MAX];
    if (mysql_real_query(s->conn, sql, strlen(sql)) != 0)
        die("MySQL: %s", mysql_error(s->conn));
    MYSQL_RES *result = mysql_store_result(s->conn);
    if (!result)
        return (struct answer){.rows = (int64_t)mysql_affected_rows(s->conn)};
    struct answer answer = {.rows = (int64_t)mysql_num_rows(result)};
    for (MYSQL_ROW row; step->kept > 0 && (row = mysql_fetch_row(result));) {
        for (int i = 0; i < step->kept; i++)
            cells[i] = (struct value){.kind = TEXT_VALUE, .text = row[i] ? row[i] : ""};
        hand_keep(s, step, cells, step->kept);
    }
    mysql_free_result(result);
    return answer;
}

/* ---- prepared statements */

struct columns {
    MYSQL_BIND bind[COLUMNS_MAX];
    struct value cells[COLUMNS_MAX];
    char text[COLUMNS_MAX][TEXT_CAP];
    unsigned long length[COLUMNS_MAX];
    int count;
};

struct statement {
    MYSQL_STMT *stmt;
    struct columns columns;
};

static struct statement *prepare(struct session *s, struct prepared *p)
{
    struct statement *statement = p->handle;
    if (statement)
        return statement;
    p->handle = statement = calloc(1, sizeof *statement);
    if (!statement || !(statement->stmt = mysql_stmt_init(s->conn)))
        die("out of memory");
    if (mysql_stmt_prepare(statement->stmt, p->sql, strlen(p->sql)) != 0)
        die("MySQL: %s", mysql_stmt_error(statement->stmt));
    return statement;
}

static void forget(struct prepared *p)
{
    struct statement *statement = p->handle;
    mysql_stmt_close(statement->stmt);
    free(statement);
}

static bool is_number(enum enum_field_types type)
{
    return type == MYSQL_TYPE_LONGLONG || type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_TINY ||
           type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_INT24;
}

/* The columns of a call are known when it has been executed. */
static void look_at_columns(struct statement *statement)
{
    struct columns *c = &statement->columns;
    MYSQL_RES *about = mysql_stmt_result_metadata(statement->stmt);
    if (!about)
        die("MySQL: %s", mysql_stmt_error(statement->stmt));
    for (; c->count < COLUMNS_MAX && c->count < (int)mysql_num_fields(about); c->count++) {
        struct value *cell = &c->cells[c->count];
        MYSQL_BIND *bind = &c->bind[c->count];
        bool number = is_number(mysql_fetch_field(about)->type);
        cell->kind = number ? INT_VALUE : TEXT_VALUE;
        cell->text = c->text[c->count];
        bind->buffer_type = number ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        bind->buffer = number ? (void *)&cell->number : (void *)c->text[c->count];
        bind->buffer_length = TEXT_CAP - 1;
        bind->length = &c->length[c->count];
    }
    mysql_free_result(about);
}

static int64_t take_rows(struct session *s, const struct step *step, struct statement *statement)
{
    struct columns *c = &statement->columns;
    int64_t rows = 0;
    if (c->count == 0)
        look_at_columns(statement);
    if (mysql_stmt_bind_result(statement->stmt, c->bind))
        die("MySQL: %s", mysql_stmt_error(statement->stmt));
    for (; mysql_stmt_fetch(statement->stmt) == 0; rows++)
        hand_keep(s, step, c->cells, c->count);
    mysql_stmt_free_result(statement->stmt);
    return rows;
}

static struct answer take_answer(struct session *s, const struct step *step,
                                 struct statement *statement)
{
    MYSQL_STMT *stmt = statement->stmt;
    struct answer answer = {.rows = (int64_t)mysql_stmt_affected_rows(stmt)};
    if (mysql_stmt_field_count(stmt) == 0) {
        answer.id = (int64_t)mysql_stmt_insert_id(stmt);
        return answer;
    }
    answer.rows = take_rows(s, step, statement);
    while (mysql_stmt_next_result(stmt) == 0)
        mysql_stmt_free_result(stmt);
    return answer;
}

static struct answer execute(struct session *s, struct prepared *p, const struct value *values)
{
    struct statement *statement = prepare(s, p);
    MYSQL_BIND bind[VALUES_MAX] = {{0}};
    for (int i = 0; i < p->count; i++) {
        bool number = values[i].kind == INT_VALUE;
        bind[i].buffer_type = number ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        bind[i].buffer =
            number ? (void *)(uintptr_t)&values[i].number : (void *)(uintptr_t)values[i].text;
        bind[i].buffer_length = values[i].length;
    }
    if (mysql_stmt_bind_param(statement->stmt, bind))
        die("MySQL: %s", mysql_stmt_error(statement->stmt));
    if (mysql_stmt_execute(statement->stmt) == 0)
        return take_answer(s, p->step, statement);
    if (mysql_stmt_errno(statement->stmt) != ER_LOCK_DEADLOCK)
        die("MySQL: %s", mysql_stmt_error(statement->stmt));
    return (struct answer){.deadlock = true};
}

const struct hand hand_mysql = {
    .raw = &raw_mysql,
    .server_dir_env = "ROWLOCK_TEST_MYSQL_DIR",
    .use_schema = "USE",
    .query = query,
    .execute = execute,
    .forget = forget,
};
