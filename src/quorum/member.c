/* SPDX-License-Identifier: MIT
 * The statements that a member's thread sends, and those that it owes: it removes later what it
 * could not remove before. */
#include "quorum/quorum.h"

#include <string.h>

enum {
    /* Statements that clean up. */
    CLEAN_UP_US = 5000000,
    OWED_MOST = 1000
};

static int take_row(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_answer *answer = out;
    if (answer->forward)
        return rlk_ask_take(answer->forward, cells, count);
    if (!answer->has_row && !rlk_copies_take(&answer->row, cells, count))
        answer->class = RLK_NOMEM;
    answer->has_row = true;
    return 0;
}

enum rlk_class rlk_member_ask(struct rlk_member *m, struct rlk_ask *ask, struct rlk_call *call)
{
    int result = ROWLOCK_OK;
    rlk_action(m->db, "use the quorum", NULL);
    enum rlk_class class = rlk_attempt(m->db, ask, call, &result);
    if (rlk_is_away(class))
        rlk_lose(m->db);
    if (result == ROWLOCK_OK && class == RLK_SCHEMA)
        return rlk_refuse(call, class, "%.200s; run `rowlock install` for it", call->text);
    if (result == ROWLOCK_OK)
        return class;
    return rlk_refuse(call, result == ROWLOCK_ESCHEMA ? RLK_SCHEMA : RLK_REFUSED, "%s",
                      m->db->error.text);
}

static void note_removed(struct rlk_member *m, const rowlock_value *in)
{
    struct rlk_releasing *r = &m->quorum->releasing;
    pthread_mutex_lock(&m->quorum->mutex);
    if (r->token == in[HELD_TOKEN].number && strcmp(r->name, in[NAME].text) == 0)
        r->removed |= 1u << m->number;
    pthread_mutex_unlock(&m->quorum->mutex);
}

void rlk_member_send(struct rlk_member *m, enum rlk_step step, const rowlock_value *in,
                     int64_t deadline_us, struct rlk_answer *answer)
{
    bool wakes = step == RLK_STEP_RELEASE || step == RLK_STEP_WITHDRAW ||
                 step == RLK_STEP_RETRACT || step == RLK_STEP_LEAVE;
    struct rlk_ask ask = {.step = step,
                          .wakes = wakes ? in[NAME].text : NULL,
                          .read = take_row,
                          .out = answer,
                          .of_quorum = true,
                          .not_after_us = deadline_us};
    memcpy(ask.in, in, rlk_count_values(step) * sizeof *in);
    enum rlk_class class = rlk_member_ask(m, &ask, &answer->call);
    answer->changed = ask.changed;
    if (class != RLK_DONE || answer->class != RLK_NOMEM)
        answer->class = class;
    if (step == RLK_STEP_RELEASE && rlk_answer_found(answer))
        note_removed(m, in);
}

enum rlk_class rlk_member_clean(struct rlk_member *m, enum rlk_step step, const rowlock_value *in,
                                bool *changed)
{
    struct rlk_answer answer = {0};
    rlk_member_send(m, step, in, rlk_now_us() + CLEAN_UP_US, &answer);
    rlk_copies_clear(&answer.row);
    *changed = rlk_answer_found(&answer);
    return answer.class;
}

/* ---- what a member owes */

void rlk_member_owe(struct rlk_member *m, enum rlk_step step, const rowlock_value *in, size_t count,
                    int64_t until_us)
{
    struct rlk_owed *owed = m->owed_count < OWED_MOST ? rlk_alloc(sizeof *owed) : NULL;
    if (!owed || !rlk_copies_take(&owed->in, in, count)) {
        rlk_free(owed);
        return;
    }
    owed->step = step;
    owed->until_us = until_us;
    struct rlk_owed **end = &m->owed;
    while (*end)
        end = &(*end)->next;
    *end = owed;
    m->owed_count++;
}

static void forget_first(struct rlk_member *m)
{
    struct rlk_owed *owed = m->owed;
    m->owed = owed->next;
    m->owed_count--;
    rlk_copies_clear(&owed->in);
    rlk_free(owed);
}

bool rlk_member_pay(struct rlk_member *m)
{
    for (; m->owed; forget_first(m)) {
        enum rlk_class class = RLK_DONE;
        bool changed;
        if (rlk_now_us() < m->owed->until_us)
            class = rlk_member_clean(m, m->owed->step, m->owed->in.value, &changed);
        if (rlk_is_away(class) || class == RLK_CONTENTION || class == RLK_READONLY)
            return false;
    }
    return true;
}

void rlk_member_forget_owed(struct rlk_member *m)
{
    while (m->owed)
        forget_first(m);
}
