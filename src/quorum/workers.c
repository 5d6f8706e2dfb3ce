/* SPDX-License-Identifier: MIT
 * The members' threads: how they begin and end, and what they do with a job. Each carries out the
 * jobs of one database, in their order. */
#include "quorum/quorum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* A step that removes something is tried for so long. */
    REMOVE_US = 5000000,
    /* How long a release is tried again, whose lease is not known. */
    OWED_US = 600000000,
    OWED_MOST = 1000,
    /* How long a close waits for the threads. */
    CLOSE_US = 250000
};

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

static void forget_first(struct rlk_member *m)
{
    struct rlk_owed *owed = m->owed;
    m->owed = owed->next;
    m->owed_count--;
    rlk_copies_clear(&owed->in);
    rlk_free(owed);
}

/* Whatever the request is granted later has a higher token than the member has given by now. */
static enum rlk_class find_bound(struct rlk_member *m, rowlock_value *in)
{
    struct rlk_answer answer = {0};
    if (in[HELD_TOKEN].number != ANY_TOKEN)
        return RLK_DONE;
    rlk_member_send(m, RLK_STEP_LAST, in, rlk_now_us() + REMOVE_US, &answer);
    if (answer.class == RLK_DONE)
        in[HELD_TOKEN] = rowlock_int(answer.has_row ? answer.row.value[0].number : 0);
    rlk_copies_clear(&answer.row);
    return answer.class;
}

/* Before anything else is claimed there: a row of an earlier request would keep us out. False: the
 * member cannot be reached. */
static bool pay(struct rlk_member *m)
{
    for (; m->owed; forget_first(m)) {
        bool changed, due = rlk_now_us() < m->owed->until_us;
        enum rlk_class class = RLK_DONE;
        if (due && m->owed->step == RLK_STEP_RETRACT)
            class = find_bound(m, m->owed->in.value);
        if (due && class == RLK_DONE)
            class = rlk_member_clean(m, m->owed->step, m->owed->in.value, &changed);
        if (rlk_is_away(class) || class == RLK_CONTENTION || class == RLK_READONLY)
            return false;
    }
    return true;
}

/* ---- after the verdict */

static void owe_retract(struct rlk_member *m, const rowlock_value *request, rowlock_value token)
{
    const rowlock_value in[] = {request[NAME], request[OWNER], request[REQUEST], token};
    owe(m, RLK_STEP_RETRACT, in, 4, rlk_now_us() + request[TTL].number);
}

/* A renewal may have counted the row meanwhile, so that a holder counts on it. It stays then. */
static void retract(struct rlk_member *m, const rowlock_value *request, int64_t token)
{
    rowlock_value in[] = {request[NAME], request[OWNER], request[REQUEST], rowlock_int(token)};
    bool changed;
    if (find_bound(m, in) != RLK_DONE ||
        rlk_member_clean(m, RLK_STEP_RETRACT, in, &changed) != RLK_DONE)
        owe_retract(m, request, in[HELD_TOKEN]);
}

static void lift(struct rlk_member *m, const rowlock_value *request, int64_t from, int64_t to,
                 rowlock_value holder)
{
    const rowlock_value in[] = {request[NAME],     request[OWNER],  request[REQUEST],
                                rowlock_int(from), rowlock_int(to), holder};
    bool changed;
    rlk_member_clean(m, RLK_STEP_LIFT, in, &changed);
    if (!changed)
        retract(m, request, ANY_TOKEN);
}

/* The holder has a majority, and this member lacks its row. It is claimed by an owner of its own,
 * so that no live row is taken, not even one of the holder: another connection may be giving it up.
 * While the lease lasts, no other request can have had a majority. So a claim that is answered by
 * then may become the holder's row. */
static void top_up(struct rlk_member *m, const struct rlk_ballot *b, const rowlock_value *renewed)
{
    struct rlk_ballot claim = {
        .step = RLK_STEP_ACQUIRE, .verdict = RLK_ROUND_GRANTED, .until_us = b->until_us};
    struct rlk_answer *answer = &claim.answer[m->number];
    const rowlock_db *db = m->db;
    char claimer[40];
    if (rlk_now_us() >= b->until_us || rlk_member_vote(m, &answer->call, b->until_us) != RLK_DONE ||
        !pay(m))
        return;
    int64_t number = rlk_next_number(m->db), ttl_us = rlk_quorum_lease(b->ttl_us);
    snprintf(claimer, sizeof claimer, "top-up %" PRId64, number);
    const rowlock_value request[VALUES] = {renewed[NAME],         rowlock_int(0),
                                           rowlock_text(claimer), rowlock_int(number),
                                           rowlock_int(ttl_us),   rowlock_text(db->host),
                                           rowlock_int(db->pid),  rowlock_text(db->program),
                                           rowlock_text(""),      rowlock_int(0),
                                           rowlock_int(1),        rowlock_int(0)};
    rlk_member_send(m, RLK_STEP_ACQUIRE, request, b->until_us, answer);
    enum rlk_job_act next = rlk_job_next(&claim, m->number, true, rlk_now_us());
    if (next == RLK_JOB_LIFT)
        lift(m, request, rlk_answer_token(answer), renewed[HELD_TOKEN].number, renewed[OWNER]);
    else if (next != RLK_JOB_LEAVE)
        retract(m, request, next == RLK_JOB_RETRACT ? rlk_answer_token(answer) : ANY_TOKEN);
    rlk_copies_clear(&answer->row);
}

