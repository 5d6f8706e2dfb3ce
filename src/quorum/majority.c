/* SPDX-License-Identifier: MIT
 * Steps that a holder sends, decided by a majority. A lease ends when a majority of the members
 * would be free again: of three, at the second of their ends. */
#include "quorum/quorum.h"

#include <stdlib.h>
#include <string.h>

struct tally {
    size_t found, missing, failed, pending;
    /* Members that were away at the last round, or still have earlier ones to do. */
    size_t behind;
};

/* Cells of rows: when the lease expires, how long it had lapsed (not in VERIFY), the clock. */
static int64_t left_of(const struct rlk_answer *answer)
{
    const struct rlk_copies *row = &answer->row;
    int64_t left_us = row->value[0].number - row->value[row->count - 1].number;
    return left_us > 0 ? left_us : 0;
}

static struct tally count(struct rlk_round *round)
{
    struct tally t = {0};
    struct rlk_quorum *quorum = round->quorum;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        bool done = answer->came && answer->class == RLK_DONE;
        bool found = done && (answer->has_row || answer->changed > 0);
        t.pending += !answer->came;
        t.behind += !answer->came && (quorum->member[i].away || quorum->member[i].waiting > 1);
        t.failed += answer->came && !done;
        t.found += found;
        t.missing += done && !found;
    }
    pthread_mutex_unlock(&quorum->mutex);
    return t;
}

static bool is_lost(const struct rlk_quorum *quorum, const struct tally *t)
{
    return t->missing > quorum->count - quorum->majority;
}

/* Waits until a majority has the row, or cannot have it. */
static struct tally decide(struct rlk_round *round)
{
    struct rlk_quorum *quorum = round->quorum;
    struct tally t = count(round);
    while (t.found < quorum->majority && !is_lost(quorum, &t) && rlk_round_wait(round))
        t = count(round);
    return t;
}

static struct rlk_round *begin(struct rlk_quorum *quorum, struct rlk_call *call, enum rlk_step step,
                               const rowlock_value *in, size_t count, bool must)
{
    struct rlk_round like = {.step = step, .deadline_us = call->deadline_us, .must = must};
    like.in.count = count;
    for (size_t i = 0; i < count; i++)
        like.in.value[i] = in[i];
    return rlk_round_begin(quorum, &like, ~0u);
}

enum rlk_class rlk_quorum_failure(const struct rlk_round *round, struct rlk_call *call)
{
    struct rlk_quorum *quorum = round->quorum;
    const struct rlk_answer *worst = NULL;
    size_t away = 0;
    enum rlk_class class = RLK_UNSENT;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        bool gone = !answer->came || answer->class == RLK_UNSENT || answer->class == RLK_UNCERTAIN;
        away += gone;
        if (gone && (!answer->came || answer->class == RLK_UNCERTAIN))
            class = RLK_UNCERTAIN;
        if (answer->came && answer->class != RLK_DONE && (!worst || !gone))
            worst = answer;
        if (answer->came && answer->class != RLK_DONE && !gone)
            class = answer->class;
    }
    int64_t deadline_us = call->deadline_us;
    enum rlk_where where = call->where;
    if (worst)
        *call = worst->call;
    call->deadline_us = deadline_us;
    call->where = where;
    char text[sizeof call->text];
    rlk_copy_text(text, sizeof text, call->text, strlen(call->text));
    pthread_mutex_unlock(&quorum->mutex);
    return rlk_refuse(call, class, "%zu of the %zu members of the quorum %s%s%s", away,
                      quorum->count, away ? "cannot be reached" : "are away",
                      text[0] ? "; the last said: " : "", text);
}

/* ---- renewing and verifying */

