/* SPDX-License-Identifier: MIT
 * Asks the databases of a quorum what they know, and which of them votes. */
#include "admin/survey.h"

#include "base/error.h"
#include "base/url.h"
#include "admin/admin.h"
#include "core/ask.h"

#include <rowlock/quorum.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int rlk_survey_fail(struct rlk_survey *s, int code, const char *format, ...)
{
    rowlock_error why;
    va_list arguments;
    rlk_error_begin(&why, s->action, NULL);
    va_start(arguments, format);
    rlk_error_vset(&why, code, format, arguments);
    va_end(arguments);
    rlk_error_copy(s->err, &why);
    return code;
}

int rlk_survey_fail_of(struct rlk_survey *s, const struct rlk_candidate *c, int code)
{
    const rowlock_error *error = &c->db->error;
    rowlock_error why;
    rlk_error_begin(&why, s->action, NULL);
    rlk_error_set(&why, code, "member %zu: %s", (size_t)(c - s->member) + 1, error->text);
    why.retryable = error->retryable;
    rlk_error_copy(s->err, &why);
    return code;
}

/* ---- what the members know */

static int ask(struct rlk_candidate *c)
{
    static const struct rlk_field fields[] = {
        RLK_FIELD(struct rlk_candidate, token), RLK_FIELD(struct rlk_candidate, lease_us),
        RLK_FIELD(struct rlk_candidate, runs_s), RLK_FIELD(struct rlk_candidate, must_run_s)};
    struct rlk_ask view = {.step = RLK_STEP_NONE};
    struct rlk_ask highest = {.step = RLK_STEP_HIGHEST, .fields = fields, .out = c};
    rlk_step_members(&view, c->view);
    int result = rlk_ask(c->db, &view);
    c->view->read_us = rlk_now_us();
    return result == ROWLOCK_OK ? rlk_ask(c->db, &highest) : result;
}

static int ask_again(struct rlk_survey *s, size_t i)
{
    int result = ask(&s->member[i]);
    return result == ROWLOCK_OK ? ROWLOCK_OK : rlk_survey_fail_of(s, &s->member[i], result);
}

/* A join must not go on without a member that is there. */
static bool counts_as_away(const struct rlk_survey *s, int opened)
{
    return opened == ROWLOCK_ECONN || (s->only_looks && opened != ROWLOCK_EINVAL);
}

static int open_all(struct rlk_survey *s, const struct rlk_urls *urls,
                    const rowlock_db_options *options)
{
    for (size_t i = 0; i < s->count; i++) {
        struct rlk_candidate *c = &s->member[i];
        c->away = (rowlock_error)ROWLOCK_ERROR_INIT;
        c->view = &s->view[i];
        int opened = rowlock_db_open(urls->url[i], options, &c->db, &c->away);
        if (opened == ROWLOCK_OK && (opened = ask(c)) != ROWLOCK_OK) {
            rlk_error_copy(&c->away, &c->db->error);
            rowlock_db_close(c->db);
            c->db = NULL;
            *c->view = (struct rlk_view){.known = false};
        }
        if (opened != ROWLOCK_OK && !counts_as_away(s, opened))
            return rlk_survey_fail(s, opened, "member %zu: %s", i + 1, c->away.text);
        s->there += c->db != NULL;
    }
    return ROWLOCK_OK;
}

/* ---- who may vote */

/* One database by two names, or a copy, would have two votes. */
static int find_twins(struct rlk_survey *s)
{
    for (size_t i = 0; i < s->count; i++)
        for (size_t other = 0; other < i; other++) {
            const rowlock_db *db = s->member[i].db, *twin = s->member[other].db;
            if (db && twin && strcmp(db->texts.identity, twin->texts.identity) == 0)
                return rlk_survey_fail(
                    s, ROWLOCK_ESCHEMA,
                    "members %zu and %zu are the same database, or copies of one: each "
                    "member needs an installation of its own",
                    other + 1, i + 1);
        }
    return ROWLOCK_OK;
}

static bool is_behind(const struct rlk_survey *s, size_t i)
{
    return rlk_view_is_behind(s->view, s->count, i);
}

/* Its mark may have moved between two readings. */
static int read_again(struct rlk_survey *s)
{
    int result = ROWLOCK_OK;
    for (size_t i = 0; i < s->count && result == ROWLOCK_OK; i++)
        if (is_behind(s, i))
            result = ask_again(s, i);
    return result;
}

static bool may_vote(struct rlk_survey *s, size_t i)
{
    struct rlk_call *why = &s->member[i].why;
    if (rlk_view_judge(s->view, s->count, i, why) != RLK_DONE)
        return false;
    if (is_behind(s, i))
        rlk_refuse(why, RLK_SCHEMA, "another member knows a newer mark of it");
    return !is_behind(s, i);
}

