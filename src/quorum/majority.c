/* SPDX-License-Identifier: MIT
 * Steps that a holder sends, decided by a majority. A lease ends when a majority of the members
 * would be free again: of three, at the second of their ends. */
#include "quorum/quorum.h"
#include "core/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    size_t found, missing, failed, pending;
    /* Members that were away at the last round, or still have earlier ones to do. */
    size_t behind;
    /* Other ones that could not be used the last time. */
    size_t doubtful;
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
        bool removed = round->step == RLK_STEP_RELEASE && quorum->releasing.removed & 1u << i;
        bool done = rlk_answer_done(answer) || removed;
        bool found = removed || (done && rlk_answer_found(answer));
        const struct rlk_member *m = &quorum->member[i];
        bool pending = !answer->came && !removed, behind = m->away || m->waiting > 1;
        t.pending += pending;
        t.behind += pending && behind;
        t.doubtful += pending && !behind && m->fails;
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

/* Waits until a majority has the row, or cannot have it. It does not wait for members that are
 * known to hang. */
static struct tally decide(struct rlk_round *round)
{
    struct rlk_quorum *quorum = round->quorum;
    struct tally t = count(round);
    bool answered = false;
    while (t.found < quorum->majority && !is_lost(quorum, &t) && !answered &&
           rlk_round_wait(round)) {
        t = count(round);
        answered = t.pending > 0 && t.pending == t.behind;
    }
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

/* ---- why there is no majority */

static bool is_away(const struct rlk_answer *answer)
{
    return !answer->came || rlk_is_away(answer->class);
}

static bool has_failed(const struct rlk_answer *answer)
{
    return !rlk_answer_done(answer);
}

static const char *text_of(const struct rlk_answer *answer)
{
    return answer->came ? answer->call.text : "it has not answered in time";
}

/* It would have voted if others had been there: they are what is wrong. */
static bool misses_others(const struct rlk_answer *answer)
{
    return strcmp(text_of(answer), rlk_view_too_few) == 0;
}

static void add(char text[512], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char text[512], const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, 512 - used, format, arguments);
    va_end(arguments);
}

/* "2 of the 3 members of the quorum cannot be reached" */
static void add_counts(char text[512], const struct rlk_round *round)
{
    size_t away = 0, unfit = 0;
    for (size_t i = 0; i < round->quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        away += is_away(answer) && !misses_others(answer);
        unfit += has_failed(answer) && !is_away(answer);
    }
    add(text, "%zu of the %zu members of the quorum cannot be %s", away ? away : unfit,
        round->quorum->count, away ? "reached" : "used");
    if (away && unfit)
        add(text, ", and %zu cannot be used", unfit);
}

/* "member 1: …" or "members 1, 2: …". *told: the members that need no other mention. */
static void add_reason(char text[512], const struct rlk_round *round, size_t first, unsigned *told)
{
    const char *reason = text_of(&round->answer[first]);
    char numbers[3 * RLK_MEMBERS_MOST] = {(char)('1' + first)};
    size_t used = 1;
    for (size_t i = first + 1; i < round->quorum->count; i++) {
        if (!has_failed(&round->answer[i]) || strcmp(text_of(&round->answer[i]), reason) != 0)
            continue;
        used += (size_t)snprintf(numbers + used, sizeof numbers - used, ", %zu", i + 1);
        *told |= 1u << i;
    }
    add(text, "member%s %s: %.170s", used > 1 ? "s" : "", numbers,
        reason[0] ? reason : "it gave no reason");
}

static void add_reasons(char text[512], const struct rlk_round *round)
{
    const char *between = ": ";
    unsigned told = 0;
    for (size_t i = 0; i < round->quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        if (!has_failed(answer) || misses_others(answer) || told & 1u << i)
            continue;
        add(text, "%s", between);
        add_reason(text, round, i, &told);
        between = "; ";
    }
}

/* If the members that are away could make a majority, it is an outage, and core sends the round
 * again. Otherwise the class is that of a member that refused. */
enum rlk_class rlk_quorum_failure(const struct rlk_round *round, struct rlk_call *call)
{
    char text[512] = "";
    struct rlk_quorum *quorum = round->quorum;
    size_t unfit = 0;
    bool contended = false;
    enum rlk_class away = RLK_UNSENT, class = RLK_UNSENT;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        if (!answer->came || answer->class == RLK_UNCERTAIN)
            away = RLK_UNCERTAIN;
        if (!has_failed(answer) || is_away(answer))
            continue;
        if (answer->class == RLK_CONTENTION) {
            contended = true;
            continue;
        }
        unfit++;
        class = answer->class;
    }
    add_counts(text, round);
    add_reasons(text, round);
    pthread_mutex_unlock(&quorum->mutex);
    /* If those that are away come back, there is a majority. Until then it is an outage. What is in
     * the way of others passes. */
    if (unfit <= quorum->count - quorum->majority)
        class = contended ? RLK_CONTENTION : away;
    return rlk_refuse(call, class, "%s", text);
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
        if (!rlk_answer_done(answer) || !answer->has_row)
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

