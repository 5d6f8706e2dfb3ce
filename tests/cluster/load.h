/* SPDX-License-Identifier: MIT
 *
 * The load on a cluster: what its clients share. load.c has the commands, clients.c and queue.c the
 * clients. The history that they write is described in history.h. */
#pragma once

#include "history.h"

enum {
    /* The lease of locks with a keeper, and of jobs. */
    TTL_MS = 4000,
    /* The lease of locks without a keeper. Some holders sleep for longer. */
    SHORT_TTL_MS = 1000,
    CONNECT_MS = 2000,
    STATEMENT_MS = 2000,
    RECONNECT_MS = 2000,
    /* What the header promises of any call: MySQL rounds the statement's up to a whole second. */
    CALL_MS = STATEMENT_MS + 1000 + RECONNECT_MS,
    ACCOUNTS = 8,
    BRANCHES = 2,
    FIRST_CENTS = 1000000,
    /* The number of the account that has the register's token. */
    REGISTER = 1000,
    URLS_MAX = 9
};

/* What all clients see. */
struct load {
    const char *folder;
    const char *urls[URLS_MAX];
    int url_count;
    atomic_bool over;
    rowlock_keeper *keepers[URLS_MAX];
};

/* A thread with a connection of its own. */
struct client {
    struct load *load;
    int number;
    unsigned seed;
    /* Without blanks. */
    const char *name;
    const char *url;
    rowlock_keeper *keeper;
    bool pooled;
    rowlock_db *db;
    rowlock_lock *lock;
    /* For transfers and the register: the table of the accounts, and the journal. */
    rowlock_table *accounts, *journal;
};

/* ---- clients.c */

extern const char *const lock_names[];
/* Returns when a server can be reached, which may take a while in a cluster. */
void await_server(const char *url);
rowlock_db *load_open(const char *url);
rowlock_table *open_accounts(rowlock_db *db);
rowlock_table *open_journal(rowlock_db *db);

/* Writes down a call that began then and returned this. Returns result. */
int heard(const struct client *c, const char *call, long long began_us, int64_t bound_ms,
          int result);
/* The calls, written down. */
int acquire(struct client *c, const rowlock_acquire_options *options);
/* Works for so long. false: the lease is over. */
bool hold(struct client *c, int64_t ms);
/* Releases the lock, and tries again if the answer is lost. */
void release(struct client *c);

void client_open(struct client *c, struct load *load, int number, const char *name);
void client_close(struct client *c);
void clients_start(struct load *load);
/* Returns when each client has ended. */
void clients_end(void);

/* ---- queue.c: a holder and its waiters, round after round */

enum { WAITERS = 5 };
void queue_start(struct load *load, int first_number);
void queue_end(void);
