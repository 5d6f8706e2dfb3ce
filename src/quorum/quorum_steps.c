/* SPDX-License-Identifier: MIT
 * What a handle of a quorum asks of a majority, a function for each kind of step. It sends the
 * rounds that the machines ask for. */
#include "quorum/quorum.h"
#include "core/core.h"

#include <string.h>

/* Sends a step to members whose answers are not waited for. */
static void send_only(struct rlk_quorum *quorum, const struct rlk_ballot *like,
                      const rowlock_value *in, unsigned members)
{
    struct rlk_round *round = members ? rlk_round_begin(quorum, like, in, members) : NULL;
    if (round)
        rlk_round_end(round);
}

/* Sends a step to all members, and waits for the verdict. NULL: no memory. */
static struct rlk_round *decide(struct rlk_quorum *quorum, const struct rlk_call *call,
                                enum rlk_step step, const rowlock_value *in, int64_t ttl_us)
{
    const struct rlk_ballot like = {.step = step,
                                    .must = step == RLK_STEP_RELEASE || step == RLK_STEP_WITHDRAW,
                                    .deadline_us = call->deadline_us,
                                    .ttl_us = ttl_us};
    struct rlk_round *round = rlk_round_begin(quorum, &like, in, ~0u);
    if (round)
        rlk_round_decide(round);
    return round;
}

/* ---- acquiring */

/* Returns the verdict after it. */
static enum rlk_verdict lift_rows(struct rlk_round *round)
{
    struct rlk_ballot *b = &round->ballot;
    struct rlk_ballot like = {.step = RLK_STEP_LIFT,
                              .must = true,
                              .need = b->need - rlk_members_in(b->level),
                              .deadline_us = b->deadline_us};
    unsigned lower = b->found & ~b->level;
    const rowlock_value *in = round->in.value;
    const rowlock_value values[] = {
        in[NAME], in[OWNER], in[REQUEST], rowlock_int(0), rowlock_int(b->token), in[OWNER]};
    for (size_t i = 0; i < b->count; i++)
        like.from[i] = lower & 1u << i ? rlk_answer_token(&b->answer[i]) : 0;
    struct rlk_round *lift = lower ? rlk_round_begin(round->quorum, &like, values, lower) : NULL;
    if (lift && b->verdict == RLK_ROUND_LIFT) {
        rlk_round_decide(lift);
        b->lifted = lift->ballot.found;
    }
    if (lift)
        rlk_round_end(lift);
    return b->verdict == RLK_ROUND_LIFT ? rlk_round_decide(round) : b->verdict;
}

/* The first member removes our ticket when it grants. If the others have decided, it may not. The
 * rows of what was refused go. Members that grant later see the verdict. */
static void clean_up(struct rlk_round *round, bool granted)
{
    const rowlock_value *in = round->in.value;
    const struct rlk_ballot *b = &round->ballot;
    struct rlk_ballot like = {.step = granted ? RLK_STEP_LEAVE : RLK_STEP_RETRACT,
                              .must = true,
                              .deadline_us = b->deadline_us};
    const rowlock_value ticket[] = {in[NAME], in[REQUEST]};
    const rowlock_value row[] = {in[NAME], in[OWNER], in[REQUEST], rowlock_int(0)};
    /* Where it was to be lifted it may have either token. */
    for (size_t i = 0; i < b->count; i++)
        if (b->found & 1u << i)
            like.from[i] =
                b->level && !(b->level & 1u << i) ? ANY_TOKEN : rlk_answer_token(&b->answer[i]);
    unsigned queue = in[TICKET].number ? 1u & ~b->found : 0;
    send_only(round->quorum, &like, granted ? ticket : row, granted ? queue : b->found);
}

/* The answer is that of one database. A grant of an earlier attempt comes with its row. */
static enum rlk_class give_grant(const struct rlk_ballot *b, struct rlk_ask *ask)
{
    rowlock_value cells[RLK_COPIES_MOST];
    const struct rlk_copies *row = &b->row->row;
    bool is_new = row->value[TOKEN].kind != ROWLOCK_NULL;
    memcpy(cells, row->value, sizeof cells);
    cells[is_new ? TOKEN : ROW_TOKEN] = rowlock_int(b->token);
    return rlk_quorum_give(ask, cells, is_new ? NOW + 1 : row->count);
}

