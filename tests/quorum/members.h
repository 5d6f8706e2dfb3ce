/* SPDX-License-Identifier: MIT
 *
 * Three members of a quorum in one database: three files of SQLite, or tables with three prefixes
 * in a server, each behind a proxy of its own. A failure ends the program. */
#pragma once

#include "contract.h"
#include "faultproxy.h"

enum { MEMBERS = 3 };

struct members {
    const struct raw *raw;
    /* Past the proxies. */
    char *straight[MEMBERS];
    const char *urls[MEMBERS];
    /* NULL: SQLite. */
    struct faultproxy *proxy[MEMBERS];
    char prefix[MEMBERS][40];
};

void members_make(struct members *m, const struct raw *raw, const char *url);
/* The tables stay. */
void members_drop(struct members *m);
/* Makes them a quorum at once. A join waits until a MySQL that was just started has run for
 * 10 s. */
void members_vote(const char *const *urls);
/* Statements, connecting and reconnecting may take so long. */
rowlock_db *members_open_within(const struct members *m, int64_t ms);
/* Much longer than a machine stands still. */
rowlock_db *members_open(const struct members *m);
rowlock_keeper *members_keeper(const struct members *m, int64_t ms);
/* A number that a member answers. The format has one %s, the prefix of its tables. */
long long members_ask(const struct members *m, int member, const char *format);
/* Changes a member by hand. The format may have a %lld after the %s. */
void members_change(const struct members *m, int member, const char *format, long long number);
/* How many rows for locks there are in a member, or in all. */
int rows_in(const struct members *m, int member);
int rows_in_all(const struct members *m);
/* Waits long until each member has so many. */
bool rows_become(const struct members *m, int a, int b, int c);
