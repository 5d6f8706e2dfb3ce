/* SPDX-License-Identifier: MIT
 * A lock over several independent databases: it is held while a majority of them has its row.
 *
 * It stands above the core, as a pool does: a handle has a port in place of a connection. A step
 * becomes a round: each member gets it in a thread of its own, until a machine (ballot.h) has a
 * verdict on the answers. What comes later is dealt with in the member's thread.
 *
 * quorum->mutex guards the members' queues of jobs, their views, and the ballots of rounds. It is
 * not locked while a statement is in flight. An answer is its member's until it has come. */
#ifndef RLK_QUORUM_H
#define RLK_QUORUM_H

#include <semaphore.h>

#include "base/thread.h"
#include "core/ask.h"
#include "quorum/ballot.h"

/* ---- rounds */

struct rlk_round;
struct rlk_job {
    struct rlk_job *next;
    struct rlk_round *round;
};

/* One step on its way to the members. The last one to leave it frees it. */
struct rlk_round {
    struct rlk_quorum *quorum;
    unsigned users;
    struct rlk_copies in;
    /* Posted with each answer while the verdict is open. */
    struct rlk_turn came;
    struct rlk_ballot ballot;
    struct rlk_job job[RLK_MEMBERS_MOST];
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

struct rlk_member {
    struct rlk_quorum *quorum;
    size_t number;
    rowlock_db *db;
    struct rlk_turn go;
    /* Its jobs that wait, and the one that it is at. */
    struct rlk_job *first, **end, *at;
    struct rlk_standing standing;
    /* Its mark is being moved on. */
    bool moving;
    /* What it knows about the quorum was read on this connection (db->connections), unless it must
     * be read again. */
    bool stale;
    /* Only the member's thread uses what follows. */
    uint64_t connection;
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
    size_t count;
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

/* workers.c */
/* Takes the handles of the members, and one more for the queue. free_db closes a handle. NULL: no
 * memory, or no thread can be started; it has taken nothing then. */
struct rlk_quorum *rlk_quorum_new(rowlock_db *const *dbs, size_t count,
                                  void (*free_db)(rowlock_db *db));
/* Ends the threads. One whose member hangs ends later, by itself. */
void rlk_quorum_close(struct rlk_quorum *quorum);

/* round.c */
/* Sends a step and its values to the members whose bit is set. NULL: no memory. */
struct rlk_round *rlk_round_begin(struct rlk_quorum *quorum, const struct rlk_ballot *like,
                                  const rowlock_value *in, unsigned members);
/* Waits for the machine's verdict. The answers that it knows may be read then. */
enum rlk_verdict rlk_round_decide(struct rlk_round *round);
/* Ends the caller's part. The answers are not valid after it. */
void rlk_round_end(struct rlk_round *round);
/* With the mutex locked. One user less. */
void rlk_round_leave(struct rlk_round *round);
/* After the verdict: says in the call why there is no majority. */
enum rlk_class rlk_round_failure(const struct rlk_round *round, struct rlk_call *call);

/* member.c */
/* In the thread of its member: sends a step once. */
void rlk_member_send(struct rlk_member *m, enum rlk_step step, const rowlock_value *in,
                     int64_t deadline_us, struct rlk_answer *answer);
/* The same for a step that cleans up. */
enum rlk_class rlk_member_clean(struct rlk_member *m, enum rlk_step step, const rowlock_value *in,
                                bool *changed);
/* Why a member does not vote that may do so for all we know. */
extern const char rlk_view_too_few[];
/* Reads what a database knows about its quorum. The caller sets view->read_us when it has. */
void rlk_step_members(struct rlk_ask *ask, struct rlk_view *view);
/* views: of all members. RLK_DONE: member i may vote. RLK_UNSENT: that is not known, since too few
 * are reached. Otherwise call->text says why it may not. */
enum rlk_class rlk_view_judge(const struct rlk_view *views, size_t count, size_t i,
                              struct rlk_call *call);
/* May the member vote? It reads first what the member knows, if need be. */
enum rlk_class rlk_member_vote(struct rlk_member *m, struct rlk_call *call, int64_t deadline_us);
/* Writes down the moves of marks. */
void rlk_member_move_marks(struct rlk_member *m);
void rlk_mark_write(char mark[RLK_MARK], const char *identity, uint32_t generation,
                    const char *random);

/* quorum_port.c */
extern const struct rlk_port rlk_quorum_port;
/* What a quorum is like, where core asks a driver that: it does one step at a time. It has no
 * operations. */
extern const struct rlk_driver rlk_quorum_driver;

/* quorum_steps.c: what a majority does for a step. */
enum rlk_class rlk_quorum_ask(struct rlk_quorum *quorum, struct rlk_call *call,
                              struct rlk_ask *ask);
/* Gives an ask the row that is its answer. */
static inline enum rlk_class rlk_quorum_give(struct rlk_ask *ask, const rowlock_value *cells,
                                             size_t count)
{
    return rlk_query_row(ask, cells, count) < 0 ? RLK_MISFIT : RLK_DONE;
}

#endif
