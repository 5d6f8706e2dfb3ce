/* SPDX-License-Identifier: MIT
 *
 * What the files of the SQLite driver share. Each file calls only those before it:
 * errors  wakeup  send  connect  query  driver */
#ifndef LITE_DRIVER_H
#define LITE_DRIVER_H

#include "base/wait.h"
#include "core/driver.h"

#include <sqlite3.h>

enum {
    /* most statements in the text of one step */
    STATEMENTS_MAX = 6,
    /* the places of statements, then those of BEGIN and the other frames */
    TEXTS = RLK_PLACES + RLK_LOOK,
    /* how old a check of the file may be for a look */
    CHECK_VALID_US = 10000,
    PATH_ROOM = 4096,
    /* room for the address of a waiter's socket */
    WAKEUP_ROOM = 64,
    /* most wake-ups after a transaction; other waiters find out at their next poll */
    PENDING_MAX = 8
};

struct conn {
    /* NULL: the file does not exist yet */
    sqlite3 *db;
    const struct rlk_texts *texts;
    bool adopted;
    char path[PATH_ROOM];
    /* All users may make files in its folder. */
    bool open_folder;
    /* when the call must end, and since when the busy handler waits for the file */
    int64_t deadline_us, waits_since_us;
    /* when the file was last checked */
    int64_t checked_us;
    /* a transaction is ending, which has no deadline */
    bool ending;
    bool has_socket;
    /* sends wake-ups, and receives them if it has an address */
    int socket;
    /* this address; "": none yet, or this system has no such addresses */
    char wakeup[WAKEUP_ROOM];
    /* the turn's address; "": there is none */
    char turn_address[WAKEUP_ROOM];
    /* has this address while it is this connection's turn */
    int turn;
    bool has_turn;
    /* another client had the turn at our last commit; when that was, and our last pause for it */
    bool passed;
    int64_t passed_us, paused_us;
    /* each is prepared at its first use */
    sqlite3_stmt *prepared[TEXTS][STATEMENTS_MAX];
    struct rlk_places places;
    /* the cells of one row */
    struct rlk_room cells;
    /* the last statement returned a row */
    bool answered;
    /* a transaction of ours is open; these are woken after its commit */
    bool framed;
    char pending[PENDING_MAX][WAKEUP_ROOM];
    int wakes;
};

/* errors.c: call lite_failed() right after the failure, since the next call replaces the error. */
enum rlk_class lite_failed(struct conn *conn, struct rlk_call *call);
enum rlk_class lite_cannot_make(const char *path, struct rlk_call *call, int native);
enum rlk_class lite_class_for_caller(struct rlk_call *call, enum rlk_class class);
void lite_folder_of(const char *path, char out[PATH_ROOM]);

/* wakeup.c */
void lite_open_wakeup(struct conn *conn);
void lite_close_wakeup(struct conn *conn);
void lite_wake(struct conn *conn, const char *wakeup);
bool lite_tell(void *state, struct rlk_call *call, enum rlk_news news,
               const struct rlk_request *request, int64_t number);
enum rlk_class lite_await(void *state, struct rlk_call *call, const struct rlk_request *request,
                          int wake, enum rlk_wakeup *out);
void lite_name_turn(struct conn *conn);
/* A pause of a client that waits for the file. waited_us: so far. */
void lite_await_turn(struct conn *conn, int64_t waited_us);
/* After each statement that may have waited. */
void lite_end_turn(struct conn *conn);
/* After each commit. */
void lite_pass_turn(struct conn *conn);
/* Before each transaction that writes. */
void lite_let_pass(struct conn *conn);

/* send.c */
void lite_forget(sqlite3_stmt **statements);
void lite_forget_all(struct conn *conn);
enum rlk_class lite_prepare(struct conn *conn, struct rlk_call *call, int which);
enum rlk_class lite_send_frame(struct conn *conn, struct rlk_call *call, enum rlk_frame what);
enum rlk_class lite_begin(struct conn *conn, struct rlk_call *call);
enum rlk_class lite_finish(struct conn *conn, struct rlk_call *call, enum rlk_class class);
enum rlk_class lite_run(struct conn *conn, struct rlk_call *call, sqlite3_stmt *statement,
                        struct rlk_query *query);

/* connect.c */
enum rlk_class lite_open_file(struct conn *conn, struct rlk_call *call, bool create);
enum rlk_class lite_check_file(struct conn *conn, struct rlk_call *call);
enum rlk_class lite_ready(struct conn *conn, struct rlk_call *call, bool checks);
enum rlk_class lite_open(void *state, struct rlk_call *call, const struct rlk_target *target,
                         const struct rlk_texts *texts, struct rlk_hello *hello);
enum rlk_class lite_adopt(void *state, struct rlk_call *call, void *vendor,
                          const struct rlk_texts *texts, struct rlk_hello *hello);
void lite_close(void *state, bool in_child);

/* query.c */
enum rlk_class lite_query(void *state, struct rlk_call *call, struct rlk_query *query);

#endif
