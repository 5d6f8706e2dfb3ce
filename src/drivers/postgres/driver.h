/* SPDX-License-Identifier: MIT
 *
 * What the files of the PostgreSQL driver share. Each file calls only those before it:
 * errors  send  wakeup  query  connect  driver
 *
 * Outside a transaction each statement is a transaction of its own. On a direct connection a
 * statement is prepared at its first use, in the same round trip. A wide step is not prepared. A
 * BEGIN waits there for the first statement, and is sent with it. Behind a transaction pooler, and
 * on adopted connections, statements are sent whole and leave nothing behind. */
#ifndef PG_DRIVER_H
#define PG_DRIVER_H

#include <libpq-fe.h>

#include "base/buffer.h"
#include "base/wait.h"
#include "core/driver.h"

/* the limit of the server */
enum { MOST_COLUMNS = 1664 };

struct prepared {
    /* the server has a statement with this name */
    bool exists;
    /* it is the one of this place, and its tables were not altered since */
    bool current;
    /* when a step with RLK_GROWS was prepared */
    int64_t since_us;
};

struct conn {
    PGconn *conn;
    const struct rlk_texts *texts;
    bool adopted;
    /* there is no pooler in between: the session is ours alone */
    bool direct;
    /* statements are sent whole and not prepared */
    bool whole;
    /* the session has our SETTINGS, and plans once */
    bool is_set, plans_once;
    int64_t timeout_ms;
    struct prepared prepared[RLK_PLACES];
    struct rlk_places places;
    /* the URL, the role or the database has set default_transaction_read_only */
    bool set_read_only;
    /* the server takes no writes: our own connection is closed after the transaction */
    bool standby;
    /* a transaction of ours begins with the next statement */
    bool begin_waits;
    /* savepoints of ours in the transaction */
    int saved;
    /* how many statements of the last packet succeeded */
    int succeeded;
    /* the server has warned that a standby may lack what the last packet committed */
    bool unreplicated;
    /* the texts of the last statement's values, and where each begins */
    struct rlk_buffer written;
    struct rlk_room values;
    /* the cells of one row: MOST_COLUMNS */
    struct rlk_room cells;
    /* the connection listens to this channel while it is in the queue */
    char channel[32];
    bool listening;
    void (*heard)(void *context, const char *text);
    void *heard_context;
};

/* A statement, and what must be done before it. All of it is sent at once, in one round trip. */
struct packet {
    /* NULL: no statement, only what must be done before one */
    const char *text;
    /* the name of the prepared statement; NULL: it is sent whole */
    const char *id;
    /* a statement that frees the name; NULL: the name is free */
    const char *drop;
    /* in and out: the server has prepared it */
    bool prepared;
    /* out: the name was freed */
    bool dropped;
    /* the server plans it for these values */
    bool anew;
    int count;
    const char *const *values;
};

/* errors.c: each function fills in the call's diag and returns the class. */
enum rlk_class pg_class_of(const char *sqlstate);
enum rlk_class pg_fail_connection(struct conn *p, struct rlk_call *call, enum rlk_class class);
enum rlk_class pg_fail_result(struct conn *p, struct rlk_call *call, const PGresult *result);
enum rlk_class pg_fail_read_only(struct conn *p, struct rlk_call *call, const char *why);
/* Other engines speak its protocol too, and do not lock as it does. */
enum rlk_class pg_refuse_others(PGconn *conn, struct rlk_call *call);
enum rlk_class pg_class_of_theirs(struct rlk_call *call, enum rlk_class class);

/* send.c: the caller clears *out, also after a failure. On entry *out is NULL or an earlier
 * result. */
enum rlk_class pg_check_usable(struct conn *p, struct rlk_call *call);
enum rlk_class pg_exchange(struct conn *p, struct rlk_call *call, struct packet *s, PGresult **out);
enum rlk_class pg_say(struct conn *p, struct rlk_call *call, const char *text, PGresult **out);
enum rlk_class pg_frame(void *conn, struct rlk_call *call, enum rlk_frame what);

/* wakeup.c */
const char *pg_channel(struct conn *p);
void pg_forget_wakeups(struct conn *p);
bool pg_tell(void *conn, struct rlk_call *call, enum rlk_news news,
             const struct rlk_request *request, int64_t number);
enum rlk_class pg_await(void *conn, struct rlk_call *call, const struct rlk_request *request,
                        int wake, enum rlk_wakeup *out);

/* query.c: pg_run() is pg_query() without the check that the connection is usable. */
enum rlk_class pg_run(struct conn *p, struct rlk_call *call, struct rlk_query *query);
enum rlk_class pg_query(void *conn, struct rlk_call *call, struct rlk_query *query);

/* connect.c */
enum rlk_class pg_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                       const struct rlk_texts *texts, struct rlk_hello *hello);
enum rlk_class pg_adopt(void *conn, struct rlk_call *call, void *vendor,
                        const struct rlk_texts *texts, struct rlk_hello *hello);
void pg_close(void *conn, bool in_child);

#endif
