/* SPDX-License-Identifier: MIT
 *
 * The scene of tests about the application's own transaction: its connection, a holder's and a rival's,
 * and one lock that both want. What cannot fail in a sound test ends the program when it does.
 */
#ifndef SCENE_H
#define SCENE_H

#include "contract.h"

enum { TTL_MS = 30000, SHORT_MS = 120, AT_ONCE_MS = 600 };

struct scene {
    const struct contract *c;
    const char *isolation;
    const char *name; /* of the lock */
    void *session; /* the application's connection */
    rowlock_db *tx; /* has adopted it */
    rowlock_db *own; /* the holder's own connection, or tx again */
    rowlock_db *rival; /* whose statement deadline is short */
    rowlock_lock *lock, *wanted; /* of own, of rival */
};

/* The table that the application works on, (id, v, fence), for all scenes. */
void scene_table(const struct contract *c);
void scene_drop_table(const struct contract *c);

/* Nobody holds the lock, and the table is empty. shared: the holder's lock is of tx. */
struct scene scene_open(const struct contract *c, const char *isolation, const char *name,
                        bool shared);
void scene_close(struct scene *s);

/* The kinds of transaction that a database has, NULL after the last; the first one's snapshots are the
 * newest. */
const char *const *scene_isolations(const struct contract *c);
bool scene_is_immediate(const struct scene *s); /* nobody else can write meanwhile */

/* On the application's connection. */
void scene_begin(const struct scene *s);
void scene_run(const struct scene *s, const char *sql);
void scene_work(const struct scene *s); /* write one row */

/* Checks, or steps with a check in them. */
void scene_work_stands(const struct scene *s, int rows, const char *what); /* as others see it */
void scene_goes_on(const struct scene *s, const rowlock_db *tx, const char *what); /* and commits */
void scene_guard(const struct scene *s, int want, const char *what);
int64_t scene_hold(const struct scene *s, int64_t ttl_ms); /* the token */
void scene_rival_tries(const struct scene *s, int want, const char *what); /* at once */
void scene_taken_over(const struct scene *s, int64_t token);

void let_expire(void); /* a lease of SHORT_MS */
rowlock_error error_of(const rowlock_db *db);
rowlock_db *adopt_with(const struct contract *c, void *session, const char *prefix);
rowlock_db *open_impatient(const struct contract *c, const char *url);
int64_t patience_ms(const struct contract *c); /* its statement deadline */

/* The parts of the subject. */
void transaction_guards(const struct contract *c, const char *isolation);
void transaction_guards_once(const struct contract *c);
void transaction_fences(const struct contract *c, const char *isolation);
void transaction_fences_once(const struct contract *c);

#endif