/* The members that have said that they lack the row get it. Those that say it later see the
 * verdict. */
static void have_renewed(struct rlk_round *round, int64_t left_us, int64_t ttl_us)
{
    struct rlk_quorum *quorum = round->quorum;
    unsigned lacking = 0;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++)
        if (rlk_answer_done(&round->answer[i]) && !round->answer[i].has_row)
            lacking |= 1u << i;
    round->until_us = round->sent_us + left_us;
    round->ttl_us = ttl_us;
    round->verdict = RLK_ROUND_RENEWED;
    pthread_mutex_unlock(&quorum->mutex);
    struct rlk_round like = {.step = RLK_STEP_RENEW,
                             .tops_up = true,
                             .until_us = round->until_us,
                             .ttl_us = ttl_us,
                             .in = round->in};
    struct rlk_round *adding = lacking ? rlk_round_begin(quorum, &like, lacking) : NULL;
    if (adding)
        rlk_round_end(adding, RLK_ROUND_OVER);
}

static enum rlk_class renew(struct rlk_quorum *quorum, struct rlk_call *call,
                            const rowlock_value *in, int64_t cells[3], bool *found, bool *at_risk)
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
    *at_risk = t.missing + t.failed + t.behind + t.doubtful >= quorum->count - quorum->majority;
    if (*found) {
        int64_t left_us;
        const rowlock_value *row = ends(round, &left_us, &cells[1]);
        cells[2] = row[2].number;
        cells[0] = cells[2] + left_us;
        have_renewed(round, left_us, ttl_us ? ttl_us : left_us);
    } else if (!is_lost(quorum, &t)) {
        class = rlk_quorum_failure(round, call);
    }
    rlk_round_end(round, *found ? RLK_ROUND_RENEWED : RLK_ROUND_OVER);
    return class;
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
        int64_t cells[3];
        class = renew(quorum, call, values, cells, &lease->renewed, &lease->at_risk);
        if (class != RLK_DONE)
            rlk_log(ROWLOCK_LOG_WARNING, "a lease of '%s' could not be renewed: %s", held->name,
                    call->text);
        if (lease->renewed && r->now_us == 0)
            r->now_us = cells[2];
    }
    return class == RLK_NOMEM ? class : RLK_DONE;
}

enum rlk_class rlk_quorum_renew(struct rlk_quorum *quorum, struct rlk_call *call,
                                struct rlk_ask *ask)
{
    int64_t cells[3];
    bool found = false, at_risk;
    if (ask->step == RLK_STEP_RENEW_ALL)
        return renew_all(quorum, call, ask->out);
    enum rlk_class class = renew(quorum, call, ask->in, cells, &found, &at_risk);
    if (class != RLK_DONE || !found)
        return class;
    return rlk_quorum_give(
        ask, (rowlock_value[]){rowlock_int(cells[0]), rowlock_int(cells[1]), rowlock_int(cells[2])},
        3);
}

enum rlk_class rlk_quorum_verify(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask)
{
    struct rlk_round *round = begin(quorum, call, RLK_STEP_VERIFY, ask->in, 4, false);
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
        ask, (rowlock_value[]){rowlock_int(now_us + left_us), rowlock_int(now_us)}, 2);
}

/* ---- removing */

/* What members have removed at an earlier attempt of this release counts. */
static void begin_release(struct rlk_quorum *quorum, const rowlock_value *in)
{
    struct rlk_releasing *r = &quorum->releasing;
    pthread_mutex_lock(&quorum->mutex);
    if (r->token != in[TOKEN].number || strcmp(r->name, in[NAME].text) != 0)
        *r = (struct rlk_releasing){.token = in[TOKEN].number};
    rlk_copy_text(r->name, sizeof r->name, in[NAME].text, in[NAME].length);
    pthread_mutex_unlock(&quorum->mutex);
}

static void end_release(struct rlk_quorum *quorum)
{
    pthread_mutex_lock(&quorum->mutex);
    quorum->releasing.token = 0;
    pthread_mutex_unlock(&quorum->mutex);
}