/* ---- jobs */

static void carry_out(struct rlk_member *m, struct rlk_round *round)
{
    struct rlk_answer *answer = &round->ballot.answer[m->number];
    enum rlk_step step = round->ballot.step;
    int64_t deadline_us = round->ballot.must ? rlk_now_us() + REMOVE_US : round->ballot.deadline_us;
    struct rlk_copies in = round->in;
    int tries = 0;
    if (step == RLK_STEP_LIFT || step == RLK_STEP_RETRACT)
        in.value[HELD_TOKEN] = rowlock_int(round->ballot.from[m->number]);
    answer->class = rlk_member_vote(m, &answer->call, deadline_us);
    if (answer->class == RLK_DONE && !pay(m))
        answer->class = rlk_refuse(&answer->call, RLK_UNSENT, "it is still away");
    if (answer->class == RLK_DONE && step == RLK_STEP_RETRACT)
        answer->class = find_bound(m, in.value);
    if (answer->class == RLK_DONE)
        rlk_member_send(m, step, in.value, deadline_us, answer);
    /* What must be removed is not left to another round: the others have removed it already. */
    while (round->ballot.must && answer->class == RLK_CONTENTION && rlk_now_us() < deadline_us) {
        rlk_wait_plain(rlk_pause_retry(&m->db->waiting, &tries));
        rlk_member_send(m, step, in.value, deadline_us, answer);
    }
    if (round->ballot.must && answer->class != RLK_DONE)
        owe(m, step, in.value, in.count, rlk_now_us() + OWED_US);
}

/* The others go on without this member. So it is told once, when that begins and when it ends. */
static void warn(struct rlk_member *m, const struct rlk_answer *answer)
{
    bool away = answer->class == RLK_UNSENT || answer->class == RLK_UNCERTAIN;
    bool fails = away || (answer->class != RLK_DONE && answer->class != RLK_CONTENTION);
    if (fails == m->standing.fails || strcmp(answer->call.text, rlk_view_too_few) == 0)
        return;
    rlk_lock(&m->quorum->mutex);
    m->standing.fails = fails;
    rlk_unlock(&m->quorum->mutex);
    if (fails)
        rlk_log(ROWLOCK_LOG_WARNING, "member %zu of the quorum cannot be %s: %s", m->number + 1,
                away ? "reached" : "used", answer->call.text);
    else
        rlk_log(ROWLOCK_LOG_INFO, "member %zu of the quorum is back", m->number + 1);
}

static void act(struct rlk_member *m, struct rlk_round *round, enum rlk_job_act next)
{
    struct rlk_ballot *b = &round->ballot;
    struct rlk_answer *answer = &b->answer[m->number];
    const rowlock_value *in = round->in.value;
    if (next == RLK_JOB_LIFT)
        lift(m, in, rlk_answer_token(answer), b->token, in[OWNER]);
    else if (next == RLK_JOB_TOP_UP)
        top_up(m, b, in);
    else if (next == RLK_JOB_SEND)
        carry_out(m, round);
    else if (next == RLK_JOB_RETRACT)
        retract(m, in, rlk_answer_token(answer));
    else if (next == RLK_JOB_OWE)
        owe_retract(m, in, rowlock_int(ANY_TOKEN));
}

static void work_on(struct rlk_member *m, struct rlk_round *round)
{
    struct rlk_ballot *b = &round->ballot;
    struct rlk_answer *answer = &b->answer[m->number];
    rlk_lock(&m->quorum->mutex);
    b->standing[m->number] = m->standing;
    /* After a close nothing is tried with a member that is away: the program may be ending, and
     * with it the client library that would connect. */
    bool ends = m->quorum->closing && m->standing.away;
    enum rlk_job_act next = ends ? RLK_JOB_LEAVE : rlk_job_next(b, m->number, false, rlk_now_us());
    rlk_unlock(&m->quorum->mutex);
    bool sends = next == RLK_JOB_SEND;
    answer->class = RLK_UNSENT;
    act(m, round, next);
    if (sends)
        warn(m, answer);
    rlk_lock(&m->quorum->mutex);
    if (sends)
        m->standing.away = !rlk_is_up(m->db);
    next = rlk_job_next(b, m->number, true, rlk_now_us());
    answer->came = true;
    if (b->verdict == RLK_ROUND_OPEN)
        rlk_turn_post(&round->came);
    rlk_unlock(&m->quorum->mutex);
    act(m, round, next);
    if (answer->class == RLK_DONE)
        rlk_member_move_marks(m);
}

