/* SPDX-License-Identifier: MIT
 * A member of a quorum: a thread that carries out the jobs of one database, in their order. It also
 * does what comes after a decision: it lifts or removes a grant that came late, removes what it
 * could not remove before, and gives a member that lacks the row of a holder that row. */
#include "quorum/acquire_cells.h"
#include "quorum/quorum.h"
#include "core/ask.h"
#include "core/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Statements that clean up. */
    CLEAN_UP_US = 5000000,
    /* How long a release is tried again, whose lease is not known. */
    OWED_US = 600000000,
    OWED_MOST = 1000,
    /* A member with more jobs than these has fallen behind. */
    BACKLOG = 16
};

/* ---- one statement */

struct attempt {
    enum rlk_step step;
    const rowlock_value *in;
    struct rlk_answer *answer;
    struct rlk_ask *forward;
};

static int take_row(void *out, const rowlock_value *cells, size_t count)
{
    struct attempt *s = out;
    if (s->forward)
        return rlk_ask_take(s->forward, cells, count);
    if (!s->answer->has_row && !rlk_copies_take(&s->answer->row, cells, count))
        s->answer->class = RLK_NOMEM;
    s->answer->has_row = true;
    return 0;
}

static enum rlk_class send_step(struct rlk_member *m, struct rlk_ask *ask, struct rlk_call *call)
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

static void note_removed(struct rlk_member *m, const struct attempt *s)
{
    enum { RELEASES_TOKEN = 3 };
    struct rlk_releasing *r = &m->quorum->releasing;
    if (s->step != RLK_STEP_RELEASE || !rlk_answer_found(s->answer))
        return;
    pthread_mutex_lock(&m->quorum->mutex);
    if (r->token == s->in[RELEASES_TOKEN].number && strcmp(r->name, s->in[NAME].text) == 0)
        r->removed |= 1u << m->number;
    pthread_mutex_unlock(&m->quorum->mutex);
}

static enum rlk_class send_by(struct rlk_member *m, struct attempt *s, int64_t deadline_us)
{
    struct rlk_answer *answer = s->answer;
    bool wakes = s->step == RLK_STEP_RELEASE || s->step == RLK_STEP_WITHDRAW ||
                 s->step == RLK_STEP_RETRACT || s->step == RLK_STEP_LEAVE;
    struct rlk_ask ask = {.step = s->step,
                          .wakes = wakes ? s->in[NAME].text : NULL,
                          .read = take_row,
                          .out = s,
                          .of_quorum = true,
                          .not_after_us = deadline_us};
    memcpy(ask.in, s->in, rlk_count_values(s->step) * sizeof *s->in);
    enum rlk_class class = send_step(m, &ask, &answer->call);
    answer->changed = ask.changed;
    if (class == RLK_DONE && answer->class == RLK_NOMEM)
        class = RLK_NOMEM;
    answer->class = class;
    note_removed(m, s);
    return class;
}

/* Sends a step whose answer only this thread needs. Returns whether it has changed something. */
static bool change(struct rlk_member *m, enum rlk_step step, const rowlock_value *in)
{
    struct rlk_answer answer = {0};
    struct attempt s = {.step = step, .in = in, .answer = &answer};
    send_by(m, &s, rlk_now_us() + CLEAN_UP_US);
    rlk_copies_clear(&answer.row);
    return rlk_answer_found(&answer);
}

/* ---- may it vote? */

enum {
    /* A member that may not vote is asked again. */
    ASK_AGAIN_US = 250000,
    /* One that votes may be restored meanwhile. */
    LOOK_AGAIN_US = 30000000
};

/* On each new connection, since the server may have been restarted before it. */
static enum rlk_class read_view(struct rlk_member *m, struct rlk_call *call, int64_t deadline_us)
{
    struct rlk_view view = {0};
    struct rlk_ask ask = {.not_after_us = deadline_us};
    rlk_step_members(&ask, &view);
    enum rlk_class class = send_step(m, &ask, call);
    view.read_us = rlk_now_us();
    m->connection = m->db->connections;
    m->asked_us = rlk_now_us();
    pthread_mutex_lock(&m->quorum->mutex);
    m->quorum->view[m->number] = class == RLK_DONE ? view : (struct rlk_view){0};
    m->stale = false;
    pthread_mutex_unlock(&m->quorum->mutex);
    return class;
}

/* *sure: no other member knows a newer move of its mark. */
static enum rlk_class judge(struct rlk_member *m, struct rlk_call *call, bool *sure)
{
    struct rlk_quorum *quorum = m->quorum;
    pthread_mutex_lock(&quorum->mutex);
    enum rlk_class class = rlk_view_judge(quorum->view, quorum->count, m->number, call);
    *sure = !rlk_view_is_behind(quorum->view, quorum->count, m->number);
    pthread_mutex_unlock(&quorum->mutex);
    return class;
}

