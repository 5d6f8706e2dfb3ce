/* SPDX-License-Identifier: MIT
 *
 * What the files of the PostgreSQL driver share. Each calls only those before it:
 * errors.c  send.c  wakeup.c  query.c  connect.c  tables.c  driver.c
 *
 * Outside of a transaction each statement is a transaction of its own. On a direct connection a
 * statement is prepared at its first use, in the same round trip, unless it is wide. There a BEGIN
 * waits for the first statement and goes with it. Behind a transaction pooler, and on adopted
 * connections, statements are sent whole and leave nothing behind. */
#ifndef PG_DRIVER_H
#define PG_DRIVER_H

#include <libpq-fe.h>

#include "base/wait.h"
#include "seam/backend.h"

enum { MOST_COLUMNS = 1664 /* of the server */ };

struct conn {
    PGconn *conn;
    const struct rlk_texts *texts;
    bool adopted;
    bool direct; /* no pooler in between: the session is ours alone */
    bool whole; /* statements are sent whole, not prepared */
    bool plans_once; /* the session has the settings of plan_once */
    bool prepared[RLK_STEP_COUNT];
    struct rlk_prepared named;
    bool kept_there[RLK_PREPARED_MAX]; /* the server has a statement by the name of this place */
    bool begin_waits; /* a transaction of ours begins with the next statement */
    int saved; /* savepoints of ours in the transaction */
    int succeeded; /* statements of the last packet that succeeded */
    rowlock_value *cells; /* of one row, MOST_COLUMNS of them */
    unsigned char kinds[MOST_COLUMNS]; /* of the columns of the last result */
    char channel[32]; /* the channel that this connection listens to while it is queued */
    bool listening;
};

/* A statement, and what must be done before it. All of it goes in one packet, in one round trip. */
struct packet {
    const char *text; /* NULL: none, only what must be done before the next */
    const char *id; /* the name that it is prepared by; NULL: it is sent whole */
    const char *drop; /* a statement that frees the name; NULL: the name is free */
    bool prepared; /* in and out: the server has it by its name */
    bool dropped; /* out: the name was freed */
    bool anew; /* it is planned for these values */
    int count;
    const char *const *values;
};

/* errors.c. Each says in the call's diag what happened, and returns the class. */
enum rlk_class pg_class_of(const char *sqlstate);
enum rlk_class pg_fail_connection(struct conn *p, struct rlk_call *call, enum rlk_class class);
enum rlk_class pg_fail_result(struct rlk_call *call, const PGresult *result);
enum rlk_class pg_class_of_theirs(struct rlk_call *call, enum rlk_class class);

/* send.c. The caller clears *out, also after a failure. Before it is NULL, or an earlier result. */
enum rlk_class pg_check_usable(struct conn *p, struct rlk_call *call);
enum rlk_class pg_exchange(struct conn *p, struct rlk_call *call, struct packet *s, PGresult **out);
enum rlk_class pg_say(struct conn *p, struct rlk_call *call, const char *text, PGresult **out);
enum rlk_class pg_frame(void *conn, struct rlk_call *call, enum rlk_frame what);

/* wakeup.c */
const char *pg_channel(struct conn *p);
void pg_forget_wakeups(struct conn *p);
bool pg_note(void *conn, struct rlk_call *call, enum rlk_news news,
             const struct rlk_request *request, int64_t number);
enum rlk_class pg_await(void *conn, struct rlk_call *call, const struct rlk_request *request,
                        int wake, enum rlk_wakeup *out);

/* query.c. pg_run() is pg_query() for a connection that was just looked at. */
enum rlk_class pg_run(struct conn *p, struct rlk_call *call, struct rlk_query *query);
enum rlk_class pg_query(void *conn, struct rlk_call *call, struct rlk_query *query);

/* connect.c */
enum rlk_class pg_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                       const struct rlk_texts *texts, struct rlk_hello *hello);
enum rlk_class pg_adopt(void *conn, struct rlk_call *call, void *vendor,
                        const struct rlk_texts *texts, struct rlk_hello *hello);
void pg_close(void *conn, bool in_child);

/* tables.c */
enum rlk_class pg_script(void *conn, struct rlk_call *call, const char *sql);
enum rlk_class pg_facts(void *conn, struct rlk_call *call, struct rlk_facts *out);

#endif
