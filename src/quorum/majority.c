/* SPDX-License-Identifier: MIT
 * When a majority of the members has decided a step, and what a member does that answers later. A
 * lease ends when a majority would be free again: of three, at the second of their ends. */
#include "quorum/ballot.h"
#include "core/link.h"

/* A member with more jobs than these has fallen behind. */
enum { BACKLOG = 16 };

int64_t rlk_quorum_lease(int64_t ttl_us)
{
    return ttl_us + ttl_us / 1000 + 1000;
}

/* What the holder may rely on, of what is left in a member. */
static int64_t reliable(int64_t left_us)
{
    return left_us > 1000 ? (left_us - 1000) / 1001 * 1000 : 0;
}

/* ---- all answers */

static void count(struct rlk_ballot *b)
{
    bool acquires = b->step == RLK_STEP_ACQUIRE;
    b->came = b->found = b->missing = b->failed = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct rlk_answer *answer = &b->answer[i];
        unsigned bit = 1u << i;
        /* Until it has come, its member's thread writes it. */
        bool done = answer->came && answer->class == RLK_DONE;
        bool found = done && (acquires ? rlk_answer_token(answer) > 0 : rlk_answer_found(answer));
        b->came |= answer->came ? bit : 0;
        if (b->removed & bit || found)
            b->found |= bit;
        else if (done)
            b->missing |= bit;
        else if (answer->came)
            b->failed |= bit;
    }
}

/* If the members that are away could make a majority, it is an outage, and core sends the round
 * again. Otherwise the class is that of a member that refused. What is in the way of others
 * passes. */
static enum rlk_class failure(const struct rlk_ballot *b)
{
    enum rlk_class away = RLK_UNSENT, class = RLK_UNSENT;
    size_t unfit = 0;
    bool contended = false;
    for (size_t i = 0; i < b->count; i++) {
        const struct rlk_answer *answer = &b->answer[i];
        bool came = b->came & 1u << i;
        if (!came || answer->class == RLK_UNCERTAIN)
            away = RLK_UNCERTAIN;
        if (!came || answer->class == RLK_DONE || rlk_is_away(answer->class))
            continue;
        if (answer->class == RLK_CONTENTION) {
            contended = true;
            continue;
        }
        unfit++;
        class = answer->class;
    }
    if (unfit > b->count - rlk_majority(b->count))
        return class;
    return contended ? RLK_CONTENTION : away;
}

/* The members that have not answered. */
static unsigned pending(const struct rlk_ballot *b)
{
    return ((1u << b->count) - 1) & ~(b->found | b->missing | b->failed);
}

/* Of these, the ones that were away, or still have earlier jobs to do. */
static unsigned hanging(const struct rlk_ballot *b)
{
    unsigned set = 0;
    for (size_t i = 0; i < b->count; i++)
        if (b->standing[i].away || b->standing[i].waiting > 1)
            set |= 1u << i;
    return set & pending(b);
}

/* ---- the verdict */

static bool is_enough(const struct rlk_ballot *b)
{
    size_t voters = 0;
    for (size_t i = 0; b->views && i < b->count; i++)
        voters += rlk_view_vote(b->views, b->count, i) == RLK_VOTE_YES;
    if (b->views)
        return voters >= b->need;
    /* A majority that has answered is enough. */
    if (b->step == RLK_STEP_WITHDRAW || b->step == RLK_STEP_LAST)
        return rlk_members_in(b->found | b->missing) >= b->need;
    return rlk_members_in(b->found) >= b->need;
}

/* It does not wait for members that are known to hang, if the answers of all others decide. */
static bool waits(const struct rlk_ballot *b, int64_t now_us)
{
    bool needs_each = b->all || b->views || b->step == RLK_STEP_WITHDRAW ||
                      b->step == RLK_STEP_LAST || b->step == RLK_STEP_LIFT;
    if (!pending(b) || (!b->all && now_us >= b->deadline_us))
        return false;
    return needs_each || !b->came || pending(b) != hanging(b);
}

/* A member that is only busy may still have the row. */
static bool is_open(const struct rlk_ballot *b, int64_t now_us)
{
    unsigned up = 0;
    for (size_t i = 0; i < b->count; i++)
        up |= b->standing[i].away ? 0 : 1u << i;
    return pending(b) & up && now_us < b->deadline_us;
}

static enum rlk_verdict decide(const struct rlk_ballot *b, int64_t now_us)
{
    if (!b->all && is_enough(b))
        return b->step == RLK_STEP_RENEW ? RLK_ROUND_RENEWED : RLK_ROUND_ENOUGH;
    if (!b->views && rlk_members_in(b->missing) > b->count - rlk_majority(b->count))
        return RLK_ROUND_LACKING;
    /* The newest token of a majority tells whether a row that is gone was ours until then. */
    if (b->again && rlk_members_in(b->found | b->missing) >= b->need)
        return is_open(b, now_us) ? RLK_ROUND_OPEN : RLK_ROUND_LACKING;
    return waits(b, now_us) ? RLK_ROUND_OPEN : RLK_ROUND_FAILED;
}

