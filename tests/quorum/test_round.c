/* SPDX-License-Identifier: MIT
 *
 * A round of a quorum whose members have no threads: the test gives their answers. What these come
 * to is in test_majority.c. */
#include "quorum/quorum.h"
#include "tap.h"

enum { MEMBERS = 3, PATIENCE_US = 60000000 };

static struct rlk_quorum quorum = {.count = MEMBERS, .users = 1};

static void begin_quorum(void)
{
    pthread_mutex_init(&quorum.mutex, NULL);
    for (size_t i = 0; i < MEMBERS; i++) {
        quorum.member[i].number = i;
        quorum.member[i].quorum = &quorum;
        quorum.member[i].end = &quorum.member[i].first;
        rlk_turn_init(&quorum.member[i].go);
    }
}

static struct rlk_round *begin_round(unsigned members, int64_t within_us)
{
    const struct rlk_ballot like = {.step = RLK_STEP_META, .deadline_us = rlk_now_us() + within_us};
    return rlk_round_begin(&quorum, &like, NULL, members);
}

/* As a member's thread does it. */
static void answer(struct rlk_round *round, size_t member, enum rlk_class class)
{
    pthread_mutex_lock(&quorum.mutex);
    round->ballot.answer[member].class = class;
    round->ballot.answer[member].has_row = class == RLK_DONE;
    round->ballot.answer[member].came = true;
    rlk_turn_post(&round->came);
    pthread_mutex_unlock(&quorum.mutex);
}

static void end(struct rlk_round *round)
{
    rlk_round_end(round);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct rlk_member *m = &quorum.member[i];
        pthread_mutex_lock(&quorum.mutex);
        if (m->first)
            rlk_round_leave(m->first->round);
        m->first = NULL;
        m->end = &m->first;
        m->standing.waiting = 0;
        pthread_mutex_unlock(&quorum.mutex);
    }
}

/* One answer comes, and all others before the caller waits. */
static void test_answers_before_the_wait(void)
{
    struct rlk_round *round = begin_round(~0u, PATIENCE_US);
    answer(round, 0, RLK_DONE);
    answer(round, 2, RLK_UNSENT);
    answer(round, 1, RLK_DONE);
    tap_is_int(rlk_round_decide(round), RLK_ROUND_ENOUGH, "answers that came before count");
    tap_is_int(round->ballot.came, 7, "all of them");
    end(round);
}

static void test_deadline(void)
{
    struct rlk_round *round = begin_round(~0u, -1);
    answer(round, 1, RLK_DONE);
    tap_is_int(rlk_round_decide(round), RLK_ROUND_FAILED, "after the deadline there is no wait");
    tap_is_int(round->ballot.came, 2, "but an answer that has come is told");
    end(round);
}

static void test_one_member(void)
{
    struct rlk_round *round = begin_round(1u << 1, PATIENCE_US);
    answer(round, 1, RLK_DONE);
    tap_is_int(rlk_round_decide(round), RLK_ROUND_FAILED, "the only member that was asked answers");
    tap_is_int(round->ballot.came, 7, "and ends the round");
    end(round);
}

/* An answer that comes after the verdict is not read. */
static void test_reasons(void)
{
    struct rlk_round *round = begin_round(~0u, -1);
    struct rlk_call call = {0};
    rlk_copy_text(round->ballot.answer[0].call.text, 512, "no tables", 9);
    rlk_copy_text(round->ballot.answer[1].call.text, 512, "no tables", 9);
    answer(round, 0, RLK_SCHEMA);
    answer(round, 1, RLK_SCHEMA);
    rlk_round_decide(round);
    answer(round, 2, RLK_DONE);
    tap_is_int(rlk_round_failure(round, &call), RLK_SCHEMA, "a failure has the class of two");
    tap_is_str(call.text,
               "1 of the 3 members of the quorum cannot be reached, and 2 cannot be used: "
               "members 1, 2: no tables; member 3: it has not answered in time",
               "and tells each reason once");
    end(round);
}

int main(void)
{
    begin_quorum();
    test_answers_before_the_wait();
    test_deadline();
    test_one_member();
    test_reasons();
    return tap_done();
}
