/* SPDX-License-Identifier: MIT
 * The machines of a quorum: which members may vote (voters.c), and what the answers to a step come
 * to (majority.c, and quorum_grant.c for ACQUIRE). They wait for nothing, read no clock, lock
 * nothing, and send nothing. member.c and round.c do what they say. */
#ifndef RLK_BALLOT_H
#define RLK_BALLOT_H

#include "core/port.h"

#include <string.h>

enum { RLK_MEMBERS_MOST = 5 };

static inline size_t rlk_majority(size_t members)
{
    return members / 2 + 1;
}

/* ---- who may vote */

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
enum { RLK_MARK = 33, RLK_MARK_IDENTITY = 16, RLK_MARK_GENERATION = 8 };
static inline bool rlk_mark_is_of(const char *mark, const char *identity)
{
    return strncmp(mark, identity, RLK_MARK_IDENTITY) == 0;
}
/* 0: it is no such mark. */
uint32_t rlk_mark_generation(const char *mark);

enum rlk_vote {
    RLK_VOTE_YES,
    /* It may vote for all we know, but too few are reached to tell. */
    RLK_VOTE_OPEN,
    /* The others say why it may not. */
    RLK_VOTE_NO_MEMBER,
    RLK_VOTE_MISPLACED,
    RLK_VOTE_RESTARTED,
    RLK_VOTE_STRANGER,
    RLK_VOTE_RESTORED,
    /* Not yet: read what it knows, and look again. */
    RLK_VOTE_READ,
    /* The same, and no view of any member counts any more: it may have joined. */
    RLK_VOTE_READ_ALL
};
/* views: of all members. May member i vote? */
enum rlk_vote rlk_view_vote(const struct rlk_view *views, size_t count, size_t i);
/* What is remembered while a member's thread finds out whether it may vote. Zeros begin. */
struct rlk_looking {
    int readings;
    bool has_read, doubted;
};
/* What comes next. current: its view was read on the connection that it has, and is not doubted. */
enum rlk_vote rlk_vote_next(struct rlk_looking *l, const struct rlk_view *views, size_t count,
                            size_t i, bool current, int64_t now_us);
/* `by` has written down the mark that member i has. */
static inline bool rlk_view_is_witness(const struct rlk_view *views, size_t i, size_t by)
{
    const struct rlk_view *own = &views[i], *its = &views[by];
    return its->known && strcmp(its->quorum, own->quorum) == 0 &&
           strcmp(its->mark[i], own->mark[i]) == 0;
}
/* One of the others knows a newer move of its mark than the member itself does: it has lost
 * commits, or its mark moved after it was read. */
bool rlk_view_is_behind(const struct rlk_view *views, size_t count, size_t i);

/* A mark that is to move on. */
struct rlk_move {
    size_t member;
    char mark[64];
    int64_t from, to;
};
/* Whether member `by` should write down a move of the mark of member i: of its own, if the last one
 * is old, or of another's that has moved. moved_us: when we last moved its own, INT64_MAX: it does
 * not move any more. */
bool rlk_view_move(const struct rlk_view *views, size_t by, size_t i, int64_t moved_us,
                   int64_t now_us, struct rlk_move *out);

/* ---- a step, and the answers to it */

/* The parameters of ACQUIRE, and the cells of its answer. RENEW and its kin, and LIFT, have the
 * token of a row in place of the number of a request. */
enum { NAME, PERMITS, OWNER, REQUEST, TTL, HELD_TOKEN = REQUEST, TICKET = 9, VALUES = 12 };
enum { TOKEN, OURS, SETTLING, BEHIND, NOW, ROW, ROW_OWNER = ROW + 3, ROW_TOKEN };
/* Of a row to retract whose token is not known. */
#define ANY_TOKEN INT64_MAX

struct rlk_answer {
    /* False: the member has not answered yet. */
    bool came;
    enum rlk_class class;
    struct rlk_call call;
    int64_t changed;
    bool has_row;
    struct rlk_copies row;
    /* Its rows go there instead. The caller waits then. NULL: the first is copied. */
    struct rlk_ask *forward;
};

/* The step was done, and has found or changed a row. */
static inline bool rlk_answer_found(const struct rlk_answer *answer)
{
    return answer->class == RLK_DONE && (answer->has_row || answer->changed > 0);
}

/* How a member is doing. */
struct rlk_standing {
    /* It could not be reached the last time. */
    bool away;
    /* It could not be used the last time. A warning has told so. */
    bool fails;
    /* Its jobs that wait. */
    size_t waiting;
    /* When it began the job that it is at. 0: none. */
    int64_t began_us;
};