static enum rlk_class acquire(struct rlk_quorum *quorum, struct rlk_call *call, struct rlk_ask *ask)
{
    rowlock_value values[VALUES];
    enum rlk_class class;
    if (ask->in[PERMITS].number != 0)
        return rlk_refuse(
            call, RLK_UNSUPPORTED,
            "a quorum grants exclusive locks only: use the URL of one database for others");
    memcpy(values, ask->in, sizeof values);
    values[TTL] = rowlock_int(rlk_quorum_lease(ask->in[TTL].number));
    struct rlk_round *round = decide(quorum, call, RLK_STEP_ACQUIRE, values, ask->in[TTL].number);
    if (!round)
        return RLK_NOMEM;
    struct rlk_ballot *b = &round->ballot;
    /* A member that has not answered. */
    ask->may_arrive = true;
    bool granted = b->verdict != RLK_ROUND_REFUSED && lift_rows(round) == RLK_ROUND_GRANTED;
    clean_up(round, granted);
    if (granted)
        class = give_grant(b, ask);
    else if (b->row)
        class = rlk_quorum_give(ask, b->row->row.value, b->row->row.count);
    else if (b->raced)
        class = rlk_refuse(call, RLK_CONTENTION, "another request took some members of the quorum");
    else
        class = rlk_round_failure(round, call);
    rlk_round_end(round);
    return class;
}

/* ---- renewing and verifying */

/* RENEW and VERIFY. cells: those of RENEW. The members that have said that they lack the row get
 * it. Those that say it later see the verdict. */
static enum rlk_class hold(struct rlk_quorum *quorum, struct rlk_call *call, enum rlk_step step,
                           const rowlock_value *in, rowlock_value cells[3], struct rlk_lease *out)
{
    rowlock_value values[RLK_MARKERS];
    int64_t ttl_us = step == RLK_STEP_RENEW ? in[TTL].number : 0;
    memcpy(values, in, rlk_count_values(step) * sizeof *in);
    if (ttl_us > 0)
        values[TTL] = rowlock_int(rlk_quorum_lease(ttl_us));
    struct rlk_round *round = decide(quorum, call, step, values, ttl_us);
    if (!round)
        return RLK_NOMEM;
    const struct rlk_ballot *b = &round->ballot;
    out->renewed = b->verdict == RLK_ROUND_RENEWED || b->verdict == RLK_ROUND_ENOUGH;
    out->at_risk = b->at_risk;
    cells[0] = rowlock_int(b->now_us + b->left_us);
    cells[1] = rowlock_int(b->lapsed_us);
    cells[2] = rowlock_int(b->now_us);
    enum rlk_class class =
        b->verdict == RLK_ROUND_FAILED ? rlk_round_failure(round, call) : RLK_DONE;
    const struct rlk_ballot like = {
        .step = step, .tops_up = true, .until_us = b->until_us, .ttl_us = b->ttl_us};
    send_only(quorum, &like, values, b->verdict == RLK_ROUND_RENEWED ? b->missing : 0);
    rlk_round_end(round);
    return class;
}

static enum rlk_class hold_one(struct rlk_quorum *quorum, struct rlk_call *call,
                               struct rlk_ask *ask)
{
    rowlock_value cells[3];
    struct rlk_lease lease = {.renewed = false};
    bool renews = ask->step == RLK_STEP_RENEW;
    enum rlk_class class = hold(quorum, call, ask->step, ask->in, cells, &lease);
    if (!lease.renewed)
        return class;
    if (!renews)
        cells[1] = cells[2];
    return rlk_quorum_give(ask, cells, renews ? 3 : 2);
}

/* One lease that lacks a majority must not cost the others theirs. The keeper asks about it. */
static enum rlk_class renew_all(struct rlk_quorum *quorum, struct rlk_call *call,
                                struct rlk_renewing *r)
{
    enum rlk_class class = RLK_DONE;
    r->now_us = 0;
    for (size_t i = 0; i < r->count && class != RLK_NOMEM; i++) {
        struct rlk_lease *lease = &r->leases[i];
        const struct rlk_held *held = &lease->held;
        const rowlock_value values[] = {rowlock_text(held->name), rowlock_int(held->slot),
                                        rowlock_text(held->owner), rowlock_int(held->token),
                                        rowlock_int(lease->ttl_us)};
        rowlock_value cells[3];
        class = hold(quorum, call, RLK_STEP_RENEW, values, cells, lease);
        if (class != RLK_DONE)
            rlk_log(ROWLOCK_LOG_WARNING, "a lease of '%s' could not be renewed: %s", held->name,
                    call->text);
        if (class == RLK_DONE && lease->renewed && r->now_us == 0)
            r->now_us = cells[2].number;
    }
    return class == RLK_NOMEM ? class : RLK_DONE;
}

