/* SPDX-License-Identifier: MIT
 * Makes databases a quorum, and lets a member that may have lost grants vote again.
 *
 * A grant had a majority of the members. If one of them has lost it, one of the others of that
 * majority still has its token and its row. So the highest token and the longest lease of the
 * others say what the member must know. That takes all others of three, or four of five. */
#include "base/error.h"
#include "base/ident.h"
#include "db/db.h"
#include "quorum/quorum.h"
#include "seam/resend.h"
#include "seam/seam.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <rowlock/quorum.h>
#include <string.h>

enum { MARK = 33, OLD_ENOUGH_S = 10 };

struct candidate {
    rowlock_db *db;
    /* Why it cannot be reached. */
    rowlock_error away;
    struct rlk_roll roll;
    int64_t token, lease_us, runs_s;
    bool votes;
};

struct joining {
    struct candidate member[RLK_MEMBERS_MOST];
    size_t count, majority, voters, there;
    char quorum[MARK];
    bool is_new;
    rowlock_error *err;
};

static int fail(struct joining *j, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(struct joining *j, int code, const char *format, ...)
{
    rowlock_error why = ROWLOCK_ERROR_INIT;
    va_list arguments;
    rlk_error_begin(&why, "join the quorum", NULL);
    va_start(arguments, format);
    vsnprintf(why.text, sizeof why.text, format, arguments);
    va_end(arguments);
    why.code = code;
    rlk_error_copy(j->err, &why);
    return code;
}

/* Which member it was is not in its own error. */
static int fail_of(struct joining *j, const struct candidate *c, int code)
{
    return fail(j, code, "member %zu: %s", (size_t)(c - j->member) + 1, c->db->error.text);
}

/* ---- what the members know */

static int take_highest(void *out, const rowlock_value *cells, size_t count)
{
    struct candidate *c = out;
    (void)count;
    c->token = cells[0].number;
    c->lease_us = cells[1].number;
    c->runs_s = cells[2].number;
    return 0;
}

static enum rlk_class run_ask(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct candidate *c = context;
    struct rlk_sending roll = {.step = RLK_STEP_MEMBERS, .read = rlk_roll_take, .out = &c->roll};
    struct rlk_sending highest = {.step = RLK_STEP_HIGHEST, .read = take_highest, .out = c};
    c->roll = (struct rlk_roll){.known = true};
    enum rlk_class class = rlk_send(db, call, &roll);
    return class == RLK_DONE ? rlk_send(db, call, &highest) : class;
}

static int ask(struct joining *j, struct candidate *c)
{
    struct rlk_step_call step = {.run = run_ask, .context = c};
    int result = rlk_do(c->db, &step);
    return result == ROWLOCK_OK ? ROWLOCK_OK : fail_of(j, c, result);
}

static int open_all(struct joining *j, const char *const *urls, const rowlock_db_options *options)
{
    int result = ROWLOCK_OK;
    for (size_t i = 0; i < j->count && result == ROWLOCK_OK; i++) {
        struct candidate *c = &j->member[i];
        c->away = (rowlock_error)ROWLOCK_ERROR_INIT;
        int opened = rowlock_db_open(urls[i], options, &c->db, &c->away);
        if (opened == ROWLOCK_OK)
            result = ask(j, c);
        else if (opened != ROWLOCK_ECONN)
            return fail(j, opened, "member %zu: %s", i + 1, c->away.text);
        j->there += c->db != NULL;
    }
    return result;
}

/* ---- who may vote */

static bool is_witness(const struct joining *j, size_t i, size_t other)
{
    const struct rlk_roll *own = &j->member[i].roll, *its = &j->member[other].roll;
    return its->known && own->self && strcmp(own->quorum, its->quorum) == 0 &&
           strcmp(own->mark[i], its->mark[i]) == 0;
}

/* One database by two names, or a copy, would have two votes. */
static int find_twins(struct joining *j)
{
    for (size_t i = 0; i < j->count; i++)
        for (size_t other = 0; other < i; other++) {
            const rowlock_db *db = j->member[i].db, *twin = j->member[other].db;
            if (db && twin && strcmp(db->texts.identity, twin->texts.identity) == 0)
                return fail(j, ROWLOCK_ESCHEMA,
                            "members %zu and %zu are the same database, or copies of one: each "
                            "member needs an installation of its own",
                            other + 1, i + 1);
        }
    return ROWLOCK_OK;
}

/* A database that is another member, or of another quorum, is not taken. */
static int look(struct joining *j)
{
    for (size_t i = 0; i < j->count; i++) {
        struct candidate *c = &j->member[i];
        size_t witnesses = 0;
        if (!c->roll.self)
            continue;
        if (c->roll.self != i + 1 || c->roll.members != j->count)
            return fail(j, ROWLOCK_ESCHEMA,
                        "the database of URL %zu is member %zu of %zu: give the same URLs in the "
                        "same order",
                        i + 1, c->roll.self, c->roll.members);
        for (size_t other = 0; other < j->count; other++)
            witnesses += is_witness(j, i, other);
        c->votes = witnesses >= j->majority && !c->roll.restarted;
        j->voters += c->votes;
        if (j->quorum[0] && strcmp(j->quorum, c->roll.quorum) != 0)
            return fail(j, ROWLOCK_ESCHEMA, "member %zu is of another quorum (%s, not %s)", i + 1,
                        c->roll.quorum, j->quorum);
        rlk_copy_text(j->quorum, sizeof j->quorum, c->roll.quorum, strlen(c->roll.quorum));
    }
    j->is_new = !j->quorum[0];
    return ROWLOCK_OK;
}

static int need_others(struct joining *j)
{
    if (j->there == j->count || (!j->is_new && j->voters > j->count - j->majority))
        return ROWLOCK_OK;
    for (size_t i = 0; i < j->count; i++)
        if (!j->member[i].db)
            return fail(j, ROWLOCK_ECONN, "member %zu is away, and is needed for this: %s", i + 1,
                        j->member[i].away.text);
    return ROWLOCK_OK;
}

/* ---- joining */

static int64_t highest_token(const struct joining *j)
{
    int64_t token = 0;
    for (size_t i = 0; i < j->count; i++)
        if (j->member[i].token > token)
            token = j->member[i].token;
    return token;
}

/* Their leases have ended then, also for those who rely on a lease that was forgotten. */
static void wait_out(const struct joining *j)
{
    int64_t pause_us = 0;
    for (size_t i = 0; i < j->count; i++) {
        const struct candidate *c = &j->member[i];
        int64_t age_us = (OLD_ENOUGH_S - c->runs_s) * 1000000;
        if (!j->is_new && c->lease_us > pause_us)
            pause_us = c->lease_us;
        if (c->db && !c->votes && age_us > pause_us)
            pause_us = age_us;
    }
    if (pause_us > 1000000)
        rlk_log(ROWLOCK_LOG_WARNING, "join the quorum: waiting %" PRId64 " s for leases to end",
                pause_us / 1000000 + 1);
    rlk_wait_plain(pause_us ? pause_us + pause_us / 1000 + 1000 : 0);
}

struct writing {
    size_t member, members;
    const char *quorum, *mark;
    bool self;
};

static enum rlk_class run_write(rowlock_db *db, struct rlk_call *call, void *context)
{
    const struct writing *w = context;
    const rowlock_value in[] = {rowlock_int((int64_t)w->member + 1),
                                rowlock_int((int64_t)w->members), rowlock_text(w->quorum),
                                rowlock_int(w->self), rowlock_text(w->mark)};
    struct rlk_sending s = {.step = RLK_STEP_MEMBER, .in = in};
    return rlk_send(db, call, &s);
}

/* Member `i` writes down the mark of another. */
static int write_down(struct joining *j, size_t i, size_t other)
{
    struct candidate *c = &j->member[i];
    struct writing w = {.member = other,
                        .members = j->count,
                        .quorum = j->quorum,
                        .mark = j->member[other].roll.mark[other],
                        .self = i == other};
    struct rlk_step_call step = {.run = run_write, .context = &w};
    int result = c->db ? rlk_do(c->db, &step) : ROWLOCK_OK;
    return result == ROWLOCK_OK ? ROWLOCK_OK : fail_of(j, c, result);
}

struct raising {
    int64_t by, floor;
};

static enum rlk_class run_raise(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct raising *r = context;
    return rlk_step_raise(db, call, r->by, &r->floor);
}

static int raise_tokens(struct joining *j, struct candidate *c)
{
    struct raising r = {.by = highest_token(j) + 1 - c->token};
    struct rlk_step_call step = {.run = run_raise, .context = &r};
    int result = j->is_new ? ROWLOCK_OK : rlk_do(c->db, &step);
    return result == ROWLOCK_OK ? ROWLOCK_OK : fail_of(j, c, result);
}

/* The others have the new mark before the member itself has it: until then it does not vote. */
static int admit(struct joining *j, size_t i)
{
    struct candidate *c = &j->member[i];
    int result = raise_tokens(j, c);
    for (size_t other = 0; other < j->count && result == ROWLOCK_OK; other++)
        if (other != i)
            result = write_down(j, other, i);
    for (size_t other = 0; other < j->count && result == ROWLOCK_OK; other++)
        if (other != i && j->member[other].roll.mark[other][0])
            result = write_down(j, i, other);
    return result == ROWLOCK_OK ? write_down(j, i, i) : result;
}

static int new_mark(struct joining *j, char mark[MARK])
{
    unsigned char bytes[(MARK - 1) / 2];
    uint64_t random = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i % 8 == 0 && rlk_random_seed(&random) != 0)
            return fail(j, ROWLOCK_ENOMEM, "no random numbers");
        bytes[i] = (unsigned char)(random >> i % 8 * 8);
    }
    *rlk_write_hex((const char *)bytes, sizeof bytes, mark) = '\0';
    return ROWLOCK_OK;
}

