/* SPDX-License-Identifier: MIT
 * A rowlock_db: a connection, and what is known about it. */
#ifndef RLK_DB_H
#define RLK_DB_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/wait.h"
#include "seam/backend.h"

#define RLK_DB_TAG 0x726C6462u /* "rldb" */

/* A ticket that may be in the queue of a lock. A new connection gives back those that no wait
 * goes on with. */
struct rlk_ticket {
    struct rlk_ticket *next;
    const char *name, *owner;
    int64_t request; /* whose ticket it is; 0: there is none */
};

/* The row of rowlock_meta when it was last looked at. */
struct rlk_meta {
    bool found; /* false: no tables, or without their one row: an installation cut short */
    int64_t version; /* of the tables */
    int64_t compat; /* the lowest level of a library that may use them */
    int64_t code; /* the revision of our routines */
    char identity[64];
    int64_t token_floor;
    int64_t swept_us; /* when a sweep last ended, by the database's clock; 0: never */
};

struct rowlock_db {
    uint32_t tag;
    pid_t pid; /* of the process that opened it */
    const struct rlk_backend *backend;
    void *conn;
    bool adopted;
    bool opened; /* conn is to be closed; it may be up or broken */
    bool up; /* as far as we know the connection works */
    /* of a transaction that may be run again; NULL: nobody needs one */
    struct rlk_witness *witness;
    bool in_tx; /* a transaction of ours is open, or was when the connection was lost */
    bool framed; /* that one is a part of one call, which begins it anew itself */
    bool schema_ok; /* our tables were looked at on this connection */
    int64_t away_us; /* our clock when the server was first found away; 0: it is there */
    bool away_told; /* a waiter has logged that it is away */
    bool several; /* the URL names other servers, which may take writes when this one does not */
    struct rlk_meta meta; /* of our tables when last looked at */
    bool texts_chosen; /* texts are those for the version of the tables */

    uint64_t connections; /* made so far */
    char session[64]; /* of this connection, as rlk_hello named it */
    char lingering[64]; /* the one before, if a statement of ours may still be under way to it */

    char *url;
    struct rlk_target target;
    struct rlk_texts texts;
    int64_t statement_us, reconnect_us;
    char owner[RLK_TEXT_MAX + 1]; /* empty: each lock has its own */
    char host[RLK_TEXT_MAX + 1];
    char program[RLK_TEXT_MAX + 1];

    rowlock_lock *locks;
    struct rlk_ticket *tickets; /* that may be in a queue */
    struct rlk_ticket *standing; /* the one with which a wait goes on; NULL: none does */
    struct rowlock_once *onces;
    rowlock_error error;
    struct rlk_waiting waiting;
    uint64_t seed, attempts; /* see rlk_next_number() */

    /* An acquire in a thread of ours, until its result is taken. */
    _Atomic(struct rlk_started *) started;
    pthread_t worker;
    atomic_bool working; /* the worker runs, or has not been joined */
    pthread_mutex_t starting;
};

/* handle.c */
bool rlk_is_ours(const rowlock_db *db); /* this process's, and not a started acquire's */
/* Every public call begins here: is the handle ours to use? Sets the action for error texts. */
int rlk_enter(rowlock_db *db, const char *verb, const char *name);
int64_t rlk_next_number(rowlock_db *db);

/* fail.c: each setter returns the code it has set. */
void rlk_action(rowlock_db *db, const char *verb, const char *name);
int rlk_fail(rowlock_db *db, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int rlk_fail_class(rowlock_db *db, enum rlk_class class, const struct rlk_call *call);

#endif
