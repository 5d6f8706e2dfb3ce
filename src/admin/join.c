/* SPDX-License-Identifier: MIT
 * Makes databases a quorum, and lets a member that may have lost grants vote again.
 *
 * A grant had a majority of the members. If one of them has lost it, one of the others of that
 * majority still has its token and its row. So the highest token and the longest lease of the
 * others say what the member must know. That takes all others of three, or four of five. */
#include "base/ident.h"
#include "admin/admin.h"
#include "admin/survey.h"
#include "core/ask.h"

#include <inttypes.h>
#include <rowlock/quorum.h>
#include <string.h>

/* It has no marks, or another has written down a newer one. A member that has only rows about
 * others never voted: its first join was interrupted. One that knows an older mark of another was
 * restored, or was away: that says nothing about the other. */
static bool has_lost(const struct rlk_survey *j, size_t i)
{
    const struct rlk_view *own = &j->view[i];
    bool lost = !own->quorum[0] || rlk_view_is_behind(j->view, j->count, i);
    for (size_t other = 0; other < j->count && own->self; other++)
        lost = lost ||
               (strcmp(own->quorum, j->view[other].quorum) == 0 &&
                rlk_mark_generation(j->view[other].mark[i]) == rlk_mark_generation(own->mark[i]) &&
                !rlk_view_is_behind(j->view, j->count, other) &&
                !rlk_view_is_witness(j->view, i, other));
    return own->known && lost;
}

/* A grant had a majority. If a majority has lost what it knew, no member may know of the grant. */
static int need_knowledge(struct rlk_survey *j)
{
    size_t lost = 0;
    for (size_t i = 0; i < j->count; i++)
        lost += has_lost(j, i);
    if (j->is_new || lost < j->majority)
        return ROWLOCK_OK;
    return rlk_survey_fail(
        j, ROWLOCK_ESCHEMA,
        "%zu of the %zu members have lost what they knew, so grants may be forgotten: if backups "
        "were put back into fewer, DELETE FROM rowlock_members there and join again; else see "
        "\"a majority is lost\" in QUORUM.md",
        lost, j->count);
}

static int need_others(struct rlk_survey *j)
{
    if (j->there == j->count || (!j->is_new && j->voters > j->count - j->majority))
        return ROWLOCK_OK;
    for (size_t i = 0; i < j->count; i++)
        if (!j->member[i].db)
            return rlk_survey_fail(j, ROWLOCK_ECONN,
                                   "member %zu is away, and is needed for this: %s", i + 1,
                                   j->member[i].away.text);
    return ROWLOCK_OK;
}

/* Another database in the place of a member would cost the quorum the true one, and all programs
 * that use the other one alone. So an operator must say that it is meant. */
static int refuse_strangers(struct rlk_survey *j)
{
    for (size_t i = 0; i < j->count; i++) {
        const char *mark = j->member[i].votes ? NULL : rlk_survey_stranger(j, i);
        if (mark && j->replaces != i + 1)
            return rlk_survey_fail(
                j, ROWLOCK_ESCHEMA,
                "the database of URL %zu is not the one that joined as member %zu: its "
                "installation is %.16s, not %.16s. Is the URL right? To replace the member, run "
                "`rowlock quorum-join --replace %zu`",
                i + 1, i + 1, j->member[i].db->texts.identity, mark, i + 1);
    }
    return ROWLOCK_OK;
}

static void tell_replaced(const struct rlk_survey *j)
{
    size_t i = j->replaces - 1;
    const char *mark = j->replaces ? rlk_survey_stranger(j, i) : NULL;
    if (mark)
        rlk_log(ROWLOCK_LOG_WARNING,
                "join the quorum: installation %.16s takes the place of %.16s as member %zu",
                j->member[i].db->texts.identity, mark, i + 1);
}

/* ---- one join at a time */

enum { TURN_US = 10000000, LOOK_US = 250000 };

