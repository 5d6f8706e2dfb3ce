/* SPDX-License-Identifier: MIT
 * Which members may vote. Each has the marks of all members written down. A member that was
 * restored, or has failed over, has lost its own mark, or has an older one than the others know.
 * After a restart of its server the mark does not count: grants may have been lost with that.
 * `rowlock quorum-join` makes a new mark. */
#include "quorum/ballot.h"

#include <string.h>

enum {
    /* A mark that is older moves on. */
    MARK_AGE_US = 30000000,
    /* A member that votes may be restored meanwhile. */
    LOOK_AGAIN_US = 30000000,
    /* One that may not vote is asked again. */
    ASK_AGAIN_US = 250000,
    /* Its mark may move while the members are read, so it is read again then. */
    READINGS = 4
};

uint32_t rlk_mark_generation(const char *mark)
{
    static const char digits[] = "0123456789abcdef";
    const char *end = mark + RLK_MARK_IDENTITY + RLK_MARK_GENERATION, *digit;
    uint32_t generation = 0;
    if (strlen(mark) != RLK_MARK - 1)
        return 0;
    for (const char *at = mark + RLK_MARK_IDENTITY; at < end && (digit = strchr(digits, *at)); at++)
        generation = generation * 16 + (uint32_t)(digit - digits);
    return generation;
}

/* ---- what the others know of a member */

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

/* ---- may it vote? */

enum rlk_vote rlk_view_vote(const struct rlk_view *views, size_t count, size_t i)
{
    const struct rlk_view *own = &views[i];
    size_t known = 0, found = 0, same = 0, others = 0;
    bool forgot = false;
    if (!own->self)
        return RLK_VOTE_NO_MEMBER;
    if (own->members != count || own->self != i + 1)
        return RLK_VOTE_MISPLACED;
    if (own->restarted)
        return RLK_VOTE_RESTARTED;
    for (size_t j = 0; j < count; j++) {
        bool of_quorum = strcmp(views[j].quorum, own->quorum) == 0;
        same += of_quorum;
        others += !of_quorum && views[j].quorum[0];
        known += views[j].known;
        found += rlk_view_is_witness(views, i, j);
        /* A move that we read before our reading of the member began was known to it then. */
        forgot = forgot || (is_older(own, &views[j]) && own->begun_us > views[j].read_us);
    }
    if (!forgot && found >= rlk_majority(count))
        return RLK_VOTE_YES;
    /* A member that could be read has other marks. It may be the old one. */
    if (!forgot && found + count - known >= rlk_majority(count))
        return RLK_VOTE_OPEN;
    return others > 0 && same < rlk_majority(count) ? RLK_VOTE_STRANGER : RLK_VOTE_RESTORED;
}

static enum rlk_vote read_again(struct rlk_looking *l, enum rlk_vote next)
{
    l->readings++;
    l->has_read = true;
    return next;
}

enum rlk_vote rlk_vote_next(struct rlk_looking *l, const struct rlk_view *views, size_t count,
                            size_t i, bool current, int64_t now_us)
{
    const struct rlk_view *own = &views[i];
    int64_t age_us = now_us - own->read_us;
    bool behind = rlk_view_is_behind(views, count, i);
    bool serves = current && own->known && !behind && age_us < LOOK_AGAIN_US;
    if (!serves && !l->has_read)
        return read_again(l, RLK_VOTE_READ);
    enum rlk_vote vote = rlk_view_vote(views, count, i);
    if (vote == RLK_VOTE_YES && !behind)
        return vote;
    if (vote == RLK_VOTE_YES)
        return l->readings < READINGS ? read_again(l, RLK_VOTE_READ) : RLK_VOTE_OPEN;
    if (l->doubted || !own->known || age_us < ASK_AGAIN_US)
        return vote;
    *l = (struct rlk_looking){.doubted = true};
    return read_again(l, RLK_VOTE_READ_ALL);
}

/* ---- marks move on */

/* Its clock may have jumped back. */
static int64_t next_move(const struct rlk_view *view, size_t i, int64_t moved_us, int64_t now_us)
{
    int64_t last_us = view->moved[i], there_us = view->now_us + now_us - view->read_us;
    bool young = there_us >= last_us && there_us - last_us < MARK_AGE_US;
    if (young || moved_us > now_us - MARK_AGE_US)
        return last_us;
    return there_us > last_us ? there_us : last_us + 1;
}

bool rlk_view_move(const struct rlk_view *views, size_t by, size_t i, int64_t moved_us,
                   int64_t now_us, struct rlk_move *out)
{
    const struct rlk_view *own = &views[by], *its = &views[i];
    bool same = own->known && its->known && strcmp(own->mark[i], its->mark[i]) == 0;
    *out = (struct rlk_move){.member = i, .from = own->moved[i], .to = its->moved[i]};
    memcpy(out->mark, own->mark[i], sizeof out->mark);
    if (i == by)
        out->to = next_move(own, i, moved_us, now_us);
    return same && out->to > out->from;
}
