/* SPDX-License-Identifier: MIT
 * A grant of a quorum. Each member that is free adds 1 to its counter and makes a row. The token is
 * the highest that one of a majority gave. It is granted only when a majority has the row at that
 * token: members below it are lifted, by our own request's row only. Two grants share a member. So
 * no two have the same token, and one that begins after another was returned has a higher one. This
 * needs no clock. */
#include "quorum/ballot.h"

#include <string.h>

/* A member that is at one job for so long hangs. */
enum { HANGS_US = 1000000 };

int64_t rlk_answer_token(const struct rlk_answer *answer)
{
    const rowlock_value *cell = answer->row.value;
    if (answer->class != RLK_DONE || !answer->has_row)
        return 0;
    if (cell[TOKEN].kind != ROWLOCK_NULL)
        return cell[TOKEN].number;
    bool ours = answer->row.count > ROW && cell[OURS].kind != ROWLOCK_NULL && cell[OURS].number;
    return ours ? cell[ROW_TOKEN].number : 0;
}

/* ---- while answers are missing */

/* A member has refused, or could not decide: another request may be on its way. */
static bool is_contended(const struct rlk_ballot *b)
{
    bool contended = b->missing;
    for (size_t i = 0; i < b->count; i++)
        contended = contended || (b->came & 1u << i && b->answer[i].class == RLK_CONTENTION);
    return contended;
}

/* Two requests may each have met the other at one member, with the last one away. Both would wait
 * for that one until their deadlines. So a contended request does not count on members that were
 * away at the last round, or hang. */
static bool may_win(struct rlk_ballot *b, int64_t now_us)
{
    bool contended = is_contended(b);
    size_t granted = rlk_members_in(b->found), pending = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct rlk_standing *m = &b->standing[i];
        int64_t hangs_us = (m->began_us ? m->began_us : b->sent_us) + HANGS_US;
        bool hangs = m->away || hangs_us <= now_us;
        if (b->came & 1u << i || (contended && hangs))
            continue;
        pending++;
        if (contended && hangs_us < b->look_us)
            b->look_us = hangs_us;
    }
    return granted < b->need && granted + pending >= b->need;
}

/* ---- granted */

/* The row is a new grant, or one that an earlier attempt has made, which may end earlier. */
static void take_grant(struct rlk_ballot *b)
{
    b->token = 0;
    b->level = 0;
    b->row = NULL;
    for (size_t i = 0; i < b->count; i++) {
        const struct rlk_answer *answer = &b->answer[i];
        if (!(b->found & 1u << i))
            continue;
        int64_t token = rlk_answer_token(answer);
        b->token = token > b->token ? token : b->token;
        if (!b->row || answer->row.value[TOKEN].kind == ROWLOCK_NULL)
            b->row = answer;
    }
    for (size_t i = 0; i < b->count; i++)
        if (b->found & 1u << i && rlk_answer_token(&b->answer[i]) == b->token)
            b->level |= 1u << i;
    b->until_us = b->sent_us + b->ttl_us;
}

/* ---- refused */

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

/* The members that say that it is the same holder. */
static size_t count_agreeing(const struct rlk_ballot *b, const struct rlk_answer *answer)
{
    size_t agree = 0;
    for (size_t i = 0; i < b->count; i++)
        agree +=
            b->missing & 1u << i && has_holder(&b->answer[i]) && same_holder(&b->answer[i], answer);
    return agree;
}

/* The holder that most members name. Otherwise the first member may have said that others are
 * before us, or that the lock is being changed. */
static const struct rlk_answer *find_refusal(const struct rlk_ballot *b)
{
    const struct rlk_answer *holder = NULL, *first = &b->answer[0];
    size_t most = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct rlk_answer *answer = &b->answer[i];
        size_t agree = b->missing & 1u << i && has_holder(answer) ? count_agreeing(b, answer) : 0;
        if (agree > most) {
            holder = answer;
            most = agree;
        }
    }
    if (holder && (most >= b->need || !b->found))
        return holder;
    return b->missing & 1u && first->has_row && !has_holder(first) ? first : NULL;
}

/* Without a row no request has a majority: two of them met. Each tries again after a random
 * pause. */
static enum rlk_verdict refuse(struct rlk_ballot *b)
{
    size_t useless = b->count - rlk_members_in(b->found | b->missing);
    b->row = find_refusal(b);
    b->raced = useless <= b->count - b->need;
    return RLK_ROUND_REFUSED;
}

enum rlk_verdict rlk_grant_next(struct rlk_ballot *b, int64_t now_us)
{
    bool lifts = b->verdict == RLK_ROUND_LIFT;
    if (!lifts && now_us < b->deadline_us && may_win(b, now_us))
        return RLK_ROUND_OPEN;
    if (!lifts && rlk_members_in(b->found) >= b->need)
        take_grant(b);
    size_t level = rlk_members_in(b->level | b->lifted);
    if (level >= b->need)
        return RLK_ROUND_GRANTED;
    /* If that fails, the rows of members that have granted meanwhile must go too. */
    if (lifts || !b->level)
        return refuse(b);
    return RLK_ROUND_LIFT;
}
