/* SPDX-License-Identifier: MIT
 * Which members may vote. Each has the marks of all members written down. A member that was
 * restored, or has failed over, has lost its own mark, or has an older one than the others know.
 * After a restart of its server the mark does not count: grants may have been lost with that.
 * `rowlock quorum-join` makes a new mark. */
#include "quorum/quorum.h"
#include "core/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By how much the start of a server may seem to move: MySQL counts whole seconds. */
enum { START_MOVES = 3 };
/* A mark that is older moves on. */
enum { MARK_AGE_US = 30000000 };

const char rlk_view_too_few[] = "too few members can be reached to tell whether it may vote";

/* ---- marks */

enum { OF_IDENTITY = 16, OF_GENERATION = 8 };

void rlk_mark_write(char mark[RLK_MARK], const char *identity, uint32_t generation,
                    const char *random)
{
    snprintf(mark, RLK_MARK, "%-16.16s%08" PRIx32 "%.8s", identity, generation, random);
}

uint32_t rlk_mark_generation(const char *mark)
{
    char digits[OF_GENERATION + 1];
    if (strlen(mark) != RLK_MARK - 1)
        return 0;
    rlk_copy_text(digits, sizeof digits, mark + OF_IDENTITY, OF_GENERATION);
    return (uint32_t)strtoul(digits, NULL, 16);
}

bool rlk_mark_is_of(const char *mark, const char *identity)
{
    return strncmp(mark, identity, OF_IDENTITY) == 0;
}

/* ---- what a member has written down */

enum { MEMBER, MEMBERS, QUORUM, SELF, MARK, STARTED, RUNNING, MOVED, NOW };

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
    view->now_us = cells[NOW].number;
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

bool rlk_view_is_witness(const struct rlk_view *views, size_t i, size_t by)
{
    const struct rlk_view *own = &views[i], *its = &views[by];
    return its->known && strcmp(its->quorum, own->quorum) == 0 &&
           strcmp(its->mark[i], own->mark[i]) == 0;
}

static size_t witnesses(const struct rlk_view *views, size_t count, size_t i)
{
    size_t found = 0;
    for (size_t by = 0; by < count; by++)
        found += rlk_view_is_witness(views, i, by);
    return found;
}

static bool is_other_quorum(const struct rlk_view *views, size_t count, const struct rlk_view *own)
{
    size_t same = 0, others = 0;
    for (size_t j = 0; j < count; j++)
        if (strcmp(views[j].quorum, own->quorum) == 0)
            same++;
        else
            others += views[j].quorum[0] != '\0';
    return others > 0 && same < rlk_majority(count);
}

/* The other one knows a newer mark of it, or a newer move of its mark. */
static bool is_older(const struct rlk_view *own, const struct rlk_view *other)
{
    size_t i = own->self ? own->self - 1 : 0;
    if (!own->self || !other->known || strcmp(own->quorum, other->quorum) != 0)
        return false;
    if (strcmp(own->mark[i], other->mark[i]) == 0)
        return own->moved[i] < other->moved[i];
    return rlk_mark_generation(own->mark[i]) < rlk_mark_generation(other->mark[i]);
}

bool rlk_view_is_behind(const struct rlk_view *views, size_t count, size_t i)
{
    for (size_t j = 0; j < count; j++)
        if (is_older(&views[i], &views[j]))
            return true;
    return false;
}

/* A move that we read before our reading of the member began was known to it then. */
static bool has_forgotten(const struct rlk_view *views, size_t count, const struct rlk_view *own)
{
    for (size_t j = 0; j < count; j++) {
        const struct rlk_view *other = &views[j];
        if (is_older(own, other) && own->begun_us > other->read_us)
            return true;
    }
    return false;
}

enum rlk_class rlk_view_judge(const struct rlk_view *views, size_t count, size_t i,
                              struct rlk_call *call)
{
    const struct rlk_view *own = &views[i];
    size_t known = 0;
    for (size_t j = 0; j < count; j++)
        known += views[j].known;
    if (!own->self)
        return rlk_refuse(call, RLK_SCHEMA, "it is of no quorum yet: run `rowlock quorum-join`");
    if (own->members != count || own->self != i + 1)
        return rlk_refuse(
            call, RLK_SCHEMA,
            "it is member %zu of a quorum of %zu: give the same URLs in the same order "
            "everywhere",
            own->self, own->members);
    if (own->restarted)
        return rlk_refuse(call, RLK_SCHEMA,
                          "it was restarted or restored, and may have lost grants: run `rowlock "
                          "quorum-join`");
    bool forgot = has_forgotten(views, count, own);
    size_t found = witnesses(views, count, i);
    if (!forgot && found >= rlk_majority(count))
        return RLK_DONE;
    /* A member that could be read has other marks. It may be the old one. */
    if (!forgot && found + count - known >= rlk_majority(count))
        return rlk_refuse(call, RLK_UNSENT, "%s", rlk_view_too_few);
    return rlk_refuse(call, RLK_SCHEMA,
                      is_other_quorum(views, count, own)
                          ? "it is of another quorum: give the same URLs everywhere"
                          : "it was restored, and may have lost grants: run `rowlock quorum-join`");
}

/* ---- marks move on */

/* Its clock may have jumped back. */
static int64_t next_move(const struct rlk_member *m)
{
    const struct rlk_view *view = &m->quorum->view[m->number];
    int64_t last_us = view->moved[m->number];
    int64_t now_us = view->now_us + rlk_now_us() - m->asked_us;
    bool young = now_us >= last_us && now_us - last_us < MARK_AGE_US;
    if (young || rlk_now_us() - m->moved_us < MARK_AGE_US)
        return last_us;
    return now_us > last_us ? now_us : last_us + 1;
}

bool rlk_view_move(const struct rlk_member *by, size_t i, struct rlk_move *out)
{
    const struct rlk_view *views = by->quorum->view;
    const struct rlk_view *own = &views[by->number], *its = &views[i];
    bool same = own->known && its->known && strcmp(own->mark[i], its->mark[i]) == 0;
    *out = (struct rlk_move){.member = i, .from = own->moved[i], .to = its->moved[i]};
    memcpy(out->mark, own->mark[i], sizeof out->mark);
    if (i == by->number)
        out->to = by->quorum->leaving ? out->from : next_move(by);
    return same && out->to > out->from;
}
