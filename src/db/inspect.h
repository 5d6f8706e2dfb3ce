/* SPDX-License-Identifier: MIT
 * What stands in a database by our names, and what is around it, for install.c and check.c. */
#ifndef RLK_INSPECT_H
#define RLK_INSPECT_H

#include "seam/db.h"

/* What is there by the name of one of our tables or routines, and is not as we made it. */
struct rlk_inspection {
    bool before_install; /* what install mends by itself is no obstacle */
    int found; /* how many */
    int warned; /* and how many that are no more than a risk */
    bool mended; /* install mends all of them */
    char object[160]; /* the first that matters most */
    char problem[300];
};

/* Asked before anything of ours is read or called there: it could be somebody's trap. */
int rlk_inspect(rowlock_db *db, struct rlk_inspection *i);

/* Whether the tables are as they should be, now. */
int rlk_look_anew(rowlock_db *db);

/* The server. */
int rlk_examine(rowlock_db *db, struct rlk_facts *facts);

#endif
