/* SPDX-License-Identifier: MIT
 * What is sent to a member in its thread: one statement, and what it takes to know whether it may
 * vote. That is read from rowlock_members, and voters.c judges it. */
#include "quorum/quorum.h"
#include "core/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Statements that clean up. */
    CLEAN_UP_US = 5000000,
    /* By how much the start of a server may seem to move: MySQL counts whole seconds. */
    START_MOVES = 3
};

static int take_answer(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_answer *answer = out;
    if (answer->forward)
        return rlk_query_row(answer->forward, cells, count);
    if (!answer->has_row && !rlk_copies_take(&answer->row, cells, count))
        answer->class = RLK_NOMEM;
    answer->has_row = true;
    return 0;
}

static enum rlk_class ask_once(struct rlk_member *m, struct rlk_ask *ask, struct rlk_call *call)
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
    rlk_lock(&m->quorum->mutex);
    if (r->token == in[HELD_TOKEN].number && strcmp(r->name, in[NAME].text) == 0)
        r->removed |= 1u << m->number;
    rlk_unlock(&m->quorum->mutex);
}

void rlk_member_send(struct rlk_member *m, enum rlk_step step, const rowlock_value *in,
                     int64_t deadline_us, struct rlk_answer *answer)
{
    bool wakes = step == RLK_STEP_RELEASE || step == RLK_STEP_WITHDRAW ||
                 step == RLK_STEP_RETRACT || step == RLK_STEP_LEAVE;
    struct rlk_ask ask = {.step = step,
                          .wakes = wakes ? in[NAME].text : NULL,
                          .read = take_answer,
                          .out = answer,
                          .of_quorum = true,
                          .not_after_us = deadline_us};
    memcpy(ask.in, in, rlk_count_values(step) * sizeof *in);
    enum rlk_class class = ask_once(m, &ask, &answer->call);
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

/* ---- marks */

const char rlk_view_too_few[] = "too few members can be reached to tell whether it may vote";

void rlk_mark_write(char mark[RLK_MARK], const char *identity, uint32_t generation,
                    const char *random)
{
    snprintf(mark, RLK_MARK, "%-16.16s%08" PRIx32 "%.8s", identity, generation, random);
}

/* ---- what a member has written down */

enum { MEMBER, MEMBERS, QUORUM, SELF, MARK, STARTED, RUNNING, MOVED, READ_AT };

static int take_row(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_view *view = out;
    int64_t member = cells[MEMBER].number;
    (void)count;
    if (member < 1 || member > RLK_MEMBERS_MOST)
        return -1;
    rlk_copy_text(view->mark[member - 1], sizeof view->mark[0], cells[MARK].text,
                  cells[MARK].length);
    rlk_copy_text(view->quorum, sizeof view->quorum, cells[QUORUM].text, cells[QUORUM].length);
    view->moved[member - 1] = cells[MOVED].number;
    view->now_us = cells[READ_AT].number;
    view->members = (size_t)cells[MEMBERS].number;
    if (!cells[SELF].number)
        return 0;
    int64_t moved = cells[RUNNING].number - cells[STARTED].number;
    view->self = (size_t)member;
    view->restarted = moved > START_MOVES || moved < -START_MOVES;
    return 0;
}

static void forget_view(void *out)
{
    *(struct rlk_view *)out = (struct rlk_view){.known = true, .begun_us = rlk_now_us()};
}

void rlk_step_members(struct rlk_ask *ask, struct rlk_view *view)
{
    ask->step = RLK_STEP_MEMBERS;
    ask->read = take_row;
    ask->out = view;
    ask->restart = forget_view;
}

static enum rlk_class read_view(struct rlk_member *m, struct rlk_call *call, int64_t deadline_us)
{
    struct rlk_view view = {0};
    struct rlk_ask ask = {.not_after_us = deadline_us};
    rlk_step_members(&ask, &view);
    enum rlk_class class = ask_once(m, &ask, call);
    view.read_us = rlk_now_us();
    m->connection = m->db->connections;
    rlk_lock(&m->quorum->mutex);
    m->quorum->view[m->number] = class == RLK_DONE ? view : (struct rlk_view){0};
    m->stale = false;
    rlk_unlock(&m->quorum->mutex);
    return class;
}

/* ---- may it vote? */

static enum rlk_class refuse(struct rlk_call *call, enum rlk_vote vote, const struct rlk_view *own)
{
    static const char *const why[] = {
        [RLK_VOTE_NO_MEMBER] = "it is of no quorum yet: run `rowlock quorum-join`",
        [RLK_VOTE_RESTARTED] = "it was restarted or restored, and may have lost grants: run "
                               "`rowlock quorum-join`",
        [RLK_VOTE_STRANGER] = "it is of another quorum: give the same URLs everywhere",
        [RLK_VOTE_RESTORED] = "it was restored, and may have lost grants: run `rowlock "
                              "quorum-join`"};
    if (vote == RLK_VOTE_YES)
        return RLK_DONE;
    if (vote == RLK_VOTE_OPEN)
        return rlk_refuse(call, RLK_UNSENT, "%s", rlk_view_too_few);
    if (vote != RLK_VOTE_MISPLACED)
        return rlk_refuse(call, RLK_SCHEMA, "%s", why[vote]);
    return rlk_refuse(
        call, RLK_SCHEMA,
        "it is member %zu of a quorum of %zu: give the same URLs in the same order everywhere",
        own->self, own->members);
}

enum rlk_class rlk_view_judge(const struct rlk_view *views, size_t count, size_t i,
                              struct rlk_call *call)
{
    return refuse(call, rlk_view_vote(views, count, i), &views[i]);
}

/* On each new connection it is read again, since the server may have been restarted before it. */
static bool must_read(struct rlk_member *m, struct rlk_looking *looking, struct rlk_call *call,
                      enum rlk_class *class)
{
    struct rlk_quorum *quorum = m->quorum;
    bool same = rlk_is_up(m->db) && m->connection == m->db->connections;
    rlk_lock(&quorum->mutex);
    enum rlk_vote vote = rlk_vote_next(looking, quorum->view, quorum->count, m->number,
                                       same && !m->stale, rlk_now_us());
    bool reads = vote == RLK_VOTE_READ || vote == RLK_VOTE_READ_ALL;
    for (size_t i = 0; i < quorum->count && vote == RLK_VOTE_READ_ALL; i++)
        quorum->member[i].stale = true;
    if (!reads)
        *class = refuse(call, vote, &quorum->view[m->number]);
    rlk_unlock(&quorum->mutex);
    return reads;
}

enum rlk_class rlk_member_vote(struct rlk_member *m, struct rlk_call *call, int64_t deadline_us)
{
    struct rlk_looking looking = {0};
    enum rlk_class class = RLK_DONE;
    while (class == RLK_DONE && must_read(m, &looking, call, &class))
        class = read_view(m, call, deadline_us);
    return class;
}

/* ---- marks move on */

/* A backup of before is older than what the others know from now on. It is not urgent: what fails
 * is tried again after the next reading. */
static void move_mark(struct rlk_member *m, size_t i)
{
    struct rlk_quorum *quorum = m->quorum;
    struct rlk_move move;
    bool moved;
    rlk_lock(&quorum->mutex);
    bool moves = rlk_view_move(quorum->view, m->number, i,
                               quorum->leaving ? INT64_MAX : m->moved_us, rlk_now_us(), &move);
    m->moving = moves && i == m->number;
    rlk_unlock(&quorum->mutex);
    if (!moves)
        return;
    const rowlock_value in[] = {rowlock_int((int64_t)i + 1), rowlock_text(move.mark),
                                rowlock_int(move.from), rowlock_int(move.to)};
    rlk_member_clean(m, RLK_STEP_MOVE, in, &moved);
    rlk_lock(&quorum->mutex);
    m->moving = false;
    if (i == m->number) {
        m->moved_us = rlk_now_us();
        m->stale = m->stale || !moved;
    }
    /* Another member has moved on, whether that could be written down or not. */
    if (moved || i != m->number)
        quorum->view[m->number].moved[i] = move.to;
    rlk_unlock(&quorum->mutex);
}

void rlk_member_move_marks(struct rlk_member *m)
{
    for (size_t i = 0; i < m->quorum->count && rlk_is_up(m->db); i++)
        move_mark(m, i);
}
