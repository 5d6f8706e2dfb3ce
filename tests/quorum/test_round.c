/* SPDX-License-Identifier: MIT
 *
 * A round of a quorum whose members have no threads: the test gives their answers. */
#include "quorum/quorum.h"
#include "core/core.h"
#include "tap.h"

#include <string.h>

enum { MEMBERS = 3 };

static struct rlk_quorum quorum = {.count = MEMBERS, .majority = 2, .users = 1};

static void begin_quorum(void)
{
    pthread_mutex_init(&quorum.mutex, NULL);
    for (size_t i = 0; i < MEMBERS; i++) {
        quorum.member[i].number = i;
        quorum.member[i].quorum = &quorum;
        quorum.member[i].end = &quorum.member[i].first;
        sem_init(&quorum.member[i].go, 0, 0);
    }
}

static struct rlk_round *begin_round(unsigned members)
{
    struct rlk_round like = {.step = RLK_STEP_META, .deadline_us = rlk_now_us() + 60000000};
    return rlk_round_begin(&quorum, &like, members);
}

/* As a member's thread does it. */
static void answer(struct rlk_round *round, size_t member)
{
    pthread_mutex_lock(&quorum.mutex);
    round->answer[member].came = true;
    rlk_turn_post(&round->came);
    pthread_mutex_unlock(&quorum.mutex);
}

static void end(struct rlk_round *round)
{
    rlk_round_end(round, RLK_ROUND_OVER);
    for (size_t i = 0; i < MEMBERS; i++) {
        struct rlk_member *m = &quorum.member[i];
        pthread_mutex_lock(&quorum.mutex);
        if (m->first)
            rlk_round_leave(m->first->round);
        m->first = NULL;
        m->end = &m->first;
        m->waiting = 0;
        pthread_mutex_unlock(&quorum.mutex);
    }
}

/* The caller looks, the rest of the answers come, and the caller waits. */
static void test_answers_before_the_wait(void)
{
    struct rlk_round *round = begin_round(~0u);
    answer(round, 0);
    tap_ok(rlk_round_wait(round), "an answer ends the wait");
    answer(round, 2);
    answer(round, 1);
    tap_ok(rlk_round_wait(round), "so do the last ones, which came before the wait");
    while (rlk_round_wait(round))
        ;
    tap_ok(true, "then there is nothing to wait for");
    end(round);
}

static void test_deadline(void)
{
    struct rlk_round *round = begin_round(~0u);
    round->deadline_us = rlk_now_us() - 1;
    tap_ok(!rlk_round_wait(round), "after the deadline there is no wait");
    answer(round, 1);
    tap_ok(rlk_round_wait(round), "but an answer that has come is told");
    end(round);
}

static void test_one_member(void)
{
    struct rlk_round *round = begin_round(1u << 1);
    answer(round, 1);
    tap_ok(rlk_round_wait(round), "the answer of the only member that was asked");
    while (rlk_round_wait(round))
        ;
    tap_ok(true, "ends the round");
    end(round);
}

/* ---- why there is no majority */

static void test_failures(void)
{
    static const struct {
        const char *what;
        enum rlk_class class[MEMBERS], want;
    } rows[] = {
        {"two that are away", {RLK_UNSENT, RLK_DONE, RLK_UNSENT}, RLK_UNSENT},
        {"two that take no writes", {RLK_STANDBY, RLK_DONE, RLK_STANDBY}, RLK_UNSENT},
        {"two without tables", {RLK_SCHEMA, RLK_UNSENT, RLK_SCHEMA}, RLK_SCHEMA},
        {"one of them is away", {RLK_SCHEMA, RLK_UNSENT, RLK_DONE}, RLK_UNSENT},
        {"one is busy", {RLK_CONTENTION, RLK_DONE, RLK_SCHEMA}, RLK_CONTENTION},
        {"in another order", {RLK_SCHEMA, RLK_DONE, RLK_CONTENTION}, RLK_CONTENTION},
        {"one is busy, one away", {RLK_CONTENTION, RLK_UNSENT, RLK_DONE}, RLK_CONTENTION},
        {"two without tables, one busy", {RLK_SCHEMA, RLK_SCHEMA, RLK_CONTENTION}, RLK_SCHEMA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlk_round *round = begin_round(~0u);
        struct rlk_call call = {0};
        for (size_t k = 0; k < MEMBERS; k++) {
            round->answer[k].class = rows[i].class[k];
            answer(round, k);
        }
        tap_is_int(rlk_quorum_failure(round, &call), rows[i].want, "%s", rows[i].what);
        end(round);
    }
}

/* ---- who may vote */

/* Member 1 is an old copy. */
static void test_votes(void)
{
    struct rlk_view views[MEMBERS] = {{.self = 1, .known = true, .mark = {"a0", "b0", "c0"}},
                                      {.self = 2, .known = true, .mark = {"a1", "b1", "c1"}},
                                      {.self = 3, .mark = {"a1", "b1", "c1"}}};
    struct rlk_call call = {0};
    for (size_t i = 0; i < MEMBERS; i++) {
        views[i].members = MEMBERS;
        rlk_copy_text(views[i].quorum, sizeof views[i].quorum, "q", 1);
    }
    tap_is_int(rlk_view_judge(views, MEMBERS, 1, &call), RLK_UNSENT,
               "before member 3 is read, it is open whether member 2 or member 1 is old");
    views[2].known = true;
    tap_is_int(rlk_view_judge(views, MEMBERS, 1, &call), RLK_DONE, "with it member 2 votes");
    tap_is_int(rlk_view_judge(views, MEMBERS, 0, &call), RLK_SCHEMA, "and member 1 does not");
}

int main(void)
{
    begin_quorum();
    test_answers_before_the_wait();
    test_failures();
    test_deadline();
    test_one_member();
    test_votes();
    return tap_done();
}
