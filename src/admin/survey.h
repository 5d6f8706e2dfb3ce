/* SPDX-License-Identifier: MIT
 * The databases of a quorum, each asked what it knows and judged whether it votes. */
#ifndef RLK_SURVEY_H
#define RLK_SURVEY_H

#include "quorum/quorum.h"
#include "core/core.h"

/* A member, or what may become one. */
struct rlk_candidate {
    rowlock_db *db;
    /* Why it cannot be reached or used. */
    rowlock_error away;
    struct rlk_view *view;
    /* The highest token, the longest lease, how long the server runs, and must run. */
    int64_t token, lease_us, runs_s, must_run_s;
    bool votes;
    /* Since when we know that it does not. */
    int64_t lost_us;
    /* Our ticket among the joins. */
    int64_t request;
    struct rlk_position place;
    /* Why it does not vote. */
    struct rlk_call why;
};

struct rlk_survey {
    struct rlk_candidate member[RLK_MEMBERS_MOST];
    /* What each of them knows. */
    struct rlk_view view[RLK_MEMBERS_MOST];
    /* majority, and members that vote, and that can be reached */
    size_t count, majority, voters, there;
    /* "": no member knows of one. */
    char quorum[RLK_MARK];
    bool is_new;
    /* The member whose place another database may take, from 1. 0: none. */
    size_t replaces;
    /* A member that cannot be used is as one that is away. */
    bool only_looks;
    /* When our tickets among the joins were last renewed. 0: we have none. */
    int64_t turn_us;
    const char *action;
    rowlock_error *err;
};

/* Connects to the members. One that is away stays NULL. */
int rlk_survey_open(struct rlk_survey *survey, const char *urls, const rowlock_db_options *options);
/* Judges which members vote, by what was read. A member whose mark moves is read again. */
int rlk_survey_look(struct rlk_survey *survey);
/* The newest mark of a member that the others know, if another database is in its place. NULL: it
 * is the same one, or of another place or quorum, or no other member knows. */
const char *rlk_survey_stranger(const struct rlk_survey *survey, size_t i);
/* Reads all members again first. */
int rlk_survey_anew(struct rlk_survey *survey);
void rlk_survey_close(struct rlk_survey *survey);

/* Fills survey->err, and returns code. */
int rlk_survey_fail(struct rlk_survey *survey, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* With the number and the error of this member. */
int rlk_survey_fail_of(struct rlk_survey *survey, const struct rlk_candidate *candidate, int code);

#endif
