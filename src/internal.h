/* SPDX-License-Identifier: MIT
 * Handles, and what the files of core say to each other. Drivers see backend.h only. */
#ifndef RLK_INTERNAL_H
#define RLK_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <rowlock/rowlock.h>
#include <rowlock/versions.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "seam/backend.h"
#include "seam/statements.h"

#define RLK_DB_TAG 0x726C6462u /* "rldb" */
#define RLK_LOCK_TAG 0x726C6C6Bu /* "rllk" */

enum { RLK_SCHEMA_VERSION = 1 };

/* A sweep ends then, even if a server always says that more is left. */
#define RLK_SWEEP_US INT64_C(3600000000)

/* A ticket that may be in the queue of a lock. A new connection gives back those that no wait goes on with. */
struct rlk_ticket {
    struct rlk_ticket *next;
    const char *name, *owner;
    int64_t attempt; /* whose ticket it is; 0: there is none */
};

struct rowlock_db {
    uint32_t tag;
    pid_t pid; /* of the process that opened it */
    const struct rlk_backend *backend;
    void *conn;
    bool adopted;
    bool opened; /* conn is to be closed; it may be up or broken */
    bool up; /* as far as we know the connection works */
    struct rlk_witness
        *witness; /* of a transaction that may be run again; NULL: nobody needs one */
    bool in_tx; /* a transaction of ours is open, or was when the connection was lost */
    bool framed; /* that one is a part of one call, which begins it anew itself */
    bool schema_ok; /* our tables were looked at on this connection */
    int64_t away_us; /* our clock when the server was first found away; 0: it is there */
    bool away_told; /* a waiter has logged that it is away */
    bool several; /* the URL names other servers, which may take writes when this one does not */
    int found_version; /* of our tables when last looked at; 0: missing or half installed;
                          -1: no version of ours */
    char identity[64]; /* of the installation first met; empty: none yet */

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
    int wake[2]; /* rowlock_cancel() writes, a wait reads */
    uint64_t seed, attempts; /* see rlk_next_attempt() */
    uint64_t jitter;

    /* An acquire in a thread of ours, until its result is taken. */
    _Atomic(struct rlk_started *) started;
    pthread_t worker;
    atomic_bool working; /* the worker runs, or has not been joined */
    pthread_mutex_t starting;
};

/* One term of a lease: what a grant or a renewal gives. */
struct rlk_term {
    int64_t ttl_us;
    int64_t expires_us; /* by the database's clock */
    int64_t deadline_us; /* by ours; never after the lease's end */
};

/* A lease by our own clock, and what is known about its end. */
struct rlk_watch {
    int64_t deadline_us, expires_us, ttl_us; /* of the term that runs */
    int64_t margin_us; /* how much earlier than its end it is told lost */
    bool kept; /* a keeper renews it */
    bool failing; /* the keeper could not, or may not */
    bool over; /* the grant is gone, or was told lost */
    int64_t feared_us; /* the shortest ttl of a renewal that may yet be carried out; 0: none */
    rowlock_state seen; /* what was last asked for */
    int fd; /* readable when the state is worse than that; -1: nobody wants it */
};

enum rlk_lock_state { RLK_IDLE, RLK_HOLDING, RLK_GONE };

struct rowlock_lock {
    uint32_t tag;
    rowlock_db *db; /* NULL once that was closed */
    rowlock_lock *next, *previous;
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];

    enum rlk_lock_state state; /* RLK_GONE: the grant was found lost, releases are still due */
    bool attached; /* the grant is another's to release at close */
    bool attached_as; /* whether that is exclusive, or not, is known */
    int depth; /* how often entered */
    int64_t token;
    int permits; /* 0: held exclusively */
    int downgrade_open; /* to these permits an earlier downgrade may have been carried out; 0: none */
    struct rlk_watch watch;
    struct rlk_kept *kept; /* this lock in a keeper's hands; NULL: it never was */

    bool unproven; /* granted in a transaction that may not have been committed */
    atomic_bool started; /* an acquire was started for it that nobody has stepped for yet */
    _Atomic int64_t progress_us; /* when the holder last told of progress; from any thread */

    int64_t attempt; /* of the acquire going on */
    struct rlk_ticket ticket;
    bool attempt_open; /* its outcome is unknown: the next acquire asks with the same attempt */
    bool release_open; /* of this grant an earlier release may have been carried out, or was a part
                          of the caller's transaction */
    bool was_granted; /* the last try was */
    bool holder_known;
    struct rlk_row holder;
};

