/* SPDX-License-Identifier: MIT
 * What the files of the SQLite driver share. Each calls only those before it:
 * errors.c  send.c  wakeup.c  connect.c  query.c  tables.c  driver.c */
#ifndef LITE_DRIVER_H
#define LITE_DRIVER_H

#include "base/wait.h"
#include "seam/backend.h"

#include <sqlite3.h>

enum {
    STATEMENTS_MAX = 6, /* in the text of one step */
    TEXTS = RLK_STEP_COUNT + RLK_LOOK, /* of the steps; then of BEGIN and the other frames */
    LOOK_TRUSTS_US = 10000, /* so old may a check of the file be for a look */
    PATH_ROOM = 4096,
    WAKEUP_ROOM = 64, /* for the address of a waiter's socket */
    PENDING_MAX = 8 /* wake-ups after a transaction; further waiters find out by their next look */
};

struct conn {
    sqlite3 *db; /* NULL: the file is not there yet */
    const struct rlk_texts *texts;
    bool adopted;
    char path[PATH_ROOM];
    int64_t deadline_us, waits_until_us; /* for the file, in the busy handler */
    int64_t checked_us; /* when the file was last checked */
    bool ending; /* a transaction, which takes as long as it takes */
    bool has_socket;
    int socket; /* sends wake-ups, and receives them if it has an address */
    char wakeup[WAKEUP_ROOM]; /* that address; "": none yet, or they are not to be had here */
    sqlite3_stmt *prepared[TEXTS][STATEMENTS_MAX]; /* prepared when first needed */
    sqlite3_stmt *queries[RLK_PREPARED_MAX]; /* about the caller's own tables */
    struct rlk_prepared query_ids;
    rowlock_value *cells; /* of one row */
    int room; /* for so many */
    bool answered; /* the statement that was run last had a row */
    bool framed; /* a transaction of ours is open; these are woken after it */
    char pending[PENDING_MAX][WAKEUP_ROOM];
    int wakes;
};

/* errors.c. lite_failed() comes right after the call that failed: the next call replaces the
 * error. */
enum rlk_class lite_failed(struct conn *conn, struct rlk_call *call);
enum rlk_class lite_cannot_make(const char *path, struct rlk_call *call, int native);
enum rlk_class lite_class_for_caller(struct rlk_call *call, enum rlk_class class);
void lite_folder_of(const char *path, char out[PATH_ROOM]);

/* send.c */
void lite_forget(struct conn *conn);
enum rlk_class lite_prepare(struct conn *conn, struct rlk_call *call, int which);
enum rlk_class lite_send_frame(struct conn *conn, struct rlk_call *call, enum rlk_frame what);
enum rlk_class lite_begin(struct conn *conn, struct rlk_call *call);
enum rlk_class lite_finish(struct conn *conn, struct rlk_call *call, enum rlk_class class);
enum rlk_class lite_run(struct conn *conn, struct rlk_call *call, sqlite3_stmt *statement,
                        struct rlk_query *query);

/* connect.c */
enum rlk_class lite_open_file(struct conn *conn, struct rlk_call *call, bool create);
enum rlk_class lite_check_file(struct conn *conn, struct rlk_call *call);
enum rlk_class lite_ready(struct conn *conn, struct rlk_call *call, enum rlk_where where,
                          bool checks);
enum rlk_class lite_open(void *state, struct rlk_call *call, const struct rlk_target *target,
                         const struct rlk_texts *texts, struct rlk_hello *hello);
enum rlk_class lite_adopt(void *state, struct rlk_call *call, void *vendor,
                          const struct rlk_texts *texts, struct rlk_hello *hello);
void lite_close(void *state, bool in_child);

/* wakeup.c */
void lite_hang_wakeup(struct conn *conn);
void lite_take_wakeup_down(struct conn *conn);
void lite_wake(struct conn *conn, const char *wakeup);
bool lite_note(void *state, struct rlk_call *call, enum rlk_news news,
               const struct rlk_request *request, int64_t number);
enum rlk_class lite_await(void *state, struct rlk_call *call, const struct rlk_request *request,
                          int wake, enum rlk_wakeup *out);

/* query.c */
enum rlk_class lite_query(void *state, struct rlk_call *call, struct rlk_query *query);
enum rlk_class lite_frame(void *state, struct rlk_call *call, enum rlk_frame what);

/* tables.c */
enum rlk_class lite_script(void *state, struct rlk_call *call, const char *sql);
enum rlk_class lite_facts(void *state, struct rlk_call *call, struct rlk_facts *out);

#endif