static int ascending(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* left: what a majority of the members still gives. lapsed: how long ago that had ended. Returns a
 * row that was found. */
static const rowlock_value *ends(struct rlk_round *round, int64_t *left_us, int64_t *lapsed_us)
{
    struct rlk_quorum *quorum = round->quorum;
    int64_t left[RLK_MEMBERS_MOST] = {0}, lapsed[RLK_MEMBERS_MOST] = {0};
    const rowlock_value *row = NULL;
    size_t found = 0;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        if (!answer->came || answer->class != RLK_DONE || !answer->has_row)
            continue;
        row = answer->row.value;
        left[i] = left_of(answer);
        lapsed[found++] = answer->row.count > 2 ? row[1].number : 0;
    }
    pthread_mutex_unlock(&quorum->mutex);
    qsort(left, quorum->count, sizeof left[0], ascending);
    qsort(lapsed, found, sizeof lapsed[0], ascending);
    *left_us = rlk_quorum_reliable(left[quorum->count - quorum->majority]);
    *lapsed_us = lapsed[quorum->majority - 1];
    return row;
}

/* RENEW and its kin have these values first. */
enum { NAME, SLOT, OWNER, TOKEN, TTL };

/* The members that have said that they lack the row get it. */
static void top_up(struct rlk_round *round, int64_t left_us, int64_t ttl_us)
{
    struct rlk_quorum *quorum = round->quorum;
    const rowlock_value *in = round->in.value;
    unsigned lacking = 0;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++)
        if (round->answer[i].came && round->answer[i].class == RLK_DONE &&
            !round->answer[i].has_row)
            lacking |= 1u << i;
    int64_t number = (int64_t)((quorum->seed + ++quorum->numbers * 0x9E3779B97F4A7C15u) >> 1);
    pthread_mutex_unlock(&quorum->mutex);
    if (!lacking)
        return;
    struct rlk_round like = {
        .step = RLK_STEP_ACQUIRE,
        .tops_up = true,
        .token = in[TOKEN].number,
        .until_us = round->sent_us + left_us,
        .deadline_us = round->sent_us + left_us,
        .in = {.value = {in[NAME], rowlock_int(0), in[OWNER], rowlock_int(number),
                         rowlock_int(rlk_quorum_lease(ttl_us)), rowlock_text(""), rowlock_int(0),
                         rowlock_text(""), rowlock_text(""), rowlock_int(0), rowlock_int(1),
                         rowlock_int(0)},
               .count = 12}};
    struct rlk_round *adding = rlk_round_begin(quorum, &like, lacking);
    if (adding)
        rlk_round_end(adding, RLK_ROUND_OVER);
}

static enum rlk_class renew(struct rlk_quorum *quorum, struct rlk_call *call,
                            const rowlock_value *in, int64_t cells[3], bool *found)
{
    rowlock_value values[] = {in[NAME], in[SLOT], in[OWNER], in[TOKEN], in[TTL]};
    int64_t ttl_us = in[TTL].number;
    enum rlk_class class = RLK_DONE;
    if (ttl_us > 0)
        values[TTL] = rowlock_int(rlk_quorum_lease(ttl_us));
    struct rlk_round *round = begin(quorum, call, RLK_STEP_RENEW, values, 5, false);
    if (!round)
        return RLK_NOMEM;
    struct tally t = decide(round);
    *found = t.found >= quorum->majority;
    call->barely = t.missing + t.failed + t.behind >= quorum->count - quorum->majority;
    if (*found) {
        int64_t left_us;
        const rowlock_value *row = ends(round, &left_us, &cells[1]);
        cells[2] = row[2].number;
        cells[0] = cells[2] + left_us;
        top_up(round, left_us, ttl_us ? ttl_us : left_us);
    } else if (!is_lost(quorum, &t)) {
        class = rlk_quorum_failure(round, call);
    }
    rlk_round_end(round, RLK_ROUND_OVER);
    return class;
}

static enum rlk_class renew_one_of_many(struct rlk_quorum *quorum, struct rlk_call *call,
                                        struct rlk_query *query)
{
    enum { LEASE_SLOT, LEASE_TOKEN, LEASE_TTL, LEASE_NAME, LEASE_OWNER };
    const rowlock_value *in = query->given;
    const rowlock_value values[] = {in[LEASE_NAME], in[LEASE_SLOT], in[LEASE_OWNER],
                                    in[LEASE_TOKEN], in[LEASE_TTL]};
    int64_t cells[3];
    bool found = false;
    enum rlk_class class = renew(quorum, call, values, cells, &found);
    if (class != RLK_DONE || !found)
        return class;
    return rlk_quorum_give(query, (rowlock_value[]){rowlock_int(1), rowlock_int(cells[2])}, 2);
}

