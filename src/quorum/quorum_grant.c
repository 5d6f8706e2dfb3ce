/* SPDX-License-Identifier: MIT
 * A grant of a quorum. Each member that is free adds 1 to its counter and makes a row. The token is
 * the highest that one of a majority gave. It is granted only when a majority has the row at that
 * token: members below it are lifted, by our own request's row only. Two grants share a member. So
 * no two have the same token, and one that begins after another was returned has a higher one. This
 * needs no clock. */
#include "quorum/acquire_cells.h"
#include "quorum/quorum.h"

#include <string.h>

struct attempt {
    struct rlk_quorum *quorum;
    struct rlk_round *round;
    size_t granted, refused, failed, pending;
    /* A member has refused, or could not decide: another request may be on its way. */
    bool contended;
    /* Pending members that were away at the last round, or hang. */
    size_t hanging;
    /* When the next of them counts as one that hangs. */
    int64_t hangs_us;
    /* The members that have granted, a bit each. */
    unsigned members;
    int64_t token[RLK_MEMBERS_MOST], highest;
    /* The grant of an earlier attempt was found, and may end earlier. */
    const struct rlk_answer *found;
    /* A member that has named the holder. */
    const struct rlk_answer *holder;
    /* How many members say that it is the same holder. */
    size_t agree;
    /* The first member has said that others are before us, or that the lock is being changed. */
    const struct rlk_answer *behind;
};

static bool has_holder(const struct rlk_answer *answer)
{
    return answer->has_row && answer->row.count > ROW &&
           answer->row.value[OURS].kind != ROWLOCK_NULL;
}

static bool same_holder(const struct rlk_answer *a, const struct rlk_answer *b)
{
    const rowlock_value *left = &a->row.value[ROW_OWNER], *right = &b->row.value[ROW_OWNER];
    return left->length == right->length && memcmp(left->text, right->text, left->length) == 0;
}

static void count_refusal(struct attempt *a, const struct rlk_answer *answer)
{
    a->refused++;
    if (answer == &a->round->answer[0] && answer->has_row && !has_holder(answer))
        a->behind = answer;
    if (!has_holder(answer))
        return;
    size_t agree = 0;
    for (size_t i = 0; i < a->quorum->count; i++) {
        const struct rlk_answer *other = &a->round->answer[i];
        agree += rlk_answer_done(other) && rlk_answer_token(other) == 0 && has_holder(other) &&
                 same_holder(other, answer);
    }
    if (!a->holder || agree > a->agree) {
        a->holder = answer;
        a->agree = agree;
    }
}

static void count_pending(struct attempt *a, const struct rlk_member *m)
{
    enum { HANGS_US = 1000000 };
    int64_t hangs_us = (m->began_us ? m->began_us : a->round->sent_us) + HANGS_US;
    a->pending++;
    if (m->away || hangs_us <= rlk_now_us())
        a->hanging++;
    else if (hangs_us < a->hangs_us)
        a->hangs_us = hangs_us;
}

/* With the mutex locked. */
static void count_answers(struct attempt *a)
{
    struct rlk_quorum *quorum = a->quorum;
    a->granted = a->refused = a->failed = a->pending = a->hanging = 0;
    a->members = 0;
    a->hangs_us = INT64_MAX;
    for (size_t i = 0; i < quorum->count; i++) {
        const struct rlk_answer *answer = &a->round->answer[i];
        int64_t token = rlk_answer_done(answer) ? rlk_answer_token(answer) : 0;
        a->token[i] = token;
        if (!answer->came) {
            count_pending(a, &quorum->member[i]);
        } else if (token > 0) {
            a->granted++;
            a->members |= 1u << i;
            a->highest = token > a->highest ? token : a->highest;
            if (answer->row.value[TOKEN].kind == ROWLOCK_NULL)
                a->found = answer;
        } else if (answer->class == RLK_DONE) {
            count_refusal(a, answer);
        } else {
            a->failed++;
            a->contended = a->contended || answer->class == RLK_CONTENTION;
        }
    }
    a->contended = a->contended || a->refused > 0;
}

static void count(struct attempt *a)
{
    pthread_mutex_lock(&a->quorum->mutex);
    count_answers(a);
    pthread_mutex_unlock(&a->quorum->mutex);
}

/* The rows that were granted go. Members that grant later see the verdict. */
static void take_back(struct attempt *a)
{
    const rowlock_value *in = a->round->in.value;
    struct rlk_round like = {.step = RLK_STEP_RETRACT,
                             .must = true,
                             .deadline_us = a->round->deadline_us,
                             .in = {.value = {in[NAME], in[OWNER], in[REQUEST]}, .count = 3}};
    struct rlk_round *round = a->members ? rlk_round_begin(a->quorum, &like, a->members) : NULL;
    if (round)
        rlk_round_end(round, RLK_ROUND_OVER);
}

/* The first member removes our ticket when it grants. If the others have decided, it may not. */
static void leave_queue(struct attempt *a)
{
    const rowlock_value *in = a->round->in.value;
    struct rlk_round like = {.step = RLK_STEP_LEAVE,
                             .must = true,
                             .deadline_us = a->round->deadline_us,
                             .in = {.value = {in[NAME], in[REQUEST]}, .count = 2}};
    bool left = in[TICKET].number == 0 || (a->members & 1u);
    struct rlk_round *round = left ? NULL : rlk_round_begin(a->quorum, &like, 1u);
    if (round)
        rlk_round_end(round, RLK_ROUND_OVER);
}