static struct rlk_request request_of(const struct rlk_candidate *c)
{
    static const char join[] = "rowlock quorum-join";
    return (struct rlk_request){.name = join,
                                .owner = join,
                                .number = c->request,
                                .ticket = c->place.ticket,
                                .host = c->db->host,
                                .pid = c->db->pid,
                                .program = c->db->program,
                                .note = ""};
}

/* The members in an order that is the same for all joins, with any order of their URLs.
 * Members that are away are left out. Returns the number of the others. */
static size_t put_in_order(struct rlk_survey *j, struct rlk_candidate *order[RLK_MEMBERS_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        struct rlk_candidate *c = &j->member[i];
        size_t at = count;
        if (!c->db)
            continue;
        for (; at > 0 && strcmp(order[at - 1]->db->texts.identity, c->db->texts.identity) > 0; at--)
            order[at] = order[at - 1];
        order[at] = c;
        count++;
    }
    return count;
}

/* In the queue of each of the first members. Tickets that we have get a new lease. LAPSED: they may
 * have ended meanwhile, so another join may have its turn. */
static int take_places(struct rlk_survey *j, size_t members)
{
    struct rlk_candidate *order[RLK_MEMBERS_MOST];
    size_t count = put_in_order(j, order);
    int64_t now_us = rlk_now_us();
    if (j->turn_us && now_us - j->turn_us > TURN_US)
        return ROWLOCK_LAPSED;
    for (size_t i = 0; i < count && i < members; i++) {
        if (!order[i]->request)
            order[i]->request = rlk_next_number(order[i]->db);
        struct rlk_ask ask = {.step = RLK_STEP_NONE};
        const struct rlk_request request = request_of(order[i]);
        rlk_step_enqueue(&ask, &request, TURN_US, &order[i]->place);
        int result = rlk_ask(order[i]->db, &ask);
        if (result != ROWLOCK_OK)
            return rlk_survey_fail_of(j, order[i], result);
    }
    j->turn_us = now_us;
    return ROWLOCK_OK;
}

static void leave_places(struct rlk_survey *j)
{
    for (size_t i = 0; i < j->count; i++) {
        struct rlk_candidate *c = &j->member[i];
        struct rlk_ask ask = {.step = RLK_STEP_NONE};
        if (c->place.ticket) {
            const struct rlk_request request = request_of(c);
            rlk_step_leave(&ask, &request);
            rlk_ask(c->db, &ask);
        }
        c->request = c->place.ticket = 0;
    }
    j->turn_us = 0;
}

/* Two joins share a member. We are the first in a queue when we have seen that twice: a ticket
 * before ours may have been on its way. */
static int wait_for_turn(struct rlk_survey *j)
{
    struct rlk_candidate *order[RLK_MEMBERS_MOST];
    size_t count = put_in_order(j, order);
    int result = ROWLOCK_OK;
    for (size_t i = 0; i < count; i++)
        for (int seen = 0; seen < 2 && result == ROWLOCK_OK; seen++) {
            result = take_places(j, i + 1);
            if (result == ROWLOCK_OK && order[i]->place.ahead > 0) {
                rlk_wait_plain(LOOK_US);
                seen = -1;
            }
        }
    return result;
}

/* ---- joining */

static int64_t highest_token(const struct rlk_survey *j)
{
    int64_t token = 0;
    for (size_t i = 0; i < j->count; i++)
        if (j->member[i].token > token)
            token = j->member[i].token;
    return token;
}

/* Waits, and keeps our turn. */
static int wait_until(struct rlk_survey *j, int64_t until_us, const char *what)
{
    int result = ROWLOCK_OK;
    int64_t left_us = until_us - rlk_now_us();
    if (left_us > 1000000)
        rlk_log(ROWLOCK_LOG_WARNING, "join the quorum: waiting %" PRId64 " s for %s to end",
                left_us / 1000000 + 1, what);
    for (; result == ROWLOCK_OK && (left_us = until_us - rlk_now_us()) > 0;) {
        rlk_wait_plain(left_us < TURN_US / 4 ? left_us : TURN_US / 4);
        result = take_places(j, j->count);
    }
    return result;
}