static struct rlk_job *next_job(struct rlk_member *m)
{
    struct rlk_job *job = m->at = m->first;
    m->standing.began_us = job ? rlk_now_us() : 0;
    if (!job)
        return NULL;
    m->first = job->next;
    if (!m->first)
        m->end = &m->first;
    m->standing.waiting--;
    return job;
}

/* ---- the beginning and the end */

/* One user less. The last one closes the handles. */
static void leave(struct rlk_quorum *quorum)
{
    rlk_lock(&quorum->mutex);
    bool last = --quorum->users == 0;
    rlk_unlock(&quorum->mutex);
    if (!last)
        return;
    for (size_t i = 0; i < quorum->count; i++) {
        if (quorum->free_db)
            quorum->free_db(quorum->member[i].db);
        rlk_turn_end(&quorum->member[i].go);
    }
    if (quorum->free_db)
        quorum->free_db(quorum->queue);
    pthread_mutex_destroy(&quorum->mutex);
    rlk_free(quorum);
}

static void *work(void *context)
{
    struct rlk_member *m = context;
    struct rlk_quorum *quorum = m->quorum;
    rlk_use_in_thread(m->db->driver, true);
    for (bool stop = false; !stop;) {
        rlk_wait_turn(&m->go, INT64_MAX);
        rlk_lock(&quorum->mutex);
        struct rlk_job *job = next_job(m);
        stop = !job && quorum->closing;
        rlk_unlock(&quorum->mutex);
        if (!job)
            continue;
        struct rlk_round *round = job->round;
        work_on(m, round);
        rlk_lock(&quorum->mutex);
        m->at = NULL;
        m->standing.began_us = 0;
        rlk_round_leave(round);
        rlk_unlock(&quorum->mutex);
    }
    /* A mark may have moved on since our last job. */
    rlk_member_move_marks(m);
    while (m->owed)
        forget_first(m);
    rlk_use_in_thread(m->db->driver, false);
    leave(quorum);
    return NULL;
}

/* With its thread, if all before it have started. */
static bool begin(struct rlk_quorum *quorum, size_t i, rowlock_db *db, bool started)
{
    struct rlk_member *m = &quorum->member[i];
    *m = (struct rlk_member){.quorum = quorum, .number = i, .db = db};
    m->end = &m->first;
    rlk_turn_init(&m->go);
    if (!started || !rlk_thread_start(NULL, work, m))
        return false;
    quorum->users++;
    return true;
}

struct rlk_quorum *rlk_quorum_new(rowlock_db *const *dbs, size_t count,
                                  void (*free_db)(rowlock_db *db))
{
    struct rlk_quorum *quorum = rlk_alloc(sizeof *quorum);
    bool started = true;
    if (!quorum)
        return NULL;
    pthread_mutex_init(&quorum->mutex, NULL);
    rlk_lock(&quorum->mutex);
    quorum->count = count;
    quorum->queue = dbs[count];
    quorum->users = 1;
    for (size_t i = 0; i < count; i++)
        started = begin(quorum, i, dbs[i], started);
    if (started)
        quorum->free_db = free_db;
    rlk_unlock(&quorum->mutex);
    if (!started)
        rlk_quorum_close(quorum);
    return started ? quorum : NULL;
}

/* Marks that move, or once it closes, threads that run. */
static bool is_busy(struct rlk_quorum *quorum)
{
    rlk_lock(&quorum->mutex);
    bool busy = quorum->closing && quorum->users > 1;
    for (size_t i = 0; i < quorum->count && !quorum->closing; i++)
        busy = busy || quorum->member[i].moving;
    quorum->leaving = true;
    rlk_unlock(&quorum->mutex);
    return busy;
}

/* A mark that has moved on in its member is written down by the others before they stop. */
void rlk_quorum_close(struct rlk_quorum *quorum)
{
    int64_t until_us = rlk_now_us() + CLOSE_US;
    while (is_busy(quorum) && rlk_now_us() < until_us)
        rlk_wait_plain(1000);
    rlk_lock(&quorum->mutex);
    quorum->closing = true;
    for (size_t i = 0; i < quorum->count; i++)
        rlk_turn_post(&quorum->member[i].go);
    rlk_unlock(&quorum->mutex);
    while (is_busy(quorum) && rlk_now_us() < until_us)
        rlk_wait_plain(1000);
    leave(quorum);
}