/* A mark may be newer than the one that we have read, in any of the members. */
static void doubt_all(struct rlk_member *m)
{
    pthread_mutex_lock(&m->quorum->mutex);
    for (size_t i = 0; i < m->quorum->count; i++)
        m->quorum->member[i].stale = true;
    pthread_mutex_unlock(&m->quorum->mutex);
}

/* Only the member's own thread changes what is known of its vote. */
static bool is_known(const struct rlk_member *m)
{
    return m->quorum->view[m->number].known;
}

static bool must_read(struct rlk_member *m)
{
    struct rlk_quorum *quorum = m->quorum;
    pthread_mutex_lock(&quorum->mutex);
    bool read =
        is_known(m) && !m->stale && !rlk_view_is_behind(quorum->view, quorum->count, m->number);
    pthread_mutex_unlock(&quorum->mutex);
    bool fresh = rlk_now_us() - m->asked_us < LOOK_AGAIN_US;
    return !read || !fresh || !rlk_is_up(m->db) || m->connection != m->db->connections;
}

/* Its mark may move while the members are read, so it is read again then. */
static enum rlk_class look(struct rlk_member *m, struct rlk_call *call, int64_t deadline_us)
{
    enum { READINGS = 4 };
    enum rlk_class class = RLK_DONE;
    bool sure = false;
    for (int i = 0; i < READINGS && class == RLK_DONE && !sure; i++) {
        if (must_read(m))
            class = read_view(m, call, deadline_us);
        if (class == RLK_DONE)
            class = judge(m, call, &sure);
    }
    return class == RLK_DONE && !sure ? rlk_refuse(call, RLK_UNSENT, "%s", rlk_view_too_few)
                                      : class;
}

static enum rlk_class may_vote(struct rlk_member *m, struct rlk_call *call, int64_t deadline_us)
{
    enum rlk_class class = look(m, call, deadline_us);
    if (class == RLK_DONE || !is_known(m) || rlk_now_us() - m->asked_us < ASK_AGAIN_US)
        return class;
    /* It may have joined meanwhile. */
    doubt_all(m);
    return look(m, call, deadline_us);
}

/* A backup of before is older than what the others know from now on. It is not urgent: what fails
 * is tried again after the next reading. */
static void move_mark(struct rlk_member *m, size_t i)
{
    struct rlk_move move;
    pthread_mutex_lock(&m->quorum->mutex);
    bool moves = rlk_view_move(m, i, &move);
    m->moving = moves && i == m->number;
    pthread_mutex_unlock(&m->quorum->mutex);
    if (!moves)
        return;
    const rowlock_value in[] = {rowlock_int((int64_t)i + 1), rowlock_text(move.mark),
                                rowlock_int(move.from), rowlock_int(move.to)};
    bool moved = change(m, RLK_STEP_MOVE, in);
    pthread_mutex_lock(&m->quorum->mutex);
    m->moving = false;
    if (i == m->number) {
        m->moved_us = rlk_now_us();
        m->stale = m->stale || !moved;
    }
    /* Another member has moved on, whether that could be written down or not. */
    if (moved || i != m->number)
        m->quorum->view[m->number].moved[i] = move.to;
    pthread_mutex_unlock(&m->quorum->mutex);
}

/* ---- what a member owes */