/* error.c: each setter returns the code it has set. */
void rlk_action(rowlock_db *db, const char *verb, const char *name);
int rlk_fail(rowlock_db *db, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int rlk_fail_class(rowlock_db *db, enum rlk_class class, const struct rlk_call *call);
void rlk_error_copy(rowlock_error *out, const rowlock_error *in);

/* ident.c */
bool rlk_is_utf8(const char *text, size_t length); /* without zero bytes */
int rlk_check_text(rowlock_db *db, const char *what, const char *text, bool may_be_empty);
int rlk_random_owner(char out[RLK_TEXT_MAX + 1]);
int rlk_random_seed(uint64_t *out);
int64_t rlk_next_attempt(rowlock_db *db);
void rlk_describe_us(rowlock_db *db, const char *program);

/* options.c: copy and check what the caller asks for. */
int rlk_take_db_options(rowlock_db *db, rowlock_db_options *out, const rowlock_db_options *theirs);
int rlk_take_acquire_options(rowlock_db *db, rowlock_acquire_options *out,
                             const rowlock_acquire_options *theirs);
int rlk_take_sweep_options(rowlock_db *db, rowlock_sweep_options *out,
                           const rowlock_sweep_options *theirs);
int rlk_take_table_options(rowlock_db *db, rowlock_table_options *out,
                           const rowlock_table_options *theirs);
int rlk_take_change_options(rowlock_db *db, rowlock_change_options *out,
                            const rowlock_change_options *theirs);
int rlk_take_retry_options(rowlock_db *db, rowlock_retry_options *out,
                           const rowlock_retry_options *theirs);
int rlk_take_walk_options(rowlock_db *db, rowlock_walk_options *out,
                          const rowlock_walk_options *theirs);
int rlk_take_once_options(rowlock_db *db, rowlock_once_options *out,
                          const rowlock_once_options *theirs);
int rlk_check_ttl(rowlock_db *db, int64_t ttl_ms);
int rlk_check_permits(rowlock_db *db, int32_t permits);
/* Fill a caller's struct, which begins with its size, as far as it reaches. */
void rlk_give_struct(void *theirs, const void *ours, size_t our_size);

/* wait.c: pauses are microseconds; tries counts up. */
int64_t rlk_jitter(rowlock_db *db, int64_t bound);
extern int (*rlk_poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
int64_t rlk_pause_retry(rowlock_db *db, int *tries);
int64_t rlk_pause_away(rowlock_db *db); /* between two attempts of a waiter to reconnect */
int64_t rlk_wait_end(int64_t wait_ms); /* our clock then; INT64_MAX: never */
bool rlk_take_cancel(rowlock_db *db); /* was it cancelled? */
int rlk_wake_open(rowlock_db *db);
void rlk_wake_close(rowlock_db *db);
bool rlk_wait_until(rowlock_db *db, int64_t until_us); /* false: cancelled */
void rlk_wait_plain(int64_t pause_us);

/* backends.c */
const struct rlk_backend *rlk_backend_find(const char *scheme, bool *known);

/* handle.c */
bool rlk_is_ours(const rowlock_db *db); /* this process's, and not a started acquire's */

/* Every public call begins here: is the handle ours to use? Sets the action for error texts. */
int rlk_enter(rowlock_db *db, const char *verb, const char *name);

/* step.c */

/* One step with all that core does around it: connect, check the tables, retry what lost a race,
 * reconnect and ask again after a lost answer. run() is called anew for each sending. */
struct rlk_step_call {
    enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call, void *context);
    void *context;
    int64_t not_after_us; /* nothing is sent or waited for after this; 0: no such end */
    int64_t contention_us; /* how long to go on against contention; 0: the statement deadline */
    int64_t patient_until_us; /* a waiter's: reconnect until then, if reconnect_ms ends earlier */
    bool heeds_cancel; /* rowlock_cancel() ends the pauses before it is sent again, as CANCELLED */
    bool without_tables; /* our tables may be missing */
    bool ends_transaction; /* a lost answer leaves it open what became of that */
    enum rlk_where where; /* inside the caller's transaction nothing is sent again */
    /* out */
    bool contended; /* gave up against contention; nothing was done */
    bool was_uncertain; /* an earlier sending may have been carried out */
    int64_t sent_us; /* our clock just before the last sending */
};
int rlk_do(rowlock_db *db, struct rlk_step_call *step);

/* Look at our tables now, if that was not done on this connection yet. */
int rlk_look_at_tables(rowlock_db *db, enum rlk_where where);
/* Are both the same installation? Looks at their tables where that was not done yet. */
int rlk_same_tables(rowlock_db *db, enum rlk_where where, rowlock_db *other);

/* A ticket may be in its queue from the first sending of an attempt until it has ended. */
void rlk_ticket_keep(rowlock_db *db, struct rlk_ticket *ticket, int64_t attempt);
void rlk_ticket_end(rowlock_db *db, struct rlk_ticket *ticket);
/* The step that ends one. */
enum rlk_class rlk_give_ticket_back(rowlock_db *db, struct rlk_call *call,
                                    struct rlk_ticket *ticket);

/* For those who open and close. */
enum rlk_class rlk_connect(rowlock_db *db, struct rlk_call *call);
enum rlk_class rlk_learn_names(rowlock_db *db, const struct rlk_hello *hello);
void rlk_disconnect(rowlock_db *db, bool in_child);

/* deadline.c. The watch of a kept lock is shared: rlk_kept_enter() first. */
rowlock_state rlk_watch_state(const struct rlk_watch *watch, int64_t now_us, int64_t *next_us);
int64_t rlk_watch_lost_us(const struct rlk_watch *watch); /* from when it is called lost */
void rlk_watch_begin(struct rlk_watch *watch, int64_t margin_us); /* of a new grant */
void rlk_watch_set(struct rlk_watch *watch, const struct rlk_term *term);
void rlk_watch_open(struct rlk_watch *watch); /* make its descriptor */
void rlk_watch_arm(struct rlk_watch *watch); /* after every other change */
/* A renewal got no answer. Until the grant ends it may be carried out after any other, so that no later
 * term can be relied upon for longer than its ttl. */
void rlk_watch_fear(struct rlk_watch *watch, int64_t ttl_us);
int64_t rlk_watch_reliable_us(const struct rlk_watch *watch, int64_t ttl_us);
void rlk_watch_limit(const struct rlk_watch *watch, struct rlk_term *term);
void rlk_watch_end(struct rlk_watch *watch);

/* keeper.c: a lock's place with a keeper. All of them do nothing for a lock that has none. */
void rlk_kept_enter(const rowlock_lock *lock); /* from here on its watch stays as it is, */
void rlk_kept_leave(const rowlock_lock *lock); /* until here */
/* Make a place, before the grant so that nothing can go wrong after it; begin and end to renew. After
 * rlk_kept_stop() no callback is under way. */
int rlk_kept_join(rowlock_lock *lock, const rowlock_acquire_options *options);
void rlk_kept_start(rowlock_lock *lock);
bool rlk_kept_stop(rowlock_lock *lock); /* was it being renewed? */
void rlk_kept_quit(rowlock_lock *lock); /* the handle is being closed */
/* Around a renewal that the holder sends by itself: what the keeper has sent meanwhile may count. */
uint64_t rlk_kept_serial(const rowlock_lock *lock);
void rlk_kept_renewed(rowlock_lock *lock, uint64_t serial, struct rlk_term *term);
/* On a connection of its own, which stop gives back to be closed; NULL: that is no keeper. */
int rlk_keeper_start(rowlock_keeper **out, rowlock_db *db);
rowlock_db *rlk_keeper_stop(rowlock_keeper *k);

/* lock.c */
bool rlk_knows(const rowlock_lock *lock); /* may be asked for what it knows */
bool rlk_holds(const rowlock_lock *lock);
void rlk_lock_unlink(rowlock_lock *lock); /* from its rowlock_db */

/* held.c */
void rlk_hold_nothing(rowlock_lock *lock);
/* What is held, or may have been granted without our knowledge, goes back as well as can be done. */
void rlk_release_quietly(rowlock_lock *lock);
/* most_us: it lasts no longer, whatever the server says; 0: not known. */
struct rlk_term rlk_term_of(int64_t sent_us, int64_t expires_us, int64_t now_us, int64_t most_us);
int rlk_renew(rowlock_lock *lock, int64_t ttl_us);
struct rlk_held rlk_held_of(const rowlock_lock *lock);
/* Not found where it was taken to be: may it stand in another place? Then held_of() says where. */
bool rlk_look_elsewhere(rowlock_lock *lock);
/* Does the grant stand? A plain read. not_after_us as in struct rlk_step_call. */
int rlk_verify(rowlock_db *db, const struct rlk_held *held, enum rlk_where where,
               int64_t not_after_us, struct rlk_verified *out);
int rlk_last_grant(rowlock_db *db, const char *name, bool *found, int64_t *token,
                   int64_t *granted_us);
void rlk_grant_from_row(rowlock_grant *out, const struct rlk_row *row);
/* Where a grant stands: there is one exclusive place, and as many others as there are tokens. */
static inline int64_t rlk_slot(int permits, int64_t token)
{
    return permits == 0 ? 0 : token;
}

/* acquire.c: one lock, or several at once, that are being acquired. */
struct rlk_acquiring {
    rowlock_db *db;
    rowlock_lock *const *locks; /* in the order of their names */
    size_t count;
    struct rlk_claim *claims;
    struct rlk_grant *grants; /* the last answer */
    size_t which; /* the lock that was in the way */
    int64_t until_us; /* the end of the wait; 0: no wait */
    rowlock_acquire_options options;
    struct rlk_step_call step;
};
int rlk_acquire(rowlock_lock *lock, const rowlock_acquire_options *options);
int rlk_try(struct rlk_acquiring *a); /* OK, BUSY, MISMATCH, or an error */
struct rlk_claim rlk_claim_of(rowlock_lock *lock, const rowlock_acquire_options *options);
void rlk_take_grant(rowlock_lock *lock, const struct rlk_row *row, int64_t sent_us,
                    int64_t margin_us);
int rlk_found_busy(rowlock_lock *lock, const struct rlk_grant *grant, int permits);

/* line.c: after a try was BUSY, until one is not. TIMEOUT, CANCELLED, DEADLOCK, or as rlk_try(). */
int rlk_wait_in_line(struct rlk_acquiring *a);
/* Give back the ticket that the lock may have in the queue. not_after_us as in struct rlk_step_call. */
void rlk_leave_line(rowlock_lock *lock, int64_t not_after_us);

/* lock_close.c */
void rlk_lock_abandon(rowlock_lock *lock); /* its rowlock_db, or it, is being closed */

/* rows/once.c */
void rlk_onces_abandon(rowlock_db *db); /* it is being closed */

/* start.c */
void rlk_started_stop(rowlock_db *db); /* cancels what was started, and waits for that */
void rlk_started_end(rowlock_lock *lock); /* the same, for a lock that is being closed */

/* close.c */
void rlk_db_free(rowlock_db *db);

#endif
