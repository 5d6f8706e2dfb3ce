/* SPDX-License-Identifier: MIT
 * A round: one step on its way to all members, their answers, and the wait for a verdict on them. */
#include "quorum/quorum.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* So many jobs wait for one member at most. One that hangs gets no more. */
enum { JOBS_MOST = 4096 };

void rlk_round_leave(struct rlk_round *round)
{
    if (--round->users > 0)
        return;
    for (size_t i = 0; i < round->quorum->count; i++)
        rlk_copies_clear(&round->ballot.answer[i].row);
    rlk_copies_clear(&round->in);
    sem_destroy(&round->came.posted);
    rlk_free(round);
}

static void enter_job(struct rlk_member *member, struct rlk_round *round)
{
    struct rlk_job *job = &round->job[member->number];
    struct rlk_answer *answer = &round->ballot.answer[member->number];
    if (member->standing.waiting >= JOBS_MOST) {
        answer->came = true;
        answer->class = rlk_refuse(&answer->call, RLK_UNSENT, "the member hangs");
        return;
    }
    round->users++;
    job->round = round;
    *member->end = job;
    member->end = &job->next;
    member->standing.waiting++;
    sem_post(&member->go);
}

struct rlk_round *rlk_round_begin(struct rlk_quorum *quorum, const struct rlk_round *like,
                                  unsigned members)
{
    struct rlk_round *round = rlk_alloc(sizeof *round);
    if (!round)
        return NULL;
    *round = *like;
    round->quorum = quorum;
    round->users = 1;
    if (!rlk_copies_take(&round->in, like->in.value, like->in.count)) {
        rlk_free(round);
        return NULL;
    }
    rlk_turn_init(&round->came);
    round->ballot.count = quorum->count;
    if (!round->ballot.need)
        round->ballot.need = rlk_majority(quorum->count);
    round->ballot.sent_us = rlk_now_us();
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++)
        if (members & 1u << i)
            enter_job(&quorum->member[i], round);
        else
            round->ballot.answer[i] = (struct rlk_answer){.came = true, .class = RLK_UNSENT};
    pthread_mutex_unlock(&quorum->mutex);
    return round;
}

void rlk_round_send(struct rlk_quorum *quorum, const struct rlk_round *like, unsigned members)
{
    struct rlk_round *round = members ? rlk_round_begin(quorum, like, members) : NULL;
    if (round)
        rlk_round_end(round);
}

enum rlk_verdict rlk_round_decide(struct rlk_round *round)
{
    struct rlk_quorum *quorum = round->quorum;
    struct rlk_ballot *b = &round->ballot;
    for (;;) {
        pthread_mutex_lock(&quorum->mutex);
        for (size_t i = 0; i < quorum->count; i++)
            b->standing[i] = quorum->member[i].standing;
        b->removed = b->step == RLK_STEP_RELEASE ? quorum->releasing.removed : 0;
        rlk_ballot_next(b, rlk_now_us());
        enum rlk_verdict verdict = b->verdict;
        int64_t look_us = b->look_us;
        pthread_mutex_unlock(&quorum->mutex);
        if (verdict != RLK_ROUND_OPEN)
            return verdict;
        rlk_wait_turn(&round->came, look_us);
    }
}

void rlk_round_end(struct rlk_round *round)
{
    struct rlk_quorum *quorum = round->quorum;
    pthread_mutex_lock(&quorum->mutex);
    if (round->ballot.verdict == RLK_ROUND_OPEN)
        round->ballot.verdict = RLK_ROUND_OVER;
    rlk_round_leave(round);
    pthread_mutex_unlock(&quorum->mutex);
}

/* ---- why there is no majority */

/* The answers that had come when there was a verdict. */
static bool has_come(const struct rlk_round *round, size_t i)
{
    return round->ballot.came & 1u << i;
}

static bool has_failed(const struct rlk_round *round, size_t i)
{
    return !has_come(round, i) || round->ballot.answer[i].class != RLK_DONE;
}

static const char *text_of(const struct rlk_round *round, size_t i)
{
    return has_come(round, i) ? round->ballot.answer[i].call.text : "it has not answered in time";
}

/* It would have voted if others had been there: they are what is wrong. */
static bool misses_others(const struct rlk_round *round, size_t i)
{
    return strcmp(text_of(round, i), rlk_view_too_few) == 0;
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
        bool is_away = !has_come(round, i) || rlk_is_away(round->ballot.answer[i].class);
        away += is_away && !misses_others(round, i);
        unfit += has_failed(round, i) && !is_away;
    }
    add(text, "%zu of the %zu members of the quorum cannot be %s", away ? away : unfit,
        round->quorum->count, away ? "reached" : "used");
    if (away && unfit)
        add(text, ", and %zu cannot be used", unfit);
}

/* "member 1: …" or "members 1, 2: …". *told: the members that need no other mention. */
static void add_reason(char text[512], const struct rlk_round *round, size_t first, unsigned *told)
{
    const char *reason = text_of(round, first);
    char numbers[3 * RLK_MEMBERS_MOST] = {(char)('1' + first)};
    size_t used = 1;
    for (size_t i = first + 1; i < round->quorum->count; i++) {
        if (!has_failed(round, i) || strcmp(text_of(round, i), reason) != 0)
            continue;
        used += (size_t)snprintf(numbers + used, sizeof numbers - used, ", %zu", i + 1);
        *told |= 1u << i;
    }
    add(text, "member%s %s: %.170s", used > 1 ? "s" : "", numbers,
        reason[0] ? reason : "it gave no reason");
}

enum rlk_class rlk_round_failure(const struct rlk_round *round, struct rlk_call *call)
{
    char text[512] = "";
    const char *between = ": ";
    unsigned told = 0;
    add_counts(text, round);
    for (size_t i = 0; i < round->quorum->count; i++) {
        if (!has_failed(round, i) || misses_others(round, i) || told & 1u << i)
            continue;
        add(text, "%s", between);
        add_reason(text, round, i, &told);
        between = "; ";
    }
    return rlk_refuse(call, round->ballot.class, "%s", text);
}