/* A call may be under way that counts an answer which a member has lost since, and waits for
 * another one. Returns when all such calls are over. A restarted member has lost nothing since its
 * start. */
static int64_t calls_end(const struct rlk_survey *j)
{
    int64_t end_us = 0;
    for (size_t i = 0; i < j->count && !j->is_new; i++) {
        const struct rlk_candidate *c = &j->member[i];
        if (!c->db || c->votes)
            continue;
        int64_t lost_us = c->lost_us, start_us = c->view->read_us - c->runs_s * 1000000;
        if (c->view->restarted && start_us < lost_us)
            lost_us = start_us;
        int64_t over_us = lost_us + rlk_quorum_lease(c->db->statement_us);
        end_us = over_us > end_us ? over_us : end_us;
    }
    return end_us;
}

/* What such calls do at the other members must be over before these are asked what they know. */
static int look_anew(struct rlk_survey *j)
{
    int result = rlk_survey_anew(j);
    while (result == ROWLOCK_OK && calls_end(j) > rlk_now_us())
        if ((result = wait_until(j, calls_end(j), "calls")) == ROWLOCK_OK)
            result = rlk_survey_anew(j);
    return result;
}

/* Their leases have ended then, also for those who rely on a lease that was forgotten. */
static int wait_out(struct rlk_survey *j)
{
    int64_t pause_us = 0;
    for (size_t i = 0; i < j->count; i++) {
        const struct rlk_candidate *c = &j->member[i];
        int64_t age_us = (c->must_run_s - c->runs_s) * 1000000;
        if (c->lease_us > pause_us)
            pause_us = c->lease_us;
        if (c->db && !c->votes && age_us > pause_us)
            pause_us = age_us;
    }
    return pause_us ? wait_until(j, rlk_now_us() + rlk_quorum_lease(pause_us), "leases")
                    : ROWLOCK_OK;
}

/* Member `i` writes down the mark of another. */
static int write_down(struct rlk_survey *j, size_t i, size_t other)
{
    struct rlk_candidate *c = &j->member[i];
    struct rlk_ask ask = {.step = RLK_STEP_MEMBER,
                          .in = {rowlock_int((int64_t)other + 1), rowlock_int((int64_t)j->count),
                                 rowlock_text(j->quorum), rowlock_int(i == other),
                                 rowlock_text(j->view[other].mark[other])}};
    int result = c->db ? rlk_ask(c->db, &ask) : ROWLOCK_OK;
    return result == ROWLOCK_OK ? ROWLOCK_OK : rlk_survey_fail_of(j, c, result);
}

static int raise_tokens(struct rlk_survey *j, struct rlk_candidate *c)
{
    int64_t highest = highest_token(j);
    int result = highest > 0 ? rlk_raise(c->db, highest + 1 - c->token, NULL) : ROWLOCK_OK;
    return result == ROWLOCK_OK ? ROWLOCK_OK : rlk_survey_fail_of(j, c, result);
}

/* The others have the new mark before the member itself has it: until then it does not vote. */
static int admit(struct rlk_survey *j, size_t i)
{
    struct rlk_candidate *c = &j->member[i];
    int result = raise_tokens(j, c);
    for (size_t other = 0; other < j->count && result == ROWLOCK_OK; other++)
        if (other != i)
            result = write_down(j, other, i);
    for (size_t other = 0; other < j->count && result == ROWLOCK_OK; other++)
        if (other != i && j->view[other].mark[other][0])
            result = write_down(j, i, other);
    return result == ROWLOCK_OK ? write_down(j, i, i) : result;
}

