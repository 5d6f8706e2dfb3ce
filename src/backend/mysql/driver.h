/* SPDX-License-Identifier: MIT
 *
 * What the files of the driver for MySQL and MariaDB share. Each calls only those before it:
 * errors  send  cells  query  wakeup  frame  facts  tables  connect  driver */
#ifndef RLK_BACKEND_MYSQL_H
#define RLK_BACKEND_MYSQL_H

#include "base/wait.h"
#include "seam/backend.h"

#include <mysql.h>

#include <errmsg.h>
#include <mysqld_error.h>

enum {
    WAKEUPS_MAX =
        16, /* kept by one connection: as many locks as a program takes one after the other */
    WAKEUP_NAME = 64 /* the longest that the servers take, which is shorter, and its end */
};

/* A wakeup that this connection keeps, or may keep, and the grant that it is kept for. */
struct wakeup {
    int64_t request;
    int64_t token; /* 0: still in line */
    bool leaving; /* the grant is released when the transaction is committed */
    char name[RLK_TEXT_MAX + 1];
};

struct prepared {
    MYSQL_STMT *stmt; /* NULL: this place is free */
    unsigned room; /* for so many columns */
    unsigned columns; /* of the last answer; before the first one, those announced */
    MYSQL_BIND *column;
    struct cell *cell;
    rowlock_value *value;
    bool moved; /* a column has another place than the client library was told */
    bool unread; /* it was executed, and its answer was not read to the end */
    bool texts; /* it reads texts, on a borrowed connection: see widen() */
};

/* A statement under way. */
struct sending {
    struct conn *c;
    struct rlk_call *call;
    struct prepared *p;
    const struct rlk_query *q;
};

struct conn {
    MYSQL *mysql;
    /* Of each step; the one of RLK_STEP_NONE is a statement that is not worth keeping. */
    struct prepared steps[RLK_STEP_COUNT];
    struct prepared prepared[RLK_PREPARED_MAX];
    struct rlk_prepared kept_ids;
    MYSQL_BIND *values; /* of the statement sent last */
    size_t values_room;
    const struct rlk_texts *texts;
    char wakeups[WAKEUP_NAME - 16]; /* what the names of wakeups begin with; "": there are none */
    struct wakeup wakeup[WAKEUPS_MAX];
    int wakeups_kept;
    int64_t waiter; /* the request that waits now */
    int64_t before; /* whose wakeup it waits for; 0: none */
    int64_t woken; /* whose was woken, though it was not our turn: not waited for again */
    int64_t packet; /* the longest that the server takes; 0: not asked yet */
    int64_t answer_us; /* how long an answer may take */
    bool adopted;
    bool knows_writers; /* several_write is known, and stays as it is */
    bool several_write; /* other nodes take writes too */
    bool was_in_tx; /* the transaction had begun when the step was sent */
    bool ours; /* a transaction that my_frame() has begun, and not ended */
    int saved; /* savepoints of ours, each within the one before */
    bool lost; /* that one was rolled back by the server */
    bool dead; /* nothing is sent any more */
};

static inline int my_socket_of(MYSQL *mysql)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    return mysql_get_socket(mysql);
#else
    return mysql->net.fd;
#endif
}

static inline bool my_in_transaction(const struct conn *c)
{
    return c->mysql->server_status & (SERVER_STATUS_IN_TRANS | SERVER_STATUS_IN_TRANS_READONLY);
}

/* errors.c: each setter returns the class it has set. */
enum rlk_class my_failed(struct conn *c, struct rlk_call *call, bool sent);
enum rlk_class my_failed_stmt(struct conn *c, struct rlk_call *call, MYSQL_STMT *stmt, bool theirs,
                              bool sent);

/* send.c: is the connection fit for a step? And statements without values. */
bool my_hung_up(const struct conn *c);
bool my_cut_off(MYSQL *mysql);
bool my_is_mariadb(const struct conn *c);
bool my_is_over(const struct conn *c);
enum rlk_class my_harmless(const struct conn *c, enum rlk_class class);
enum rlk_class my_check_charset(const struct conn *c, struct rlk_call *call);
enum rlk_class my_look(struct conn *c, struct rlk_call *call);
enum rlk_class my_check_fit(struct conn *c, struct rlk_call *call);
enum rlk_class my_send(struct conn *c, struct rlk_call *call, const char *sql, size_t length);
enum rlk_class my_command(struct conn *c, struct rlk_call *call, const char *sql);
/* What the connection says about itself. The caller frees *out, also after a failure. */
enum rlk_class my_show(struct conn *c, struct rlk_call *call, const char *sql, MYSQL_RES **out);
/* The first column of the first row of such an answer. */
enum rlk_class my_ask(struct conn *c, struct rlk_call *call, const char *sql, char *out,
                      size_t cap);

/* cells.c: values into a statement, and columns out of it. */
rowlock_kind my_kind_of(const MYSQL_FIELD *field);
MYSQL_BIND *my_bind_values(struct conn *c, const struct rlk_query *q);
bool my_make_cells(struct prepared *p, unsigned room);
void my_free_cells(struct prepared *p);
bool my_place_columns(struct prepared *p); /* false: one has a type that is not known */
enum rlk_class my_read_rows(const struct sending *s);

/* query.c: statements with values, on a connection that is fit for them. */
enum rlk_class my_run(struct conn *c, struct rlk_call *call, struct rlk_query *q);
/* A step of ours, whose values are in the order of its markers. */
enum rlk_class my_run_step(struct conn *c, struct rlk_call *call, enum rlk_step step,
                           const rowlock_value *values, rlk_cells_fn *each, void *context);
enum rlk_class my_prepare(struct conn *c, struct rlk_call *call, enum rlk_step step);
void my_forget_statements(struct conn *c);

/* wakeup.c */
void my_end_leaving(struct conn *c, const struct rlk_call *call, bool committed);
enum rlk_class my_enqueue(struct conn *c, struct rlk_call *call, struct rlk_query *q);
enum rlk_class my_release(struct conn *c, struct rlk_call *call, struct rlk_query *q);
bool my_note(void *conn, struct rlk_call *call, enum rlk_news news,
             const struct rlk_request *request, int64_t number);
enum rlk_class my_await(void *conn, struct rlk_call *call, const struct rlk_request *request,
                        int wake, enum rlk_wakeup *out);

/* frame.c */
enum rlk_class my_frame(void *conn, struct rlk_call *call, enum rlk_frame what);

/* facts.c */
enum rlk_class my_check_writable(struct conn *c, struct rlk_call *call);
enum rlk_class my_look_for_writers(struct conn *c, struct rlk_call *call);
enum rlk_class my_facts(void *conn, struct rlk_call *call, struct rlk_facts *out);

/* tables.c */
enum rlk_class my_script(void *conn, struct rlk_call *call, const char *sql);

/* connect.c */
enum rlk_class my_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                       const struct rlk_texts *texts, struct rlk_hello *hello);
enum rlk_class my_adopt(void *conn, struct rlk_call *call, void *vendor,
                        const struct rlk_texts *texts, struct rlk_hello *hello);
void my_enter_thread(void);
void my_leave_thread(void);
void my_close(void *conn, bool in_child);

#endif
