/* SPDX-License-Identifier: MIT
 * A lock over several independent databases: it is held while a majority of them has its row.
 *
 * It stands above the core, as a pool does: a handle has a port in place of a connection. A step
 * becomes a round: each member gets it in
 * a thread of its own, and as soon as a majority has answered the round is decided. What comes
 * later is dealt with in the member's thread (member.c).
 *
 * quorum->mutex guards the members' queues of jobs, the answers and the verdicts of rounds. It is
 * not locked while a statement is in flight. */
#ifndef RLK_QUORUM_H
#define RLK_QUORUM_H

#include <pthread.h>
#include <semaphore.h>

#include "core/copies.h"
#include "core/ask.h"

enum { RLK_MEMBERS_MOST = 5 };

static inline size_t rlk_majority(size_t members)
{
    return members / 2 + 1;
}

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
    struct rlk_ask *forward;
    /* Posted with each answer while it is open. */
    struct rlk_turn came;
    /* How many answers the caller has seen. */
    size_t seen;
    struct rlk_answer answer[RLK_MEMBERS_MOST];
    struct rlk_job job[RLK_MEMBERS_MOST];
    enum rlk_verdict verdict;
    /* GRANTED: the token that all rows of the grant get. */
    int64_t token;
    /* GRANTED and RENEWED: until then no other request can have a majority, by our clock. */
    int64_t until_us;
    /* RENEWED: the lease of a row that is given to a member. */
    int64_t ttl_us;
};

/* ---- members */

/* A step that a member still owes, because it could not be reached. */
struct rlk_owed {
    struct rlk_owed *next;
    enum rlk_step step;
    struct rlk_copies in;
    /* The row that it removes is dead by then, by our clock. */
    int64_t until_us;
};

/* What a member knows about the quorum. */
struct rlk_view {
    bool known;
    char quorum[64];
    char mark[RLK_MEMBERS_MOST][64];
    /* When each mark last moved on, by the clock of its member. */
    int64_t moved[RLK_MEMBERS_MOST];
    /* This member's clock when it was read. */
    int64_t now_us;
    /* When the reading began and ended, by our clock. */
    int64_t begun_us, read_us;
    size_t members;
    /* Which member it is itself, from 1. 0: none. */
    size_t self;
    /* Its server was started after it got its mark. */
    bool restarted;
};

/* A mark is the beginning of its database's identity, how many marks the member had before, and
 * random digits. */
enum { RLK_MARK = 33 };
void rlk_mark_write(char mark[RLK_MARK], const char *identity, uint32_t generation,
                    const char *random);
/* 0: it is no such mark. */
uint32_t rlk_mark_generation(const char *mark);
bool rlk_mark_is_of(const char *mark, const char *identity);

struct rlk_member {
    struct rlk_quorum *quorum;
    size_t number;
    rowlock_db *db;
    sem_t go;
    struct rlk_job *first, **end;
    size_t waiting;
    /* When it began the job that it is at. 0: none. */
    int64_t began_us;
    /* It could not be reached the last time. */
    bool away;
    /* Its mark is being moved on. */
    bool moving;
    /* It could not be used the last time. A warning has told so. */
    bool fails;
    /* What it knows about the quorum was read on this connection (db->connections), unless it must
     * be read again. */
    bool stale;
    /* Only the member's thread uses what follows. */
    uint64_t connection;
    int64_t asked_us;
    /* When we last moved its mark on. */
    int64_t moved_us;
    struct rlk_owed *owed;
    size_t owed_count;
};

/* The release under way. It may be sent again, but a member finds the row only once. */
struct rlk_releasing {
    char name[RLK_TEXT_MAX + 1];
    /* 0: none. */
    int64_t token;
    /* The members that have removed the row, a bit each. */
    unsigned removed;
};

struct rlk_quorum {
    pthread_mutex_t mutex;
    struct rlk_member member[RLK_MEMBERS_MOST];
    /* What each member knew when it was last read. */
    struct rlk_view view[RLK_MEMBERS_MOST];
    size_t count, majority;
    struct rlk_releasing releasing;
    /* The waiters' queue is on the first member. This is a second connection to it. */
    rowlock_db *queue;
    /* The last ticket is in that queue. */
    bool queued;
    /* Threads that run, and the handle. */
    unsigned users;
    /* No mark begins to move: the others could not write it down any more. */
    bool leaving;
    bool closing;
    void (*free_db)(rowlock_db *db);
};

