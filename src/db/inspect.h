/* SPDX-License-Identifier: MIT
 * What stands in a database by our names, and what is around it, for install.c, upgrade.c and
 * check.c. */
#ifndef RLK_INSPECT_H
#define RLK_INSPECT_H

#include "seam/db.h"

/* What is there by the name of one of our tables or routines, and is not as we made it. */
struct rlk_inspection {
    /* Of our tables. 0: not known yet. What an upgrade mends is then no obstacle, nor is what
     * tables of another version may have. */
    int64_t version;
    int found; /* how many */
    int warned; /* and how many that are no more than a risk */
    int undecided; /* left out because the version is not known */
    bool mended; /* an upgrade mends all of them */
    char object[160]; /* the first that matters most */
    char problem[300];
};

/* Asked before anything of ours is read or called there: it could be somebody's trap. */
int rlk_inspect(rowlock_db *db, struct rlk_inspection *i);
/* ESCHEMA if anything is found. */
int rlk_refuse_objects(rowlock_db *db, int64_t version);

/* Whether the tables are as they should be, now. */
int rlk_look_anew(rowlock_db *db);

/* The server. */
int rlk_examine(rowlock_db *db, struct rlk_facts *facts);

#endif