/* ---- a lease */

static int64_t in_order(const int64_t *values, size_t count, size_t place)
{
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        for (size_t j = 0; j < count; j++)
            before += values[j] < values[i] || (j < i && values[j] == values[i]);
        if (before == place)
            return values[i];
    }
    return 0;
}

/* The cells of RENEW: when the lease expires, how long it had lapsed, the clock. VERIFY has the
 * first and the last. */
static void take_ends(struct rlk_ballot *b)
{
    int64_t left[RLK_MEMBERS_MOST] = {0}, lapsed[RLK_MEMBERS_MOST] = {0};
    size_t found = 0, majority = rlk_majority(b->count);
    for (size_t i = 0; i < b->count; i++) {
        const struct rlk_copies *row = &b->answer[i].row;
        if (!(b->found & 1u << i) || !b->answer[i].has_row)
            continue;
        b->now_us = row->value[row->count - 1].number;
        left[i] = row->value[0].number > b->now_us ? row->value[0].number - b->now_us : 0;
        lapsed[found++] = row->count > 2 ? row->value[1].number : 0;
    }
    b->left_us = reliable(in_order(left, b->count, b->count - majority));
    b->lapsed_us = in_order(lapsed, found, majority - 1);
    b->until_us = b->sent_us + b->left_us;
    if (!b->ttl_us)
        b->ttl_us = b->left_us;
}

/* A member that hangs, or that could not be used the last time, may not have it. */
static bool is_at_risk(const struct rlk_ballot *b)
{
    unsigned at_risk = b->missing | b->failed | hanging(b);
    for (size_t i = 0; i < b->count; i++)
        if (b->standing[i].fails)
            at_risk |= pending(b) & 1u << i;
    return rlk_members_in(at_risk) >= b->count - rlk_majority(b->count);
}

void rlk_ballot_next(struct rlk_ballot *b, int64_t now_us)
{
    count(b);
    b->look_us = b->all ? INT64_MAX : b->deadline_us;
    b->verdict = b->step == RLK_STEP_ACQUIRE ? rlk_grant_next(b, now_us) : decide(b, now_us);
    b->at_risk = is_at_risk(b);
    b->class = failure(b);
    bool has_lease = b->step == RLK_STEP_RENEW || b->step == RLK_STEP_VERIFY;
    if (has_lease && (b->verdict == RLK_ROUND_RENEWED || b->verdict == RLK_ROUND_ENOUGH))
        take_ends(b);
}

/* ---- jobs of members */

static bool is_granted(const struct rlk_ballot *b, int64_t now_us)
{
    bool granted = b->verdict == RLK_ROUND_GRANTED || b->verdict == RLK_ROUND_LIFT;
    return granted && now_us < b->until_us;
}

/* A member that is only slow joins a grant. The next renewal gives the row to one with more to
 * do. */
static bool is_wanted(const struct rlk_ballot *b, size_t member, int64_t now_us)
{
    if (b->verdict == RLK_ROUND_RENEWED)
        return now_us < b->deadline_us;
    return b->must || b->verdict == RLK_ROUND_OPEN ||
           (is_granted(b, now_us) && b->standing[member].waiting < BACKLOG);
}

/* While the lease lasts, no other request can have had a majority. So the late row of an ACQUIRE
 * may join the grant. */
enum rlk_job_act rlk_job_next(const struct rlk_ballot *b, size_t member, bool answered,
                              int64_t now_us)
{
    const struct rlk_answer *answer = &b->answer[member];
    if (!answered && b->tops_up)
        return RLK_JOB_TOP_UP;
    if (!answered)
        return is_wanted(b, member, now_us) ? RLK_JOB_SEND : RLK_JOB_LEAVE;
    if (b->verdict == RLK_ROUND_RENEWED && answer->class == RLK_DONE && !answer->has_row)
        return RLK_JOB_TOP_UP;
    if (b->step != RLK_STEP_ACQUIRE)
        return RLK_JOB_LEAVE;
    if (answer->class == RLK_UNCERTAIN || answer->class == RLK_MISFIT)
        return RLK_JOB_OWE;
    int64_t token = rlk_answer_token(answer);
    if (token == 0 || b->verdict == RLK_ROUND_OPEN)
        return RLK_JOB_LEAVE;
    if (b->verdict == RLK_ROUND_RELEASED && token == b->token)
        return RLK_JOB_LEAVE;
    if (!is_granted(b, now_us))
        return RLK_JOB_RETRACT;
    return token == b->token ? RLK_JOB_LEAVE : RLK_JOB_LIFT;
}