const char *rlk_survey_stranger(const struct rlk_survey *s, size_t i)
{
    const rowlock_db *db = s->member[i].db;
    const struct rlk_view *own = &s->view[i];
    const char *newest = NULL;
    bool elsewhere = (own->quorum[0] && strcmp(own->quorum, s->quorum) != 0) ||
                     (own->self && own->self != i + 1);
    for (size_t by = 0; by < s->count && s->quorum[0]; by++) {
        const struct rlk_view *view = &s->view[by];
        uint32_t generation = rlk_mark_generation(view->mark[i]);
        if (by != i && strcmp(view->quorum, s->quorum) == 0 &&
            generation > (newest ? rlk_mark_generation(newest) : 0))
            newest = view->mark[i];
    }
    return db && !elsewhere && newest && !rlk_mark_is_of(newest, db->texts.identity) ? newest
                                                                                     : NULL;
}

static void doubt_strangers(struct rlk_survey *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!s->member[i].votes && rlk_survey_stranger(s, i))
            rlk_refuse(&s->member[i].why, RLK_SCHEMA,
                       "it is not the database that joined: is its URL right? If it takes the "
                       "place of a lost one, run `rowlock quorum-join --replace %zu`",
                       i + 1);
}

/* A database that is another member, or of another quorum, is not taken. */
static int look(struct rlk_survey *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct rlk_view *view = &s->view[i];
        struct rlk_candidate *c = &s->member[i];
        c->votes = may_vote(s, i);
        if (c->votes)
            c->lost_us = 0;
        else if (!c->lost_us)
            c->lost_us = rlk_now_us();
        if (!view->self)
            continue;
        if (view->self != i + 1 || view->members != s->count)
            return rlk_survey_fail(
                s, ROWLOCK_ESCHEMA,
                "the database of URL %zu is member %zu of %zu: give the same URLs in the "
                "same order",
                i + 1, view->self, view->members);
        s->voters += c->votes;
        if (s->quorum[0] && strcmp(s->quorum, view->quorum) != 0)
            return rlk_survey_fail(s, ROWLOCK_ESCHEMA,
                                   "member %zu is of another quorum (%s, not %s)", i + 1,
                                   view->quorum, s->quorum);
        rlk_copy_text(s->quorum, sizeof s->quorum, view->quorum, strlen(view->quorum));
    }
    s->is_new = !s->quorum[0];
    doubt_strangers(s);
    return ROWLOCK_OK;
}

int rlk_survey_open(struct rlk_survey *s, const char *urls, const rowlock_db_options *options)
{
    struct rlk_urls cut;
    if (!rlk_urls_cut(urls ? urls : "", &cut))
        return rlk_survey_fail(s, ROWLOCK_ENOMEM, "out of memory");
    int result = ROWLOCK_OK;
    if (cut.count != 3 && cut.count != RLK_MEMBERS_MOST) {
        result = rlk_survey_fail(s, ROWLOCK_EINVAL, "a quorum has 3 or %d members, not %zu",
                                 RLK_MEMBERS_MOST, cut.count);
    } else if (s->replaces > cut.count) {
        result = rlk_survey_fail(s, ROWLOCK_EINVAL, "there is no member %zu: members are 1 to %zu",
                                 s->replaces, cut.count);
    } else {
        s->count = cut.count;
        s->majority = rlk_majority(s->count);
        result = open_all(s, &cut, options);
    }
    rlk_urls_free(&cut);
    return result == ROWLOCK_OK ? find_twins(s) : result;
}

int rlk_survey_look(struct rlk_survey *s)
{
    int result = read_again(s);
    return result == ROWLOCK_OK ? look(s) : result;
}

int rlk_survey_anew(struct rlk_survey *s)
{
    int result = ROWLOCK_OK;
    s->voters = 0;
    s->quorum[0] = '\0';
    for (size_t i = 0; i < s->count && result == ROWLOCK_OK; i++)
        if (s->member[i].db)
            result = ask_again(s, i);
    return result == ROWLOCK_OK ? rlk_survey_look(s) : result;
}

void rlk_survey_close(struct rlk_survey *s)
{
    for (size_t i = 0; i < RLK_MEMBERS_MOST; i++)
        rowlock_db_close(s->member[i].db);
}

/* ---- checking */

static rowlock_finding judge(const struct rlk_candidate *c)
{
    if (c->votes)
        return (rowlock_finding){.value = "votes", .advice = "", .verdict = ROWLOCK_FINE};
    if (!c->db)
        return (rowlock_finding){.value = c->away.text,
                                 .advice = c->away.code == ROWLOCK_ECONN
                                               ? "start it, or repair the way to it"
                                               : "it does not vote until then",
                                 .verdict = ROWLOCK_BAD};
    return (rowlock_finding){
        .value = c->why.text, .advice = "it does not vote until then", .verdict = ROWLOCK_BAD};
}

int rowlock_quorum_check(const char *urls, const rowlock_db_options *options,
                         int (*each)(void *context, const rowlock_finding *finding), void *context,
                         rowlock_error *err)
{
    struct rlk_survey s = {.action = "check the quorum", .only_looks = true, .err = err};
    int result = rlk_survey_open(&s, urls, options);
    if (result == ROWLOCK_OK)
        result = rlk_survey_look(&s);
    for (size_t i = 0; i < s.count && result == ROWLOCK_OK; i++) {
        char item[32];
        snprintf(item, sizeof item, "member %zu", i + 1);
        rowlock_finding finding = judge(&s.member[i]);
        finding.item = item;
        if (each && each(context, &finding) != 0)
            break;
    }
    rlk_survey_close(&s);
    return result;
}
