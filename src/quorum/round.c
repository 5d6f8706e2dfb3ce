/* SPDX-License-Identifier: MIT
 * A round: one step on its way to all members, and their answers. */
#include "quorum/acquire_cells.h"
#include "quorum/quorum.h"

/* So many jobs wait for one member at most. One that hangs gets no more. */
enum { JOBS_MOST = 4096 };

int64_t rlk_quorum_lease(int64_t ttl_us)
{
    return ttl_us + ttl_us / 1000 + 1000;
}

int64_t rlk_quorum_reliable(int64_t left_us)
{
    return left_us > 1000 ? (left_us - 1000) / 1001 * 1000 : 0;
}

void rlk_round_leave(struct rlk_round *round)
{
    if (--round->users > 0)
        return;
    for (size_t i = 0; i < round->quorum->count; i++)
        rlk_copies_clear(&round->answer[i].row);
    rlk_copies_clear(&round->in);
    sem_destroy(&round->came.posted);
    rlk_free(round);
}

static void enter_job(struct rlk_member *member, struct rlk_round *round)
{
    struct rlk_job *job = &round->job[member->number];
    struct rlk_answer *answer = &round->answer[member->number];
    if (member->waiting >= JOBS_MOST) {
        answer->came = true;
        answer->class = rlk_refuse(&answer->call, RLK_UNSENT, "the member hangs");
        return;
    }
    round->users++;
    job->round = round;
    *member->end = job;
    member->end = &job->next;
    member->waiting++;
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
    round->sent_us = rlk_now_us();
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++)
        if (members & 1u << i)
            enter_job(&quorum->member[i], round);
        else
            round->answer[i] = (struct rlk_answer){.came = true, .class = RLK_UNSENT};
    pthread_mutex_unlock(&quorum->mutex);
    return round;
}

static size_t count_answers(struct rlk_round *round)
{
    size_t came = 0;
    pthread_mutex_lock(&round->quorum->mutex);
    for (size_t i = 0; i < round->quorum->count; i++)
        came += round->answer[i].came;
    pthread_mutex_unlock(&round->quorum->mutex);
    return came;
}

bool rlk_round_wait(struct rlk_round *round)
{
    return rlk_round_wait_until(round, round->forward ? INT64_MAX : round->deadline_us);
}

bool rlk_round_wait_until(struct rlk_round *round, int64_t until_us)
{
    size_t before = round->seen;
    for (;;) {
        round->seen = count_answers(round);
        if (round->seen > before)
            return true;
        if (before == round->quorum->count || !rlk_wait_turn(&round->came, until_us))
            return false;
    }
}

void rlk_round_end(struct rlk_round *round, enum rlk_verdict verdict)
{
    struct rlk_quorum *quorum = round->quorum;
    pthread_mutex_lock(&quorum->mutex);
    round->verdict = verdict;
    rlk_round_leave(round);
    pthread_mutex_unlock(&quorum->mutex);
}

/* ---- answers */

bool rlk_answer_done(const struct rlk_answer *answer)
{
    return answer->came && answer->class == RLK_DONE;
}

bool rlk_answer_found(const struct rlk_answer *answer)
{
    return answer->class == RLK_DONE && (answer->has_row || answer->changed > 0);
}

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

enum rlk_class rlk_quorum_give(struct rlk_ask *ask, const rowlock_value *cells, size_t count)
{
    return rlk_ask_take(ask, cells, count) < 0 ? RLK_MISFIT : RLK_DONE;
}

/* ---- the end */

static void free_quorum(struct rlk_quorum *quorum)
{
    for (size_t i = 0; i < quorum->count; i++) {
        if (quorum->free_db)
            quorum->free_db(quorum->member[i].db);
        sem_destroy(&quorum->member[i].go);
    }
    if (quorum->free_db)
        quorum->free_db(quorum->queue);
    pthread_mutex_destroy(&quorum->mutex);
    rlk_free(quorum);
}

void rlk_quorum_leave(struct rlk_quorum *quorum)
{
    pthread_mutex_lock(&quorum->mutex);
    bool last = --quorum->users == 0;
    pthread_mutex_unlock(&quorum->mutex);
    if (last)
        free_quorum(quorum);
}
