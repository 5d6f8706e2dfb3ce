/* SPDX-License-Identifier: MIT
 * A lock over several independent databases: it is held while a majority of them has its row.
 *
 * To a handle the quorum is its driver, like a pool. A step becomes a round: each member gets it in
 * a thread of its own, and as soon as a majority has answered the round is decided. What comes
 * later is dealt with in the member's thread (member.c).
 *
 * quorum->mutex guards the members' queues of jobs, the answers and the verdicts of rounds. It is
 * not locked while a statement is in flight. */
#ifndef RLK_QUORUM_H
#define RLK_QUORUM_H

#include <pthread.h>
#include <semaphore.h>

#include "seam/db.h"

enum { RLK_MEMBERS_MOST = 5, RLK_ROUND_CELLS = 20 };

/* Copies of values, with their texts. */
struct rlk_copies {
    rowlock_value value[RLK_ROUND_CELLS];
    size_t count;
    char *texts;
};

/* ---- rounds */

struct rlk_answer {
    /* False: the member has not answered yet. */
    bool came;
    enum rlk_class class;
    struct rlk_call call;
    int64_t changed;
    bool has_row;
    struct rlk_copies row;
};

enum rlk_verdict {
    /* The caller waits for answers. */
    RLK_ROUND_OPEN,
    /* The caller has what it needs. */
    RLK_ROUND_OVER,
    /* Acquire: granted with round->token until round->until_us. */
    RLK_ROUND_GRANTED,
    /* Acquire: what a member still grants must go. */
    RLK_ROUND_REFUSED,
    /* Renew: a majority has the row until round->until_us. Others are still to be renewed. */
    RLK_ROUND_RENEWED
};

struct rlk_round;
struct rlk_job {
    struct rlk_job *next;
    struct rlk_round *round;
};

/* One step on its way to the members. The last one to leave it frees it. */
struct rlk_round {
    struct rlk_quorum *quorum;
    unsigned users;
    enum rlk_step step;
    struct rlk_copies in;
    int64_t sent_us, deadline_us;
    /* Removes something, so each member must carry it out, later if need be. */
    bool must;
    /* A member that lacks our row is given it (member.c). */
    bool tops_up;
    /* The answer's rows go to this query. The caller waits then. NULL: they are copied. */
    struct rlk_query *forward;
    /* Posted with each answer while it is open. */
    struct rlk_turn came;
    /* How many answers the caller has seen. */
    size_t seen;
    struct rlk_answer answer[RLK_MEMBERS_MOST];
    struct rlk_job job[RLK_MEMBERS_MOST];
    enum rlk_verdict verdict;
    int64_t token, until_us, ttl_us;
};

/* ---- members */

/* A step that a member still owes, because it could not be reached. */
struct rlk_debt {
    struct rlk_debt *next;
    enum rlk_step step;
    struct rlk_copies in;
    /* The row that it removes is dead by then, by our clock. */
    int64_t until_us;
};

/* What a member knows about the quorum. */
struct rlk_roll {
    bool known;
    char quorum[64];
    char mark[RLK_MEMBERS_MOST][64];
    size_t members;
    /* Which member it is itself, from 1. 0: none. */
    size_t self;
    /* Its server was started after it got its mark. */
    bool restarted;
};

struct rlk_member {
    struct rlk_quorum *quorum;
    size_t number;
    rowlock_db *db;
    pthread_t thread;
    sem_t go;
    struct rlk_job *first, **end;
    size_t waiting;
    /* It could not be reached the last time. */
    bool away;
    /* It was read on this connection (db->connections), unless it must be read again. */
    struct rlk_roll roll;
    bool stale;
    /* Only the member's thread uses what follows. A warning has told that it cannot be used. */
    bool fails;
    uint64_t connection;
    int64_t asked_us;
    struct rlk_debt *debts;
    size_t debt_count;
};

struct rlk_quorum {
    pthread_mutex_t mutex;
    struct rlk_member member[RLK_MEMBERS_MOST];
    size_t count, majority;
    /* The waiters' queue is on the first member. This is a second connection to it. */
    rowlock_db *queue;
    /* The last ticket is in that queue. */
    bool queued;
    /* Threads that run, and the handle. */
    unsigned users;
    bool closing;
    void (*free_db)(rowlock_db *db);
    /* The random numbers of requests that top up. */
    uint64_t seed, numbers;
};

/* quorum.c */
/* Takes the handles of the members, and one more for the queue. free_db closes a handle. NULL: no
 * memory, or no thread can be started; it has taken nothing then. */
struct rlk_quorum *rlk_quorum_new(rowlock_db *const *dbs, size_t count,
                                  void (*free_db)(rowlock_db *db));
/* Ends the threads. One whose member hangs ends later, by itself. */
void rlk_quorum_close(struct rlk_quorum *quorum);

/* round.c */
bool rlk_copy_values(struct rlk_copies *out, const rowlock_value *values, size_t count);
/* A lease of a member is longer than what its holder relies on: clocks may run at different rates.
 */
int64_t rlk_quorum_lease(int64_t ttl_us);
/* What the holder may rely on, of what is left in a member. */
int64_t rlk_quorum_reliable(int64_t left_us);
/* Sends a step to the members whose bit is set. NULL: no memory. */
struct rlk_round *rlk_round_begin(struct rlk_quorum *quorum, const struct rlk_round *like,
                                  unsigned members);
/* Waits for another answer than those it has returned for. False: there is none, or the deadline
 * has passed. */
bool rlk_round_wait(struct rlk_round *round);
/* Ends the caller's part. The answers are not valid after it. */
void rlk_round_end(struct rlk_round *round, enum rlk_verdict verdict);
/* With the mutex locked. One user less. */
void rlk_round_leave(struct rlk_round *round);
/* Gives a query the row that is its answer. */
enum rlk_class rlk_quorum_give(struct rlk_query *query, const rowlock_value *cells, size_t count);
/* One user of the quorum less. The last one closes the handles. */
void rlk_quorum_leave(struct rlk_quorum *quorum);

/* roll.c */
/* Why a member does not vote that may do so for all we know. */
extern const char rlk_roll_too_few[];
/* Takes a row of the step MEMBERS into a struct rlk_roll. */
int rlk_roll_take(void *out, const rowlock_value *cells, size_t count);
/* With the mutex locked. RLK_DONE: this member may vote. RLK_UNSENT: that is not known, since too
 * few are reached. */
enum rlk_class rlk_roll_judge(struct rlk_quorum *quorum, size_t i, struct rlk_call *call);

/* member.c */
void *rlk_member_work(void *member);

/* driver.c */
extern const struct rlk_backend rlk_quorum_driver;
/* The texts of a handle: which steps there are. */
void rlk_quorum_texts(struct rlk_texts *texts);

/* grant.c, majority.c: one step each. */
enum rlk_class rlk_quorum_acquire(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_query *query);
enum rlk_class rlk_quorum_renew(struct rlk_quorum *quorum, struct rlk_call *call,
                                struct rlk_query *query);
enum rlk_class rlk_quorum_verify(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_query *query);
enum rlk_class rlk_quorum_remove(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_query *query);
enum rlk_class rlk_quorum_last(struct rlk_quorum *quorum, struct rlk_call *call,
                               struct rlk_query *query);
/* Sends it to the first of the members that answer. */
enum rlk_class rlk_quorum_forward(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_query *query);
/* Of the answers, the class that says why there is no majority. */
enum rlk_class rlk_quorum_failure(const struct rlk_round *round, struct rlk_call *call);

#endif