static struct rlk_round *begin_lift(struct attempt *a, size_t i)
{
    const rowlock_value *in = a->round->in.value;
    struct rlk_round like = {
        .step = RLK_STEP_LIFT,
        .must = true,
        .deadline_us = a->round->deadline_us,
        .in = {.value = {in[NAME], in[OWNER], in[REQUEST], rowlock_int(a->token[i]),
                         rowlock_int(a->highest), in[OWNER]},
               .count = 6}};
    return rlk_round_begin(a->quorum, &like, 1u << i);
}

static bool end_lift(struct attempt *a, size_t i, struct rlk_round *round, bool waits)
{
    while (waits && rlk_round_wait(round))
        ;
    pthread_mutex_lock(&a->quorum->mutex);
    const struct rlk_answer *answer = &round->answer[i];
    bool lifted = rlk_answer_done(answer) && rlk_answer_found(answer);
    pthread_mutex_unlock(&a->quorum->mutex);
    rlk_round_end(round, RLK_ROUND_OVER);
    return lifted;
}

/* Members of the majority whose token is lower get the highest. Returns how many have it then. */
static size_t lift(struct attempt *a)
{
    struct rlk_round *round[RLK_MEMBERS_MOST] = {NULL};
    size_t level = 0;
    for (size_t i = 0; i < a->quorum->count; i++) {
        level += a->token[i] == a->highest;
        if (a->token[i] > 0 && a->token[i] < a->highest)
            round[i] = begin_lift(a, i);
    }
    for (size_t i = 0; i < a->quorum->count; i++)
        if (round[i])
            level += end_lift(a, i, round[i], level < a->quorum->majority);
    return level;
}

/* From then on members deal with their own answers. */
static void set_verdict(struct attempt *a, enum rlk_verdict verdict, int64_t ttl_us)
{
    pthread_mutex_lock(&a->quorum->mutex);
    count_answers(a);
    a->round->verdict = verdict;
    a->round->token = a->highest;
    a->round->until_us = a->round->sent_us + ttl_us;
    pthread_mutex_unlock(&a->quorum->mutex);
}

/* The answer is that of one database: a new grant, or one that an earlier attempt has made. */
static enum rlk_class give_grant(struct attempt *a, struct rlk_ask *ask)
{
    rowlock_value cells[RLK_COPIES_MOST];
    size_t count = NOW + 1;
    if (a->found) {
        count = a->found->row.count;
        memcpy(cells, a->found->row.value, count * sizeof cells[0]);
        cells[ROW_TOKEN] = rowlock_int(a->highest);
        return rlk_quorum_give(ask, cells, count);
    }
    size_t first = 0;
    while (!(a->members & 1u << first))
        first++;
    memcpy(cells, a->round->answer[first].row.value, count * sizeof cells[0]);
    cells[TOKEN] = rowlock_int(a->highest);
    return rlk_quorum_give(ask, cells, count);
}

/* No request has a majority: two of them met. Each tries again after a random pause. */
static enum rlk_class refuse(struct attempt *a, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_quorum *quorum = a->quorum;
    if (a->holder && (a->agree >= quorum->majority || a->granted == 0))
        return rlk_quorum_give(ask, a->holder->row.value, a->holder->row.count);
    if (a->behind)
        return rlk_quorum_give(ask, a->behind->row.value, a->behind->row.count);
    if (a->failed + a->pending > quorum->count - quorum->majority)
        return rlk_quorum_failure(a->round, call);
    return rlk_refuse(call, RLK_CONTENTION, "another request took some members of the quorum");
}

/* Two requests may each have met the other at one member, with the last one away. Both would wait
 * for that one until their deadlines. */
static bool may_win(const struct attempt *a)
{
    size_t pending = a->contended ? a->pending - a->hanging : a->pending;
    return a->granted < a->quorum->majority && a->granted + pending >= a->quorum->majority;
}

/* Waits for another answer, or until a member counts as one that hangs. False: the deadline has
 * passed. */
static bool wait_on(const struct attempt *a)
{
    struct rlk_round *round = a->round;
    bool looks = a->contended && a->hangs_us < round->deadline_us;
    return rlk_round_wait_until(round, looks ? a->hangs_us : round->deadline_us) || looks;
}

enum rlk_class rlk_quorum_acquire(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_ask *ask)
{
    struct attempt a = {.quorum = quorum};
    struct rlk_round like = {.step = RLK_STEP_ACQUIRE, .deadline_us = call->deadline_us};
    int64_t ttl_us = ask->in[TTL].number;
    if (ask->in[PERMITS].number != 0)
        return rlk_refuse(
            call, RLK_UNSUPPORTED,
            "a quorum grants exclusive locks only: use the URL of one database for others");
    memcpy(like.in.value, ask->in, VALUES * sizeof like.in.value[0]);
    like.in.value[TTL] = rowlock_int(rlk_quorum_lease(ttl_us));
    like.in.count = VALUES;
    if (!(a.round = rlk_round_begin(quorum, &like, ~0u)))
        return RLK_NOMEM;
    for (count(&a); may_win(&a) && wait_on(&a);)
        count(&a);
    bool wins = a.granted >= quorum->majority;
    set_verdict(&a, wins ? RLK_ROUND_GRANTED : RLK_ROUND_REFUSED, ttl_us);
    if (wins && lift(&a) < quorum->majority) {
        wins = false;
        set_verdict(&a, RLK_ROUND_REFUSED, ttl_us);
    }
    if (wins)
        leave_queue(&a);
    else
        take_back(&a);
    enum rlk_class class = wins ? give_grant(&a, ask) : refuse(&a, call, ask);
    rlk_round_end(a.round, wins ? RLK_ROUND_GRANTED : RLK_ROUND_REFUSED);
    return class;
}