static int draw(struct rlk_survey *j, char random[RLK_TEXT_MAX + 1])
{
    return rlk_random_owner(random) == 0 ? ROWLOCK_OK
                                         : rlk_survey_fail(j, ROWLOCK_ENOMEM, "no random numbers");
}

/* It is newer than each mark of this member that is known. */
static int new_mark(struct rlk_survey *j, size_t i)
{
    char random[RLK_TEXT_MAX + 1];
    uint32_t newest = 0;
    int result = draw(j, random);
    for (size_t by = 0; by < j->count; by++) {
        uint32_t generation = rlk_mark_generation(j->view[by].mark[i]);
        newest = generation > newest ? generation : newest;
    }
    if (result == ROWLOCK_OK)
        rlk_mark_write(j->view[i].mark[i], j->member[i].db->texts.identity, newest + 1, random);
    return result;
}

/* A voter knows the mark of a member that is away. */
static void learn_marks(struct rlk_survey *j)
{
    for (size_t i = 0; i < j->count; i++)
        for (size_t other = 0; other < j->count && !j->member[i].db; other++)
            if (j->member[other].votes)
                memcpy(j->view[i].mark[i], j->view[other].mark[i], sizeof j->view[i].mark[i]);
}

static int join(struct rlk_survey *j)
{
    char name[RLK_TEXT_MAX + 1];
    int result = j->is_new ? draw(j, name) : ROWLOCK_OK;
    if (j->is_new && result == ROWLOCK_OK)
        rlk_copy_text(j->quorum, sizeof j->quorum, name, strlen(name));
    if (result == ROWLOCK_OK)
        result = wait_out(j);
    learn_marks(j);
    tell_replaced(j);
    for (size_t i = 0; i < j->count && result == ROWLOCK_OK; i++)
        if (j->member[i].db && !j->member[i].votes)
            result = new_mark(j, i);
    for (size_t i = 0; i < j->count && result == ROWLOCK_OK; i++)
        if (j->member[i].db && !j->member[i].votes &&
            (result = take_places(j, j->count)) == ROWLOCK_OK)
            result = admit(j, i);
    return result;
}

static bool all_vote(struct rlk_survey *j)
{
    rowlock_error *err = j->err;
    j->err = NULL;
    bool fine =
        rlk_survey_look(j) == ROWLOCK_OK && need_others(j) == ROWLOCK_OK && j->voters == j->there;
    j->err = err;
    return fine;
}

/* What another join has half written looks like a loss. So all is read again. */
static int take_turn(struct rlk_survey *j)
{
    int result = wait_for_turn(j);
    if (result == ROWLOCK_OK && (result = look_anew(j)) == ROWLOCK_OK &&
        (result = refuse_strangers(j)) == ROWLOCK_OK && (result = need_others(j)) == ROWLOCK_OK &&
        (result = need_knowledge(j)) == ROWLOCK_OK && j->voters < j->there)
        result = join(j);
    leave_places(j);
    return result;
}

int rowlock_quorum_join(const char *urls, int replaced, const rowlock_db_options *options,
                        rowlock_error *err)
{
    struct rlk_survey j = {.action = "join the quorum", .err = err};
    if (replaced < 0)
        return rlk_survey_fail(&j, ROWLOCK_EINVAL, "there is no member %d", replaced);
    j.replaces = (size_t)replaced;
    int result = rlk_survey_open(&j, urls, options);
    /* Only the databases that joined get a ticket. */
    if (result == ROWLOCK_OK && !all_vote(&j) && (result = refuse_strangers(&j)) == ROWLOCK_OK)
        do
            result = take_turn(&j);
        while (result == ROWLOCK_LAPSED);
    for (size_t i = 0; i < j.count && result == ROWLOCK_OK; i++)
        if (!j.member[i].db)
            result = rlk_survey_fail(&j, ROWLOCK_ECONN,
                                     "member %zu is away; join again when it is back: %s", i + 1,
                                     j.member[i].away.text);
    rlk_survey_close(&j);
    return result;
}