/* quorum.c */
/* Takes the handles of the members, and one more for the queue. free_db closes a handle. NULL: no
 * memory, or no thread can be started; it has taken nothing then. */
struct rlk_quorum *rlk_quorum_new(rowlock_db *const *dbs, size_t count,
                                  void (*free_db)(rowlock_db *db));
/* Ends the threads. One whose member hangs ends later, by itself. */
void rlk_quorum_close(struct rlk_quorum *quorum);

/* round.c */
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
/* At most until then. */
bool rlk_round_wait_until(struct rlk_round *round, int64_t until_us);
/* Ends the caller's part. The answers are not valid after it. */
void rlk_round_end(struct rlk_round *round, enum rlk_verdict verdict);
/* With the mutex locked. One user less. */
void rlk_round_leave(struct rlk_round *round);
/* With the mutex locked. The member has answered, and the step was done. */
bool rlk_answer_done(const struct rlk_answer *answer);
/* The step was done, and has found or changed a row. */
bool rlk_answer_found(const struct rlk_answer *answer);
/* The token of the request's grant, by an answer to ACQUIRE. 0: it has none. */
int64_t rlk_answer_token(const struct rlk_answer *answer);
/* Gives an ask the row that is its answer. */
enum rlk_class rlk_quorum_give(struct rlk_ask *ask, const rowlock_value *cells, size_t count);
/* One user of the quorum less. The last one closes the handles. */
void rlk_quorum_leave(struct rlk_quorum *quorum);

/* voters.c */
/* Why a member does not vote that may do so for all we know. */
extern const char rlk_view_too_few[];
/* Reads what a database knows about its quorum. The caller sets view->read_us when it has. */
void rlk_step_members(struct rlk_ask *ask, struct rlk_view *view);
/* views: of all members. RLK_DONE: member i may vote. RLK_UNSENT: that is not known, since too few
 * are reached. Otherwise call->text says why it may not. */
enum rlk_class rlk_view_judge(const struct rlk_view *views, size_t count, size_t i,
                              struct rlk_call *call);
/* `by` has written down the mark that member i has. */
bool rlk_view_is_witness(const struct rlk_view *views, size_t i, size_t by);
/* One of the others knows a newer move of its mark than the member itself does: it has lost
 * commits, or its mark moved after it was read. */
bool rlk_view_is_behind(const struct rlk_view *views, size_t count, size_t i);
/* A mark that is to move on. */
struct rlk_move {
    size_t member;
    char mark[64];
    int64_t from, to;
};
/* With the mutex locked. Whether `by` should write down a move of the mark of member i: of its own,
 * if the last one is old, or of another's that has moved. */
bool rlk_view_move(const struct rlk_member *by, size_t i, struct rlk_move *out);

/* member.c */
/* context: struct rlk_member. */
void *rlk_member_work(void *context);

/* quorum_port.c */
extern const struct rlk_port rlk_quorum_port;
/* What a quorum is like, where core asks a driver that: it does one step at a time. It has no
 * operations. */
extern const struct rlk_driver rlk_quorum_driver;

/* quorum_grant.c, majority.c: one step each. */
enum rlk_class rlk_quorum_acquire(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_ask *ask);
enum rlk_class rlk_quorum_renew(struct rlk_quorum *quorum, struct rlk_call *call,
                                struct rlk_ask *ask);
enum rlk_class rlk_quorum_verify(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask);
enum rlk_class rlk_quorum_remove(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask);
enum rlk_class rlk_quorum_last(struct rlk_quorum *quorum, struct rlk_call *call,
                               struct rlk_ask *ask);
/* Sends it to the first of the members that answer. */
enum rlk_class rlk_quorum_forward(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_ask *ask);
/* The class of the answer that says why there is no majority. */
enum rlk_class rlk_quorum_failure(const struct rlk_round *round, struct rlk_call *call);

#endif