/* RELEASE and WITHDRAW. Any row of a request counts, since less than a majority may have had it. */
enum rlk_class rlk_quorum_remove(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask)
{
    bool withdraws = ask->step == RLK_STEP_WITHDRAW;
    if (!withdraws)
        begin_release(quorum, ask->in);
    struct rlk_round *round = begin(quorum, call, ask->step, ask->in, withdraws ? 3 : 5, true);
    enum rlk_class class = RLK_DONE;
    if (!round)
        return RLK_NOMEM;
    struct tally t = decide(round);
    while (withdraws && t.found + t.missing < quorum->majority && rlk_round_wait(round))
        t = count(round);
    bool enough = withdraws ? t.found + t.missing >= quorum->majority
                            : t.found >= quorum->majority || is_lost(quorum, &t);
    if (enough && !withdraws)
        end_release(quorum);
    /* Some members have removed it, and the others owe it. */
    if (!enough) {
        rlk_quorum_failure(round, call);
        class = RLK_UNCERTAIN;
    }
    ask->changed = withdraws ? t.found > 0 : t.found >= quorum->majority;
    rlk_round_end(round, RLK_ROUND_OVER);
    return class;
}

/* ---- reading what one member has */

/* The first member may hang. So all are asked for a sign of life before one gets the question. */
static enum rlk_class find_living(struct rlk_quorum *quorum, struct rlk_call *call,
                                  bool lives[RLK_MEMBERS_MOST])
{
    struct rlk_round *round = begin(quorum, call, RLK_STEP_META, NULL, 0, false);
    if (!round)
        return RLK_NOMEM;
    struct tally t = decide(round);
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++)
        lives[i] = rlk_answer_done(&round->answer[i]);
    pthread_mutex_unlock(&quorum->mutex);
    enum rlk_class class = t.found >= quorum->majority ? RLK_DONE : rlk_quorum_failure(round, call);
    rlk_round_end(round, RLK_ROUND_OVER);
    return class;
}

static enum rlk_class ask_member(struct rlk_quorum *quorum, struct rlk_call *call,
                                 struct rlk_ask *ask, size_t member)
{
    struct rlk_round like = {.step = ask->step, .forward = ask, .deadline_us = call->deadline_us};
    for (const char *at = rlk_steps[ask->step].parameters; *at; at++)
        like.in.count += at[1] == ' ' || at[1] == '\0';
    memcpy(like.in.value, ask->in, like.in.count * sizeof like.in.value[0]);
    struct rlk_round *round = rlk_round_begin(quorum, &like, 1u << member);
    if (!round)
        return RLK_NOMEM;
    while (rlk_round_wait(round))
        ;
    enum rlk_class class = round->answer[member].class;
    if (class != RLK_DONE)
        rlk_refuse(call, class, "member %zu: %s", member + 1, round->answer[member].call.text);
    rlk_round_end(round, RLK_ROUND_OVER);
    return class;
}

/* The highest of a majority: each majority has a member of the newest grant. */
enum rlk_class rlk_quorum_last(struct rlk_quorum *quorum, struct rlk_call *call,
                               struct rlk_ask *ask)
{
    struct rlk_round *round = begin(quorum, call, RLK_STEP_LAST, ask->in, 1, false);
    rowlock_value highest[2] = {rowlock_int(0)};
    enum rlk_class class = RLK_DONE;
    if (!round)
        return RLK_NOMEM;
    struct tally t = count(round);
    while (t.found + t.missing < quorum->majority && rlk_round_wait(round))
        t = count(round);
    if (t.found + t.missing < quorum->majority)
        class = rlk_quorum_failure(round, call);
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++) {
        const struct rlk_answer *answer = &round->answer[i];
        bool has = rlk_answer_done(answer) && answer->has_row;
        if (has && answer->row.value[0].number > highest[0].number)
            memcpy(highest, answer->row.value, sizeof highest);
    }
    pthread_mutex_unlock(&quorum->mutex);
    rlk_round_end(round, RLK_ROUND_OVER);
    return class == RLK_DONE && highest[0].number > 0 ? rlk_quorum_give(ask, highest, 2) : class;
}

enum rlk_class rlk_quorum_forward(struct rlk_quorum *quorum, struct rlk_call *call,
                                  struct rlk_ask *ask)
{
    bool lives[RLK_MEMBERS_MOST] = {false};
    enum rlk_class class = find_living(quorum, call, lives);
    if (class != RLK_DONE)
        return class;
    class = RLK_UNSENT;
    for (size_t i = 0; i < quorum->count && rlk_is_away(class); i++)
        if (lives[i])
            class = ask_member(quorum, call, ask, i);
    return class;
}