/* Of a member that is away, a voter knows the mark. */
static void learn_marks(struct joining *j)
{
    for (size_t i = 0; i < j->count; i++)
        for (size_t other = 0; other < j->count && !j->member[i].db; other++)
            if (j->member[other].votes)
                memcpy(j->member[i].roll.mark[i], j->member[other].roll.mark[i],
                       sizeof j->member[i].roll.mark[i]);
}

static int join(struct joining *j)
{
    int result = j->is_new ? new_mark(j, j->quorum) : ROWLOCK_OK;
    wait_out(j);
    learn_marks(j);
    for (size_t i = 0; i < j->count && result == ROWLOCK_OK; i++)
        if (j->member[i].db && !j->member[i].votes)
            result = new_mark(j, j->member[i].roll.mark[i]);
    for (size_t i = 0; i < j->count && result == ROWLOCK_OK; i++)
        if (j->member[i].db && !j->member[i].votes)
            result = admit(j, i);
    return result;
}

int rowlock_quorum_join(const char *const *urls, size_t count, const rowlock_db_options *options,
                        rowlock_error *err)
{
    struct joining j = {.count = count, .majority = count / 2 + 1, .err = err};
    if (!urls || (count != 3 && count != RLK_MEMBERS_MOST))
        return fail(&j, ROWLOCK_EINVAL, "a quorum has 3 or %d members", RLK_MEMBERS_MOST);
    int result = open_all(&j, urls, options);
    if (result == ROWLOCK_OK && (result = find_twins(&j)) == ROWLOCK_OK &&
        (result = look(&j)) == ROWLOCK_OK && (result = need_others(&j)) == ROWLOCK_OK &&
        j.voters < j.there)
        result = join(&j);
    for (size_t i = 0; i < count && result == ROWLOCK_OK; i++)
        if (!j.member[i].db)
            result = fail(&j, ROWLOCK_ECONN, "member %zu is away; join again when it is back: %s",
                          i + 1, j.member[i].away.text);
    for (size_t i = 0; i < count; i++)
        rowlock_db_close(j.member[i].db);
    return result;
}
