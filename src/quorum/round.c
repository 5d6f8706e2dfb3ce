/* SPDX-License-Identifier: MIT
 * A round: one step on its way to all members, and the wait for a verdict on their answers. */
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
    rlk_turn_end(&round->came);
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
    rlk_turn_post(&member->go);
}

/* Returns whether there was an earlier attempt. What members have removed at it counts. */
static bool note_release(struct rlk_releasing *r, const rowlock_value *in)
{
    if (r->token == in[HELD_TOKEN].number && strcmp(r->name, in[NAME].text) == 0)
        return true;
    *r = (struct rlk_releasing){.token = in[HELD_TOKEN].number};
    rlk_copy_text(r->name, sizeof r->name, in[NAME].text, in[NAME].length);
    return false;
}

static void end_grant(struct rlk_job *job, const rowlock_value *in)
{
    struct rlk_round *round = job->round;
    struct rlk_ballot *b = &round->ballot;
    bool acquires = b->step == RLK_STEP_ACQUIRE;
    if (!acquires && b->step != RLK_STEP_RENEW && b->step != RLK_STEP_VERIFY)
        return;
    int64_t token = acquires ? b->token : round->in.value[HELD_TOKEN].number;
    if (token != in[HELD_TOKEN].number || strcmp(round->in.value[NAME].text, in[NAME].text) != 0)
        return;
    if (!acquires)
        b->verdict = RLK_ROUND_FAILED;
    else if (b->verdict == RLK_ROUND_GRANTED)
        b->verdict = RLK_ROUND_RELEASED;
    b->tops_up = false;
}

/* A member that is behind is not given the row of a grant that is being released. */
static void end_earlier(struct rlk_member *member, const rowlock_value *in)
{
    if (member->at)
        end_grant(member->at, in);
    for (struct rlk_job *job = member->first; job; job = job->next)
        end_grant(job, in);
}

struct rlk_round *rlk_round_begin(struct rlk_quorum *quorum, const struct rlk_ballot *like,
                                  const rowlock_value *in, unsigned members)
{
    struct rlk_round *round = rlk_alloc(sizeof *round);
    if (!round || !rlk_copies_take(&round->in, in, rlk_count_values(like->step))) {
        rlk_free(round);
        return NULL;
    }
    struct rlk_ballot *b = &round->ballot;
    *b = *like;
    b->count = quorum->count;
    b->need = like->need ? like->need : rlk_majority(quorum->count);
    b->sent_us = rlk_now_us();
    round->quorum = quorum;
    round->users = 1;
    rlk_turn_init(&round->came);
    rlk_lock(&quorum->mutex);
    if (b->step == RLK_STEP_RELEASE) {
        b->again = note_release(&quorum->releasing, in);
        for (size_t i = 0; i < quorum->count; i++)
            end_earlier(&quorum->member[i], in);
    }
    for (size_t i = 0; i < quorum->count; i++)
        if (members & 1u << i)
            enter_job(&quorum->member[i], round);
        else
            b->answer[i] = (struct rlk_answer){.came = true, .class = RLK_UNSENT};
    rlk_unlock(&quorum->mutex);
    return round;
}

enum rlk_verdict rlk_round_decide(struct rlk_round *round)
{
    struct rlk_quorum *quorum = round->quorum;
    struct rlk_ballot *b = &round->ballot;
    for (;;) {
        rlk_lock(&quorum->mutex);
        for (size_t i = 0; i < quorum->count; i++)
            b->standing[i] = quorum->member[i].standing;
        b->removed = b->step == RLK_STEP_RELEASE ? quorum->releasing.removed : 0;
        rlk_ballot_next(b, rlk_now_us());
        enum rlk_verdict verdict = b->verdict;
        int64_t look_us = b->look_us;
        /* It is not sent again. */
        if (b->step == RLK_STEP_RELEASE &&
            (verdict == RLK_ROUND_ENOUGH || verdict == RLK_ROUND_LACKING))
            quorum->releasing.token = 0;
        rlk_unlock(&quorum->mutex);
        if (verdict != RLK_ROUND_OPEN)
            return verdict;
        rlk_wait_turn(&round->came, look_us);
    }
}

void rlk_round_end(struct rlk_round *round)
{
    struct rlk_quorum *quorum = round->quorum;
    rlk_lock(&quorum->mutex);
    if (round->ballot.verdict == RLK_ROUND_OPEN)
        round->ballot.verdict = RLK_ROUND_FAILED;
    rlk_round_leave(round);
    rlk_unlock(&quorum->mutex);
}

/* ---- why there is no majority */

/* NULL: the member has done the step. What came after the verdict is not looked at. */
static const char *reason_of(const struct rlk_round *round, size_t i)
{
    const struct rlk_answer *answer = &round->ballot.answer[i];
    if (!(round->ballot.came & 1u << i))
        return "it has not answered in time";
    if (answer->class == RLK_DONE)
        return NULL;
    return answer->call.text[0] ? answer->call.text : "it gave no reason";
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
static void add_counts(char text[512], const struct rlk_ballot *b, unsigned failed, unsigned told)
{
    size_t away = 0, unfit = 0;
    for (size_t i = 0; i < b->count; i++) {
        bool is_away = !(b->came & 1u << i) || rlk_is_away(b->answer[i].class);
        away += is_away && !(told & 1u << i);
        unfit += !is_away && failed & 1u << i;
    }
    add(text, "%zu of the %zu members of the quorum cannot be %s", away ? away : unfit, b->count,
        away ? "reached" : "used");
    if (away && unfit)
        add(text, ", and %zu cannot be used", unfit);
}

/* "member 1: …" or "members 1, 2: …". Returns the members whose reason that is. */
static unsigned add_reason(char text[512], const struct rlk_round *round, size_t first)
{
    const char *reason = reason_of(round, first), *other;
    unsigned told = 1u << first;
    for (size_t i = first + 1; i < round->quorum->count; i++)
        if ((other = reason_of(round, i)) && strcmp(other, reason) == 0)
            told |= 1u << i;
    add(text, "member%s %zu", told > 1u << first ? "s" : "", first + 1);
    for (size_t i = first + 1; i < round->quorum->count; i++)
        if (told & 1u << i)
            add(text, ", %zu", i + 1);
    add(text, ": %.170s", reason);
    return told;
}

/* A member that would have voted if others had been there needs no mention: they are what is
 * wrong. */
enum rlk_class rlk_round_failure(const struct rlk_round *round, struct rlk_call *call)
{
    char text[512] = "";
    const char *between = ": ", *reason;
    unsigned failed = 0, told = 0;
    for (size_t i = 0; i < round->quorum->count; i++) {
        reason = reason_of(round, i);
        failed |= reason ? 1u << i : 0;
        told |= reason && strcmp(reason, rlk_view_too_few) == 0 ? 1u << i : 0;
    }
    add_counts(text, &round->ballot, failed, told);
    for (size_t i = 0; i < round->quorum->count; i++)
        if (failed & ~told & 1u << i) {
            add(text, "%s", between);
            told |= add_reason(text, round, i);
            between = "; ";
        }
    return rlk_refuse(call, round->ballot.class, "%s", text);
}
