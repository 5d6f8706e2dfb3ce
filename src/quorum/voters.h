/* SPDX-License-Identifier: MIT
 * Which members of a quorum may vote. A machine: it waits for nothing, reads no clock, locks
 * nothing, and sends nothing. marks.c does what it says. */
#ifndef RLK_VOTERS_H
#define RLK_VOTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RLK_MEMBERS_MOST = 5 };

static inline size_t rlk_majority(size_t members)
{
    return members / 2 + 1;
}

/* What a member knows about the quorum. */
struct rlk_view {
    bool known;
    char quorum[64];
    char mark[RLK_MEMBERS_MOST][64];
    /* When each mark last moved on, by the clock of its member. */
    int64_t moved[RLK_MEMBERS_MOST];
    /* This member's clock when it was read. */
    int64_t now_us;
    /* When the reading began and ended, by our clock. */
    int64_t begun_us, read_us;
    size_t members;
    /* Which member it is itself, from 1. 0: none. */
    size_t self;
    /* Its server was started after it got its mark. */
    bool restarted;
};

/* A mark is the beginning of its database's identity, how many marks the member had before, and
 * random digits. */
enum { RLK_MARK = 33, RLK_MARK_IDENTITY = 16, RLK_MARK_GENERATION = 8 };
/* 0: it is no such mark. */
uint32_t rlk_mark_generation(const char *mark);

enum rlk_vote {
    RLK_VOTE_YES,
    /* It may vote for all we know, but too few are reached to tell. */
    RLK_VOTE_OPEN,
    /* The others say why it may not. */
    RLK_VOTE_NO_MEMBER,
    RLK_VOTE_MISPLACED,
    RLK_VOTE_RESTARTED,
    RLK_VOTE_STRANGER,
    RLK_VOTE_RESTORED,
    /* Not yet: read what it knows, and look again. */
    RLK_VOTE_READ,
    /* The same, and no view of any member counts any more: it may have joined. */
    RLK_VOTE_READ_ALL
};
/* views: of all members. May member i vote? */
enum rlk_vote rlk_view_vote(const struct rlk_view *views, size_t count, size_t i);
/* What is remembered while a member's thread finds out whether it may vote. Zeros begin. */
struct rlk_looking {
    int readings;
    bool has_read, doubted;
};
/* What comes next. current: its view was read on the connection that it has, and is not doubted. */
enum rlk_vote rlk_vote_next(struct rlk_looking *l, const struct rlk_view *views, size_t count,
                            size_t i, bool current, int64_t now_us);
/* `by` has written down the mark that member i has. */
bool rlk_view_is_witness(const struct rlk_view *views, size_t i, size_t by);
/* One of the others knows a newer move of its mark than the member itself does: it has lost
 * commits, or its mark moved after it was read. */
bool rlk_view_is_behind(const struct rlk_view *views, size_t count, size_t i);

/* A mark that is to move on. */
struct rlk_move {
    size_t member;
    char mark[64];
    int64_t from, to;
};
/* Whether member `by` should write down a move of the mark of member i: of its own, if the last one
 * is old, or of another's that has moved. moved_us: when we last moved its own, INT64_MAX: it does
 * not move any more. */
bool rlk_view_move(const struct rlk_view *views, size_t by, size_t i, int64_t moved_us,
                   int64_t now_us, struct rlk_move *out);

#endif