enum rlk_class rlk_quorum_renew(struct rlk_quorum *quorum, struct rlk_call *call,
                                struct rlk_query *query)
{
    int64_t cells[3];
    bool found = false;
    if (query->step == RLK_STEP_RENEW_ALL)
        return renew_one_of_many(quorum, call, query);
    enum rlk_class class = renew(quorum, call, query->given, cells, &found);
    if (class != RLK_DONE || !found)
        return class;
    return rlk_quorum_give(
        query,
        (rowlock_value[]){rowlock_int(cells[0]), rowlock_int(cells[1]), rowlock_int(cells[2])}, 3);
}

enum rlk_class rlk_quorum_verify(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_query *query)
{
    struct rlk_round *round = begin(quorum, call, RLK_STEP_VERIFY, query->given, 4, false);
    if (!round)
        return RLK_NOMEM;
    struct tally t = decide(round);
    bool found = t.found >= quorum->majority;
    enum rlk_class class =
        found || is_lost(quorum, &t) ? RLK_DONE : rlk_quorum_failure(round, call);
    int64_t left_us = 0, lapsed_us, now_us = 0;
    if (found)
        now_us = ends(round, &left_us, &lapsed_us)[1].number;
    rlk_round_end(round, RLK_ROUND_OVER);
    if (!found)
        return class;
    return rlk_quorum_give(
        query, (rowlock_value[]){rowlock_int(now_us + left_us), rowlock_int(now_us)}, 2);
}

/* ---- removing */

/* RELEASE and WITHDRAW. Any row of a request counts, since less than a majority may have had it. */
enum rlk_class rlk_quorum_remove(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_query *query)
{
    bool withdraws = query->step == RLK_STEP_WITHDRAW;
    struct rlk_round *round =
        begin(quorum, call, query->step, query->given, withdraws ? 3 : 5, true);
    enum rlk_class class = RLK_DONE;
    if (!round)
        return RLK_NOMEM;
    struct tally t = decide(round);
    while (withdraws && t.found + t.missing < quorum->majority && rlk_round_wait(round))
        t = count(round);
    bool enough = withdraws ? t.found + t.missing >= quorum->majority
                            : t.found >= quorum->majority || is_lost(quorum, &t);
    /* Some members have removed it, and the others owe it. */
    if (!enough) {
        rlk_quorum_failure(round, call);
        class = RLK_UNCERTAIN;
    }
    query->counted = true;
    query->changed = withdraws ? t.found > 0 : t.found >= quorum->majority;
    rlk_round_end(round, RLK_ROUND_OVER);
    return class;
}

/* ---- reading what one member has */

enum rlk_class rlk_quorum_forward(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_query *query)
{
    enum rlk_class class = RLK_UNSENT;
    for (size_t i = 0; i < quorum->count; i++) {
        struct rlk_round like = {
            .step = query->step, .forward = query, .deadline_us = call->deadline_us};
        for (const char *at = rlk_steps[query->step].parameters; *at; at++)
            like.in.count += at[1] == ' ' || at[1] == '\0';
        memcpy(like.in.value, query->given, like.in.count * sizeof like.in.value[0]);
        struct rlk_round *round = rlk_round_begin(quorum, &like, 1u << i);
        if (!round)
            return RLK_NOMEM;
        while (rlk_round_wait(round))
            ;
        class = round->answer[i].class;
        bool gone = class == RLK_UNSENT || class == RLK_UNCERTAIN;
        if (class != RLK_DONE)
            rlk_refuse(call, class, "%s", round->answer[i].call.text);
        rlk_round_end(round, RLK_ROUND_OVER);
        if (!gone)
            break;
    }
    return class;
}
