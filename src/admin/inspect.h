/* SPDX-License-Identifier: MIT
 * What a database has by our names, and what its server is like. For install.c, upgrade.c and
 * check.c. */
#ifndef RLK_INSPECT_H
#define RLK_INSPECT_H

#include "core/db.h"

/* The tables and routines that have our names and are not as rowlock makes them. */
struct rlk_inspection {
    /* The version of our tables. 0: not known yet. Then two kinds of problem are left out: what an
     * upgrade mends, and what tables of another version may have. */
    int64_t version;
    /* How many there are. */
    int found;
    /* How many more are only a risk. */
    int warned;
    /* How many were left out because the version is not known. */
    int undecided;
    /* An upgrade mends all of them. */
    bool mended;
    /* The first of the most serious ones. */
    char object[160];
    char problem[300];
};

/* Runs before anything of ours is read or called: another user may have put a trap there. */
int rlk_inspect(rowlock_db *db, struct rlk_inspection *i);
/* ESCHEMA if anything is found. */
int rlk_refuse_objects(rowlock_db *db, int64_t version);

/* Adds to EDENIED what a user without the privileges can do. Returns the result. */
int rlk_advise_denied(rowlock_db *db, int result);

/* Looks at the tables again, and returns whether they can be used. */
int rlk_look_anew(rowlock_db *db);

/* Asks for the facts about the server. */
int rlk_examine(rowlock_db *db, struct rlk_facts *facts);

#endif
