/* SPDX-License-Identifier: MIT
 * A rowlock_db: a connection, and the state that core has about it. */
#ifndef RLK_DB_H
#define RLK_DB_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/thread.h"
#include "base/wait.h"
#include "core/driver.h"

#define RLK_DB_TAG 0x726C6462u /* "rldb" */

/* A ticket that may be in the queue of a lock. A new connection gives back all tickets except the
 * one that a wait continues with. */
struct rlk_ticket {
    struct rlk_ticket *next;
    const char *name, *owner;
    /* The number of the request that it belongs to. 0: there is no ticket. */
    int64_t request;
    /* Its lease. 0: not known. */
    int64_t lease_us;
};

/* The row of rowlock_meta when it was last looked at. */
struct rlk_meta {
    /* False: there are no tables, or an installation was interrupted before it wrote the row. */
    bool found;
    /* The level that upgraded the tables last. */
    int64_t version;
    /* The lowest level of a library that may use the tables. */
    int64_t compat;
    /* The revision of our routines. */
    int64_t code;
    char identity[64];
    /* When a sweep last ended, by the database's clock. Below 0: never, and the tables were
     * installed at -swept_us. */
    int64_t swept_us;
    /* Which member of a quorum the database is, from 1. 0: none. */
    int64_t member;
};

/* Only link.c changes these two. */
enum rlk_link {
    /* There is no connection. */
    RLK_NEW,
    /* It is lost, or leads to a server that takes no writes. conn must be closed. */
    RLK_BROKEN,
    /* The connection works, as far as we know. */
    RLK_OPEN,
    /* The driver has looked at our tables. */
    RLK_TRUSTED,
    /* Our tables were checked on this connection. */
    RLK_CHECKED
};
enum rlk_tx {
    /* No transaction of ours is open. */
    RLK_TX_NONE,
    /* One is, or was when the connection was lost. */
    RLK_TX_OURS,
    /* The same, as a part of one call. The call begins it again by itself. */
    RLK_TX_FRAMED
};

struct rlk_port;
struct rlk_quorum;
struct rlk_shared_keeper;

/* A keeper has a handle of its own. This is how it gets that, and ends it. */
struct rlk_doors {
    /* Another handle for the same database, with the schema and prefix of the options. */
    int (*open_again)(rowlock_db *like, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err);
    void (*close)(rowlock_db *db);
};

struct rowlock_db {
    uint32_t tag;
    /* The process that opened it. */
    pid_t pid;
    /* The driver. Behind a port: that of its databases. */
    const struct rlk_driver *driver;
    /* NULL: it has a connection of its own. */
    const struct rlk_port *port;
    /* The port's. */
    struct rowlock_pool *pool;
    struct rlk_quorum *quorum;
    void *conn;
    bool adopted;
    enum rlk_link link;
    /* The witness of a transaction that may be run again. NULL: there is none. */
    struct rlk_witness *witness;
    enum rlk_tx tx;
    /* When the server was first found away, by the local clock. 0: it is there. */
    int64_t away_us;
    /* A waiter has logged that the server is away. */
    bool away_logged;
    /* A server was seen to take writes. So one that takes none has changed, and is away. */
    bool takes_writes;
    /* The URL names several servers. */
    bool several;
    struct rlk_meta meta;
    /* The texts are those for the version of the tables. */
    bool texts_chosen;

    /* Connections made so far. */
    uint64_t connections;
    /* What rowlock_db_stats() gives, without the next one. */
    rowlock_stats stats;
    /* Renewals of its locks, by this handle and by keepers. */
    _Atomic uint64_t renewals;
    /* The session of this connection, as in rlk_hello. */
    char session[64];
    /* The session before, if a statement of ours may still be in flight to it. "": none. */
    char lingering[64];

    /* As the user gave it. NULL: adopted, or of a pool. */
    char *source;
    char *url;
    struct rlk_target target;
    struct rlk_texts texts;
    int64_t statement_us, reconnect_us;
    /* "": each lock has a random owner. */
    char owner[RLK_TEXT_MAX + 1], host[RLK_TEXT_MAX + 1], program[RLK_TEXT_MAX + 1];

    /* NULL: adopted, so it cannot be opened again. */
    const struct rlk_doors *doors;
    /* The keeper of its database, once a lock needed it. */
    struct rlk_shared_keeper *shared;
    rowlock_lock *locks;
    /* All tickets that may be in a queue. */
    struct rlk_ticket *tickets;
    /* The ticket of the current wait. NULL: there is no wait. */
    struct rlk_ticket *standing;
    struct rowlock_once *onces;
    rowlock_error error;
    struct rlk_waiting waiting;
    /* See rlk_next_number(). */
    uint64_t seed, numbers;

    /* An acquire in a thread of ours. It stays until its result is taken. */
    _Atomic(struct rlk_started *) started;
    pthread_t worker;
    /* rowlock_acquire_step() drives it in place of a thread. */
    bool steps;
    /* It runs, or its end was not taken. */
    atomic_bool working;
    pthread_mutex_t starting;
};

/* handle.c */
/* True in the process that opened it. While a started acquire runs, only in its thread. */
bool rlk_is_ours(const rowlock_db *db);
/* A thread of ours begins or ends to use a connection that another thread has opened. */
void rlk_use_in_thread(const struct rlk_driver *backend, bool begins);
/* Each public call begins here. It sets the action of the error. EMISUSE: the handle is not valid,
 * or rlk_is_ours() is false. */
int rlk_enter(rowlock_db *db, const char *verb, const char *name);
/* The same for a call that makes a handle. out: the pointer to it, which becomes NULL. EINVAL: it
 * is missing. */
int rlk_enter_open(rowlock_db *db, const char *verb, const char *name, void *out);
/* After one of these, for a call that a handle of several databases does not do. */
int rlk_need_database(rowlock_db *db, int entered);
/* Ends a call that may return something else than the last rlk_fail(). Returns the result. */
int rlk_end_call(rowlock_db *db, int result);
/* The number of a new request. */
int64_t rlk_next_number(rowlock_db *db);

/* fail.c: each setter returns the code that it sets. */
void rlk_action(rowlock_db *db, const char *verb, const char *name);
int rlk_fail(rowlock_db *db, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int rlk_fail_class(rowlock_db *db, enum rlk_class class, const struct rlk_call *call);
/* An earlier attempt may have been carried out. The text stays. */
int rlk_fail_unknown(rowlock_db *db);

#endif
