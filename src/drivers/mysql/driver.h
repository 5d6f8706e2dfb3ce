/* SPDX-License-Identifier: MIT
 *
 * What the files of the driver for MySQL and MariaDB share. Each file calls only those before it:
 * errors  send  cells  query  wakeup  facts  connect  driver */
#ifndef RLK_BACKEND_MYSQL_H
#define RLK_BACKEND_MYSQL_H

#include "base/wait.h"
#include "core/driver.h"

#include <mysql.h>

#include <errmsg.h>
#include <mysqld_error.h>

enum {
    /* most wake-ups that one connection keeps: enough for the locks that one program holds */
    WAKEUPS_MAX = 16,
    /* room for a name of 57 characters; MySQL takes at most 64 */
    WAKEUP_NAME = 64
};

/* A wake-up that this connection keeps, or is about to take, and the grant that it belongs to. */
struct wakeup {
    int64_t request;
    /* 0: its request is still in the queue */
    int64_t token;
    /* the caller's transaction released the grant, and has not committed yet */
    bool leaving;
    char name[RLK_TEXT_MAX + 1];
};

struct prepared {
    /* NULL: this place is free */
    MYSQL_STMT *stmt;
    /* the cells below have room for this many columns */
    unsigned room;
    /* of the last answer; before the first answer, those that the server announced */
    unsigned columns;
    MYSQL_BIND *column;
    struct cell *cell;
    rowlock_value *value;
    /* a column has a new buffer that the client library does not know yet */
    bool moved;
    /* the statement was executed, and its answer was not read to the end */
    bool unread;
    /* it reads texts on an adopted connection: see use_utf8() */
    bool texts;
};

/* A statement that is being sent. */
struct attempt {
    struct conn *c;
    struct rlk_call *call;
    struct prepared *p;
    const struct rlk_query *q;
};

struct conn {
    MYSQL *mysql;
    struct prepared prepared[RLK_PLACES];
    struct rlk_places places;
    /* of the statement sent last */
    struct rlk_room values;
    const struct rlk_texts *texts;
    /* how the names of our wake-ups begin; "": this connection keeps none */
    char wakeups[WAKEUP_NAME - 16];
    struct wakeup wakeup[WAKEUPS_MAX];
    int wakeups_kept;
    /* the request that waits now */
    int64_t waiter;
    /* the request whose wake-up it waits for; 0: none */
    int64_t before;
    /* the request whose wake-up came before it was our turn, and is not waited for again */
    int64_t woken;
    /* the server's max_allowed_packet; 0: not asked yet */
    int64_t packet;
    /* how long the server may take to answer */
    int64_t answer_us;
    bool adopted;
    /* the next two are known and do not change */
    bool knows_writers;
    /* it is a node of Galera, or a member of a group: they certify commits, and do not lock rows */
    bool certifies;
    /* other nodes take writes too */
    bool several_write;
    /* a transaction was open when the step was sent */
    bool was_in_tx;
    /* frame() has begun a transaction, and has not ended it */
    bool ours;
    /* savepoints of ours, each inside the one before */
    int saved;
    /* the server has rolled that transaction back */
    bool lost;
    /* nothing may be sent any more */
    bool dead;
};

/* -1: the library has closed it. Oracle's keeps the number, which may be another file's by now. */
static inline int my_socket_of(MYSQL *mysql)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    return mysql_get_socket(mysql);
#else
    return mysql->net.vio ? mysql->net.fd : -1;
#endif
}

static inline bool my_in_transaction(const struct conn *c)
{
    return c->mysql->server_status & (SERVER_STATUS_IN_TRANS | SERVER_STATUS_IN_TRANS_READONLY);
}

/* errors.c: each function fills in the call's diag and returns the class. */
enum rlk_class my_failed(struct conn *c, struct rlk_call *call, bool sent);
enum rlk_class my_failed_stmt(struct conn *c, struct rlk_call *call, MYSQL_STMT *stmt, bool theirs,
                              bool sent);

/* send.c: is the connection fit for a step? Also sends statements without values. */
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
/* A question that reads. The caller frees *out, also after a failure. */
enum rlk_class my_show(struct conn *c, struct rlk_call *call, const char *sql, MYSQL_RES **out);
/* Copies the first column of the first row of the answer. */
enum rlk_class my_ask(struct conn *c, struct rlk_call *call, const char *sql, char *out,
                      size_t cap);

/* cells.c: binds values, and reads columns. */
rowlock_kind my_kind_of(const MYSQL_FIELD *field);
MYSQL_BIND *my_bind_values(struct conn *c, const struct rlk_query *q);
bool my_make_cells(struct prepared *p, unsigned room);
void my_free_cells(struct prepared *p);
/* false: a column has an unknown type */
bool my_choose_buffers(struct prepared *p);
enum rlk_class my_read_rows(const struct attempt *s);

/* query.c: runs statements with values. The caller has checked that the connection is fit. */
enum rlk_class my_run(struct conn *c, struct rlk_call *call, struct rlk_query *q);
enum rlk_class my_renew(struct conn *c, struct rlk_call *call, struct rlk_query *q);
enum rlk_class my_renew_all(struct conn *c, struct rlk_call *call, struct rlk_query *q);
/* Runs a step of rowlock. The values are in the order of its markers. */
enum rlk_class my_run_step(struct conn *c, struct rlk_call *call, enum rlk_step step,
                           const rowlock_value *values, rlk_cells_fn *each, void *context);
enum rlk_class my_prepare(struct conn *c, struct rlk_call *call, enum rlk_step step);
void my_forget_statements(struct conn *c);

/* wakeup.c */
void my_end_leaving(struct conn *c, const struct rlk_call *call, bool committed);
enum rlk_class my_enqueue(struct conn *c, struct rlk_call *call, struct rlk_query *q);
enum rlk_class my_release(struct conn *c, struct rlk_call *call, struct rlk_query *q);
bool my_tell(void *conn, struct rlk_call *call, enum rlk_news news,
             const struct rlk_request *request, int64_t number);
enum rlk_class my_await(void *conn, struct rlk_call *call, const struct rlk_request *request,
                        int wake, enum rlk_wakeup *out);

/* facts.c */
enum rlk_class my_check_writable(struct conn *c, struct rlk_call *call);
enum rlk_class my_look_for_writers(struct conn *c, struct rlk_call *call);
enum rlk_class my_facts(void *conn, struct rlk_call *call, struct rlk_facts *out);

/* connect.c */
enum rlk_class my_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                       const struct rlk_texts *texts, struct rlk_hello *hello);
enum rlk_class my_adopt(void *conn, struct rlk_call *call, void *vendor,
                        const struct rlk_texts *texts, struct rlk_hello *hello);
void my_use_in_thread(bool begins);
void my_close(void *conn, bool in_child);

#endif
