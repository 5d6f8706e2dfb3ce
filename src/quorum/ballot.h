/* SPDX-License-Identifier: MIT
 * A step that was put to the members of a quorum, and what their answers come to.
 *
 * Two machines: majority.c, and quorum_grant.c for ACQUIRE. They wait for nothing, read no clock,
 * lock nothing, and send nothing. round.c asks them what comes next after each answer. */
#ifndef RLK_BALLOT_H
#define RLK_BALLOT_H

#include "core/copies.h"
#include "quorum/voters.h"

/* The parameters of ACQUIRE, and the cells of its answer. */
enum { NAME, PERMITS, OWNER, REQUEST, TTL, TICKET = 9, VALUES = 12 };
enum { TOKEN, OURS, SETTLING, BEHIND, NOW, ROW, ROW_OWNER = ROW + 3, ROW_TOKEN };

struct rlk_answer {
    /* False: the member has not answered yet. */
    bool came;
    enum rlk_class class;
    struct rlk_call call;
    int64_t changed;
    bool has_row;
    struct rlk_copies row;
};

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
    /* The step was done by enough members. */
    RLK_ROUND_ENOUGH,
    /* So many members lack the row that no majority can have it. */
    RLK_ROUND_LACKING,
    /* Neither. The class says why. */
    RLK_ROUND_FAILED,
    /* Renewed until until_us. Members that lack the row get it (a top-up). */
    RLK_ROUND_RENEWED,
    /* A majority has granted. Raise the rows of `lower` to the token, say which were raised, and
     * look again. */
    RLK_ROUND_RAISE,
    /* Granted with the token until until_us. */
    RLK_ROUND_GRANTED,
    /* Not granted. The rows of `found` must go, and those of members that grant later. */
    RLK_ROUND_REFUSED,
    /* The caller waits no more. */
    RLK_ROUND_OVER
};

/* A set of members is a bit each. */
struct rlk_ballot {
    enum rlk_step step;
    size_t count;
    /* So many must have done a step. */
    size_t need;
    /* When it was sent, and how long the caller waits. */
    int64_t sent_us, deadline_us;
    /* The lease that is asked for. 0, for RENEW: as long as the last time. */
    int64_t ttl_us;
    /* The caller waits for each answer, beyond the deadline too. */
    bool all;
    /* It waits until enough members may vote. NULL: it waits for answers. */
    const struct rlk_view *views;
    struct rlk_answer answer[RLK_MEMBERS_MOST];
    struct rlk_standing standing[RLK_MEMBERS_MOST];
    /* RELEASE: these have removed the row at an earlier attempt. */
    unsigned removed;
    /* After RAISE: these were raised. */
    unsigned raised;

    /* out */
    enum rlk_verdict verdict;
    int64_t look_us;
    /* The answers that have come; then one of three: has done the step, has nothing to do it with,
     * could not do it. ACQUIRE: has granted, has refused, could not do it. */
    unsigned came, found, missing, failed;
    /* FAILED, and REFUSED without a row. */
    enum rlk_class class;
    /* ACQUIRE: another request has taken the members, and no fault has. */
    bool raced;
    /* RENEW, VERIFY: what a majority of the members still gives, and how long that had ended. */
    int64_t left_us, lapsed_us, now_us;
    /* RENEW: one more loss may end the lease. */
    bool at_risk;
    int64_t until_us;
    /* ACQUIRE: the token of all rows of the grant, and the members whose row has a lower one. */
    int64_t token;
    unsigned lower;
    /* ACQUIRE: the answer that the caller gets. NULL: none. */
    const struct rlk_answer *row;
};

/* What a member's thread does with its own answer, after the verdict. */
enum rlk_late {
    /* The answer was counted, or there is nothing to do. */
    RLK_LATE_NOTHING,
    /* Its row gets the token of the grant. */
    RLK_LATE_RAISE,
    /* Its row must go. */
    RLK_LATE_RETRACT,
    /* It may have a row that must go: that is tried later. */
    RLK_LATE_OWE,
    /* It is given the row that it lacks. */
    RLK_LATE_TOP_UP
};

static inline size_t rlk_members_in(unsigned set)
{
    size_t count = 0;
    for (; set; set &= set - 1)
        count++;
    return count;
}

/* majority.c */
/* Looks at the answers. It may be asked again until the verdict is neither OPEN nor RAISE. */
void rlk_ballot_next(struct rlk_ballot *b, int64_t now_us);
/* Sorts the answers into came, found, missing and failed. */
void rlk_ballot_count(struct rlk_ballot *b);
/* The class that says why there is no majority. */
enum rlk_class rlk_ballot_failure(const struct rlk_ballot *b);
/* The member's thread has a job of it. Must it still be sent? */
bool rlk_ballot_wants(const struct rlk_ballot *b, size_t member, int64_t now_us);
/* The member has answered at that time. */
enum rlk_late rlk_ballot_late(const struct rlk_ballot *b, size_t member, int64_t now_us);
/* A member was asked to make a row that becomes that of a renewed lease. */
enum rlk_late rlk_claim_late(const struct rlk_answer *claim, int64_t until_us, int64_t now_us);
/* The step was done, and has found or changed a row. */
bool rlk_answer_found(const struct rlk_answer *answer);
/* The token of the request's grant, by an answer to ACQUIRE. 0: it has none. */
int64_t rlk_answer_token(const struct rlk_answer *answer);
/* A lease of a member is longer than what its holder relies on: clocks may run at different rates.
 */
int64_t rlk_quorum_lease(int64_t ttl_us);
/* What the holder may rely on, of what is left in a member. */
int64_t rlk_quorum_reliable(int64_t left_us);

/* quorum_grant.c: the verdict on an ACQUIRE. */
enum rlk_verdict rlk_grant_next(struct rlk_ballot *b, int64_t now_us);

#endif