/* ---- removing */

/* RELEASE and WITHDRAW. Any row of a request counts, since less than a majority may have had it. */
static enum rlk_class remove_row(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask)
{
    bool withdraws = ask->step == RLK_STEP_WITHDRAW;
    struct rlk_round *round = decide(quorum, call, ask->step, ask->in, 0);
    if (!round)
        return RLK_NOMEM;
    const struct rlk_ballot *b = &round->ballot;
    bool failed = b->verdict == RLK_ROUND_FAILED;
    ask->changed = withdraws ? b->found != 0 : b->verdict == RLK_ROUND_ENOUGH;
    /* Some members have removed it, and the others owe it. */
    if (failed)
        rlk_round_failure(round, call);
    rlk_round_end(round);
    return failed ? RLK_UNCERTAIN : RLK_DONE;
}

/* ---- reading what one member has */

/* The highest of a majority: each majority has a member of the newest grant. */
static enum rlk_class last(struct rlk_quorum *quorum, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_round *round = decide(quorum, call, RLK_STEP_LAST, ask->in, 0);
    rowlock_value highest[2] = {rowlock_int(0)};
    enum rlk_class class = RLK_DONE;
    if (!round)
        return RLK_NOMEM;
    const struct rlk_ballot *b = &round->ballot;
    for (size_t i = 0; i < b->count; i++) {
        const rowlock_value *row = b->answer[i].row.value;
        if (b->found & 1u << i && row[0].number > highest[0].number)
            memcpy(highest, row, sizeof highest);
    }
    if (b->verdict == RLK_ROUND_FAILED)
        class = rlk_round_failure(round, call);
    rlk_round_end(round);
    return class == RLK_DONE && highest[0].number > 0 ? rlk_quorum_give(ask, highest, 2) : class;
}

static enum rlk_class ask_member(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask, size_t member)
{
    struct rlk_ballot like = {.step = ask->step, .deadline_us = call->deadline_us, .all = true};
    like.answer[member].forward = ask;
    struct rlk_round *round = rlk_round_begin(quorum, &like, ask->in, 1u << member);
    if (!round)
        return RLK_NOMEM;
    rlk_round_decide(round);
    const struct rlk_answer *answer = &round->ballot.answer[member];
    enum rlk_class class = answer->class;
    if (class != RLK_DONE)
        rlk_refuse(call, class, "member %zu: %s", member + 1, answer->call.text);
    rlk_round_end(round);
    return class;
}

/* The first member may hang. So all are asked for a sign of life before the first of those that
 * give one gets the question. */
static enum rlk_class forward(struct rlk_quorum *quorum, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_round *round = decide(quorum, call, RLK_STEP_META, NULL, 0);
    if (!round)
        return RLK_NOMEM;
    unsigned living = round->ballot.found | round->ballot.missing;
    bool enough = round->ballot.verdict == RLK_ROUND_ENOUGH;
    enum rlk_class class = enough ? RLK_UNSENT : rlk_round_failure(round, call);
    rlk_round_end(round);
    for (size_t i = 0; enough && i < quorum->count && rlk_is_away(class); i++)
        if (living & 1u << i)
            class = ask_member(quorum, call, ask, i);
    return class;
}

enum rlk_class rlk_quorum_ask(struct rlk_quorum *quorum, struct rlk_call *call, struct rlk_ask *ask)
{
    switch (ask->step) {
    case RLK_STEP_ACQUIRE:
        return acquire(quorum, call, ask);
    case RLK_STEP_RENEW:
    case RLK_STEP_VERIFY:
        return hold_one(quorum, call, ask);
    case RLK_STEP_RENEW_ALL:
        return renew_all(quorum, call, ask->out);
    case RLK_STEP_LAST:
        return last(quorum, call, ask);
    case RLK_STEP_LIST:
        return forward(quorum, call, ask);
    default:
        return remove_row(quorum, call, ask);
    }
}