/* What comes next. */
enum rlk_verdict {
    /* Wait for another answer, or until look_us. */
    RLK_ROUND_OPEN,
    /* Enough members have done the step. */
    RLK_ROUND_ENOUGH,
    /* So many members lack the row that no majority can have it. */
    RLK_ROUND_LACKING,
    /* Neither, or the caller waits no more. */
    RLK_ROUND_FAILED,
    /* Renewed until until_us. Members that lack the row get it (a top-up). */
    RLK_ROUND_RENEWED,
    /* A majority has granted. Lift the rows of members in `found` and not in `level` to the token,
     * until as many as needed have it. Say which have it, and look again. */
    RLK_ROUND_LIFT,
    /* Granted with the token until until_us. */
    RLK_ROUND_GRANTED,
    /* It was. A release with the token follows, in all members. */
    RLK_ROUND_RELEASED,
    /* The rows of `found` must go, and those of members that grant later. */
    RLK_ROUND_REFUSED
};

/* A set of members is a bit each. */
struct rlk_ballot {
    enum rlk_step step;
    /* The members, and how many of them must do the step. */
    size_t count, need;
    /* When it was sent, how long the caller waits, and the lease that is asked for. A ttl of 0: as
     * the last time. */
    int64_t sent_us, deadline_us, ttl_us;
    /* The caller waits for each answer, beyond the deadline too. */
    bool all;
    /* It cleans up, so each member must carry it out, later if need be. */
    bool must;
    /* A member that lacks the row is given it, until until_us for ttl_us. */
    bool tops_up;
    /* It waits until enough members may vote. NULL: it waits for answers. */
    const struct rlk_view *views;
    struct rlk_answer answer[RLK_MEMBERS_MOST];
    struct rlk_standing standing[RLK_MEMBERS_MOST];
    /* LIFT and RETRACT: the tokens that the members' rows have now. */
    int64_t from[RLK_MEMBERS_MOST];
    /* RELEASE: these have removed the row at an earlier attempt. After LIFT: these were lifted. */
    unsigned removed, lifted;
    /* RELEASE: there was an earlier attempt. */
    bool again;

    /* out */
    enum rlk_verdict verdict;
    int64_t look_us;
    /* The answers that have come. Then one of three: it has done the step, had nothing to do it
     * with, could not do it. ACQUIRE: it has granted, has refused, could not do it. */
    unsigned came, found, missing, failed;
    /* Why it is FAILED, or REFUSED without a row. */
    enum rlk_class class;
    /* RENEW, VERIFY: what a majority of the members still gives, and how long that had ended. */
    int64_t left_us, lapsed_us, now_us;
    /* RENEW: one more loss may end the lease. */
    bool at_risk;
    /* REFUSED: another request has taken the members, and no fault has. */
    bool raced;
    int64_t until_us;
    /* The token of all rows of a grant, and the members that gave it. */
    int64_t token;
    unsigned level;
    /* GRANTED, REFUSED: the answer that the caller gets. NULL: none. */
    const struct rlk_answer *row;
};

/* What a member's thread does next with its job. */
enum rlk_job_act {
    RLK_JOB_LEAVE,
    RLK_JOB_SEND,
    /* The row that it has made gets the token of the grant. */
    RLK_JOB_LIFT,
    /* That row must go. */
    RLK_JOB_RETRACT,
    /* There may be such a row: it is removed later. */
    RLK_JOB_OWE,
    /* The member is given the row that it lacks. */
    RLK_JOB_TOP_UP
};

static inline size_t rlk_members_in(unsigned set)
{
    size_t count = 0;
    for (; set; set &= set - 1)
        count++;
    return count;
}

/* majority.c */
/* Looks at the answers. It may be asked again until the verdict is neither OPEN nor LIFT. */
void rlk_ballot_next(struct rlk_ballot *b, int64_t now_us);
/* It is told when the member's thread comes to the job, and when it has its answer. */
enum rlk_job_act rlk_job_next(const struct rlk_ballot *b, size_t member, bool answered,
                              int64_t now_us);
/* A lease of a member is longer than what its holder relies on: clocks may run at different rates.
 */
int64_t rlk_quorum_lease(int64_t ttl_us);

/* quorum_grant.c */
/* The token of the request's grant, by an answer to ACQUIRE. 0: it has none. */
int64_t rlk_answer_token(const struct rlk_answer *answer);
/* The verdict on an ACQUIRE. */
enum rlk_verdict rlk_grant_next(struct rlk_ballot *b, int64_t now_us);

#endif
