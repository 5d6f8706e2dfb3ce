/* SPDX-License-Identifier: MIT
 *
 * The scene of tests about the application's own transaction: the connections of the application,
 * of a holder and of a rival, and one lock that both want. A failure to set it up ends the
 * program. */
#pragma once

#include "contract.h"

/* What is done at once takes less than AT_ONCE_MS. What waits for a transaction of this test takes
 * at least three times that. */
enum { TTL_MS = 60000, SHORT_MS = 120, AT_ONCE_MS = 10000 };

struct scene {
    const struct contract *c;
    const char *isolation;
    /* of the lock */
    const char *name;
    /* the application's connection */
    void *session;
    /* has adopted it */
    rowlock_db *tx;
    /* the holder's own connection, or tx again */
    rowlock_db *own;
    /* waits long on a server, not long for a file */
    rowlock_db *rival;
    /* of own, of rival */
    rowlock_lock *lock, *wanted;
};

/* Makes the table of all scenes, which the application works on: (id, v, fence). */
void scene_table(const struct contract *c);
void scene_drop_table(const struct contract *c);

/* The lock is free, and the table is empty. shared: the holder's lock is of tx. */
struct scene scene_open(const struct contract *c, const char *isolation, const char *name,
                        bool shared);
void scene_close(struct scene *s);
#define owned_scene_ends scene_close

/* The isolation levels of a database, NULL after the last. The first one has the newest
 * snapshots. */
const char *const *scene_isolations(const struct contract *c);
/* no other client can write meanwhile */
bool scene_is_immediate(const struct scene *s);

/* On the application's connection, whatever its database. */
void begin_at(const struct contract *c, void *session, const char *isolation);
void scene_begin(const struct scene *s);
void scene_run(const struct scene *s, const char *sql);
/* writes one row */
void scene_work(const struct scene *s);

/* Checks, or steps with a check in them. */
/* as another client sees it */
void scene_work_stands(const struct scene *s, int rows, const char *what);
/* and commits */
void scene_goes_on(const struct scene *s, const rowlock_db *tx, const char *what);
void scene_guard(const struct scene *s, int want, const char *what);
/* returns the token */
int64_t scene_hold(const struct scene *s);
/* and its lease is over */
int64_t scene_held_too_long(const struct scene *s);
/* at once */
void scene_rival_tries(const struct scene *s, int want, const char *what);
void scene_taken_over(const struct scene *s, int64_t token);

/* a connection with a short statement deadline, of patience_ms */
rowlock_db *open_impatient(const struct contract *c, const char *url);
int64_t patience_ms(const struct contract *c);

/* The parts of the subject. */
void transaction_guards(const struct contract *c, const char *isolation);
void transaction_guards_once(const struct contract *c);
void transaction_fences(const struct contract *c, const char *isolation);
void transaction_fences_once(const struct contract *c);
