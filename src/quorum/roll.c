/* SPDX-License-Identifier: MIT
 * Which members may vote. Each has the marks of all members written down. A member that was
 * restored, or has failed over, has lost its own mark, or has an older one than the others know. A
 * restart of the server loses it too, since nobody can tell what was lost with it. `rowlock
 * quorum-join` makes a new mark. */
#include "quorum/quorum.h"

#include <string.h>

/* By how much the start of a server may seem to move: MySQL counts whole seconds. */
enum { START_MOVES = 3 };

const char rlk_roll_too_few[] = "too few members can be reached to tell whether it may vote";

enum { MEMBER, MEMBERS, QUORUM, SELF, MARK, STARTED, RUNNING };

int rlk_roll_take(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_roll *roll = out;
    int64_t member = cells[MEMBER].number;
    (void)count;
    if (member < 1 || member > RLK_MEMBERS_MOST)
        return -1;
    rlk_copy_text(roll->mark[member - 1], sizeof roll->mark[0], cells[MARK].text,
                  cells[MARK].length);
    rlk_copy_text(roll->quorum, sizeof roll->quorum, cells[QUORUM].text, cells[QUORUM].length);
    roll->members = (size_t)cells[MEMBERS].number;
    if (!cells[SELF].number)
        return 0;
    int64_t moved = cells[RUNNING].number - cells[STARTED].number;
    roll->self = (size_t)member;
    roll->restarted = moved > START_MOVES || moved < -START_MOVES;
    return 0;
}

/* How many members have written down the mark that this one has. */
static size_t witnesses(const struct rlk_quorum *quorum, size_t i)
{
    const struct rlk_roll *own = &quorum->member[i].roll;
    size_t count = 0;
    for (size_t j = 0; j < quorum->count; j++) {
        const struct rlk_roll *other = &quorum->member[j].roll;
        count += other->known && strcmp(other->quorum, own->quorum) == 0 &&
                 strcmp(other->mark[i], own->mark[i]) == 0;
    }
    return count;
}

static bool is_other_quorum(const struct rlk_quorum *quorum, const struct rlk_roll *own)
{
    size_t same = 0;
    for (size_t j = 0; j < quorum->count; j++)
        same +=
            quorum->member[j].roll.known && strcmp(quorum->member[j].roll.quorum, own->quorum) == 0;
    return same < quorum->majority;
}

enum rlk_class rlk_roll_judge(struct rlk_quorum *quorum, size_t i, struct rlk_call *call)
{
    const struct rlk_roll *own = &quorum->member[i].roll;
    size_t known = 0;
    for (size_t j = 0; j < quorum->count; j++)
        known += quorum->member[j].roll.known;
    if (!own->self)
        return rlk_refuse(call, RLK_SCHEMA, "it is of no quorum yet: run `rowlock quorum-join`");
    if (own->members != quorum->count || own->self != i + 1)
        return rlk_refuse(
            call, RLK_SCHEMA,
            "it is member %zu of a quorum of %zu: give the same URLs in the same order "
            "everywhere",
            own->self, own->members);
    if (own->restarted)
        return rlk_refuse(call, RLK_SCHEMA,
                          "it was restarted or restored, and may have lost grants: run `rowlock "
                          "quorum-join`");
    if (witnesses(quorum, i) >= quorum->majority)
        return RLK_DONE;
    if (known < quorum->majority)
        return rlk_refuse(call, RLK_UNSENT, "%s", rlk_roll_too_few);
    return rlk_refuse(call, RLK_SCHEMA,
                      is_other_quorum(quorum, own)
                          ? "it is of another quorum: give the same URLs everywhere"
                          : "it was restored, and may have lost grants: run `rowlock quorum-join`");
}