static void owe(struct rlk_member *m, enum rlk_step step, const rowlock_value *in, size_t count,
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

static void forget_owed(struct rlk_member *m)
{
    struct rlk_owed *owed = m->owed;
    m->owed = owed->next;
    m->owed_count--;
    rlk_copies_clear(&owed->in);
    rlk_free(owed);
}

/* Before anything else is claimed there: a row of an earlier request would keep us out. False: the
 * member cannot be reached. */
static bool pay(struct rlk_member *m)
{
    while (m->owed) {
        struct rlk_owed *owed = m->owed;
        struct rlk_answer answer = {0};
        struct attempt s = {.step = owed->step, .in = owed->in.value, .answer = &answer};
        if (rlk_now_us() < owed->until_us)
            send_by(m, &s, rlk_now_us() + CLEAN_UP_US);
        rlk_copies_clear(&answer.row);
        if (rlk_is_away(answer.class) || answer.class == RLK_CONTENTION ||
            answer.class == RLK_READONLY)
            return false;
        forget_owed(m);
    }
    return true;
}

/* ---- a grant of this member */

/* A renewal may have counted the row meanwhile, so that a holder counts on it. It stays then. */
static void retract(struct rlk_member *m, const rowlock_value *request)
{
    const rowlock_value in[] = {request[NAME], request[OWNER], request[REQUEST]};
    struct rlk_answer answer = {0};
    struct attempt s = {.step = RLK_STEP_RETRACT, .in = in, .answer = &answer};
    if (send_by(m, &s, rlk_now_us() + CLEAN_UP_US) != RLK_DONE)
        owe(m, RLK_STEP_RETRACT, in, 3, rlk_now_us() + request[TTL].number);
    rlk_copies_clear(&answer.row);
}

static void lift(struct rlk_member *m, const rowlock_value *request, int64_t from, int64_t to,
                 rowlock_value holder)
{
    const rowlock_value in[] = {request[NAME],     request[OWNER],  request[REQUEST],
                                rowlock_int(from), rowlock_int(to), holder};
    if (!change(m, RLK_STEP_LIFT, in))
        retract(m, request);
}

/* The round was decided while this member was busy with it. While the lease lasts, no other request
 * can have had a majority. So the late row may join the grant. */
static void catch_up(struct rlk_member *m, struct rlk_round *round, enum rlk_verdict verdict)
{
    struct rlk_answer *answer = &round->answer[m->number];
    const rowlock_value *request = round->in.value;
    int64_t token = rlk_answer_token(answer);
    if (answer->class == RLK_UNCERTAIN || answer->class == RLK_MISFIT)
        owe(m, RLK_STEP_RETRACT, (rowlock_value[]){request[NAME], request[OWNER], request[REQUEST]},
            3, rlk_now_us() + request[TTL].number);
    bool in_time = verdict == RLK_ROUND_GRANTED && rlk_now_us() < round->until_us;
    if (token > 0 && in_time && token != round->token)
        lift(m, request, token, round->token, request[OWNER]);
    if (token > 0 && !in_time && verdict != RLK_ROUND_OPEN)
        retract(m, request);
}

/* The holder has a majority, and this member lacks its row. It is claimed by an owner of its own,
 * so that no live row is taken, not even one of the holder: another connection may be giving it up.
 * While the lease lasts, no other request can have had a majority. So a claim that is answered by
 * then may become the holder's row. */
static void top_up(struct rlk_member *m, const struct rlk_round *round)
{
    enum { RENEWS_TOKEN = 3 };
    const rowlock_value *renewed = round->in.value;
    char claimer[40];
    struct rlk_answer granted = {0};
    if (rlk_now_us() >= round->until_us ||
        may_vote(m, &granted.call, round->until_us) != RLK_DONE || !pay(m))
        return;
    int64_t number = rlk_next_number(m->db);
    snprintf(claimer, sizeof claimer, "top-up %" PRId64, number);
    const rowlock_value request[] = {renewed[NAME],
                                     rowlock_int(0),
                                     rowlock_text(claimer),
                                     rowlock_int(number),
                                     rowlock_int(rlk_quorum_lease(round->ttl_us)),
                                     rowlock_text(m->db->host),
                                     rowlock_int(m->db->pid),
                                     rowlock_text(m->db->program),
                                     rowlock_text(""),
                                     rowlock_int(0),
                                     rowlock_int(1),
                                     rowlock_int(0)};
    struct attempt s = {.step = RLK_STEP_ACQUIRE, .in = request, .answer = &granted};
    send_by(m, &s, round->until_us);
    int64_t token = rlk_answer_token(&granted);
    if (token > 0 && rlk_now_us() < round->until_us)
        lift(m, request, token, renewed[RENEWS_TOKEN].number, renewed[OWNER]);
    else if (token > 0 || granted.class == RLK_UNCERTAIN)
        retract(m, request);
    rlk_copies_clear(&granted.row);
}

/* ---- jobs */

static void carry_out(struct rlk_member *m, struct rlk_round *round)
{
    struct rlk_answer *answer = &round->answer[m->number];
    struct attempt s = {
        .step = round->step, .in = round->in.value, .answer = answer, .forward = round->forward};
    int64_t deadline_us = round->must ? rlk_now_us() + CLEAN_UP_US : round->deadline_us;
    int tries = 0;
    answer->class = may_vote(m, &answer->call, deadline_us);
    if (answer->class == RLK_DONE && !pay(m))
        answer->class = rlk_refuse(&answer->call, RLK_UNSENT, "it is still away");
    if (answer->class == RLK_DONE)
        send_by(m, &s, deadline_us);
    /* What must be removed is not left to another round: the others have removed it already. */
    while (round->must && answer->class == RLK_CONTENTION && rlk_now_us() < deadline_us) {
        rlk_wait_plain(rlk_pause_retry(&m->db->waiting, &tries));
        send_by(m, &s, deadline_us);
    }
    if (round->must && answer->class != RLK_DONE)
        owe(m, round->step, round->in.value, round->in.count, rlk_now_us() + OWED_US);
}

/* The others go on without this member. So it is told once, when that begins and when it ends. */
static void warn(struct rlk_member *m, const struct rlk_answer *answer)
{
    bool away = answer->class == RLK_UNSENT || answer->class == RLK_UNCERTAIN;
    bool fails = away || (answer->class != RLK_DONE && answer->class != RLK_CONTENTION);
    if (fails == m->fails || strcmp(answer->call.text, rlk_view_too_few) == 0)
        return;
    pthread_mutex_lock(&m->quorum->mutex);
    m->fails = fails;
    pthread_mutex_unlock(&m->quorum->mutex);
    if (fails)
        rlk_log(ROWLOCK_LOG_WARNING, "member %zu of the quorum cannot be %s: %s", m->number + 1,
                away ? "reached" : "used", answer->call.text);
    else
        rlk_log(ROWLOCK_LOG_INFO, "member %zu of the quorum is back", m->number + 1);
}

/* Returns what the caller had decided before it knew this answer. */
static enum rlk_verdict tell(struct rlk_member *m, struct rlk_round *round, bool sent)
{
    struct rlk_answer *answer = &round->answer[m->number];
    pthread_mutex_lock(&round->quorum->mutex);
    if (sent)
        m->away = !rlk_is_up(m->db);
    enum rlk_verdict verdict = round->verdict;
    answer->came = true;
    if (verdict == RLK_ROUND_OPEN)
        rlk_turn_post(&round->came);
    pthread_mutex_unlock(&round->quorum->mutex);
    return verdict;
}

static void work_on(struct rlk_member *m, struct rlk_round *round)
{
    struct rlk_answer *answer = &round->answer[m->number];
    pthread_mutex_lock(&round->quorum->mutex);
    /* A member that is only slow joins a grant. One with more to do has fallen behind: the next
     * renewal gives it the row. */
    bool joins = round->verdict == RLK_ROUND_GRANTED && m->waiting < BACKLOG &&
                 rlk_now_us() < round->until_us;
    bool renews = round->verdict == RLK_ROUND_RENEWED && rlk_now_us() < round->deadline_us;
    /* After a close nothing is tried with a member that is away: the program may be ending, and
     * with it the client library that would connect. */
    bool ends = round->quorum->closing && m->away;
    bool wanted = !ends && (round->verdict == RLK_ROUND_OPEN || round->must || joins || renews);
    pthread_mutex_unlock(&round->quorum->mutex);
    if (round->tops_up) {
        if (!ends)
            top_up(m, round);
        return;
    }
    if (wanted)
        carry_out(m, round);
    else
        answer->class = RLK_UNSENT;
    if (wanted)
        warn(m, answer);
    enum rlk_verdict verdict = tell(m, round, wanted);
    if (round->step == RLK_STEP_ACQUIRE && wanted)
        catch_up(m, round, verdict);
    if (verdict == RLK_ROUND_RENEWED && answer->class == RLK_DONE && !answer->has_row)
        top_up(m, round);
    for (size_t i = 0; i < m->quorum->count && answer->class == RLK_DONE; i++)
        move_mark(m, i);
}

static struct rlk_job *next_job(struct rlk_member *m)
{
    struct rlk_job *job = m->first;
    if (!job)
        return NULL;
    m->first = job->next;
    if (!m->first)
        m->end = &m->first;
    m->waiting--;
    return job;
}

void *rlk_member_work(void *context)
{
    struct rlk_member *m = context;
    struct rlk_quorum *quorum = m->quorum;
    rlk_use_in_thread(m->db->driver, true);
    for (bool stop = false; !stop;) {
        while (sem_wait(&m->go) != 0)
            ;
        pthread_mutex_lock(&quorum->mutex);
        struct rlk_job *job = next_job(m);
        m->began_us = job ? rlk_now_us() : 0;
        stop = !job && quorum->closing;
        pthread_mutex_unlock(&quorum->mutex);
        if (!job)
            continue;
        struct rlk_round *round = job->round;
        work_on(m, round);
        pthread_mutex_lock(&quorum->mutex);
        m->began_us = 0;
        rlk_round_leave(round);
        pthread_mutex_unlock(&quorum->mutex);
    }
    /* A mark may have moved on since our last job. */
    for (size_t i = 0; i < quorum->count && rlk_is_up(m->db); i++)
        move_mark(m, i);
    while (m->owed)
        forget_owed(m);
    rlk_use_in_thread(m->db->driver, false);
    rlk_quorum_leave(quorum);
    return NULL;
}
