/* SPDX-License-Identifier: MIT
 *
 * The judge of loads finds each kind of fault in a history that was spoiled with it, and none in
 * one that was not. */
#include "judge.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLACK_MS = 1000 };

/* Two grants of a lock, a child, two transfers, a queue, an outage: nothing is wrong. */
static const char good[] =
    "P 4000\n"
    "b 1 1000\nb 2 1000\n"
    "G a 1 0 1000 4000000\nH a 1 2000 4001000\nE a 1 3000\n"
    "G a 2 2500 4000 4004000\nE a 2 9000000\n"
    "S job 1 5000\nt job 1 6000\n"
    "S job 2 7000\nt job 2 8000\n"
    "M 10000 cut\nt job 2 12000\nM 9000000 back\n"
    "T 71 1 2 30 1\nY 71\nT 72 2 1 5 2\nU 72\nT 73 1 2 9 2\nF 73\n"
    "G register 4 0 10 1000000\nG register 5 0 2000000 3000000\n"
    "W register 5 ROWLOCK_OK 4 2000001\nW register 4 ROWLOCK_STALE 0 2000002\n"
    "Q 1 1 3\nQ 1 2 2\nw 1 3 ROWLOCK_OK 8\nw 1 2 ROWLOCK_OK 9\n"
    "C acquire ROWLOCK_OK 20 5000\nC acquire ROWLOCK_ECONN 5900 5000\n"
    "B 1 970\nB 2 1030\nJ 71 1 2 30 1\nN a 2\nN job 2\nR register 5\n"
    "G a 3 12";

static const struct spoiled {
    enum charge charge;
    const char *how;
    /* Added at the end, or put in the place of this. */
    const char *instead_of, *lines;
} spoiled[] = {
    {TOKEN_TWICE, "a token again", NULL, "G a 2 9100000 9200000 9300000\n"},
    {TOKEN_TWICE, "a child's token again", NULL, "S job 2 9100000\n"},
    {TOKENS_OUT_OF_ORDER, "an older token later", NULL,
     "G b 2 0 10 900\nE b 2 100\nG b 1 0 200 900\nE b 1 300\n"},
    {TWO_HOLDERS, "a holder that goes on", "E a 1 3000", "H a 1 5000 4000000"},
    {TWO_HOLDERS, "a child that goes on", "t job 1 6000", "t job 1 7500"},
    {TWO_HOLDERS, "a grant within a long one", NULL,
     "G b 1 0 10 9000\nE b 1 8000\nG b 2 0 20 30\nE b 2 30\nG b 3 0 7000 9000\nE b 3 8000\n"},
    {LEASE_OVERRUN, "a child that cannot have been renewed", "t job 2 12000", "t job 2 4020000"},
    {LEASE_OVERRUN, "a holder that cannot have been renewed", "t job 2 12000",
     "H a 2 4020000 5000000"},
    {GRANT_LOST, "LOST in the middle of a lease", NULL, "L a 2 5000 2000000\n"},
    {GRANT_FORGOTTEN, "a newest token that is too old", "N a 2", "N a 1"},
    {MONEY, "a cent too many", "B 1 970", "B 1 971"},
    {MONEY, "an account that is gone", "B 1 970\n", ""},
    {COMMIT_MISSING, "no row of an answered commit", "J 71 1 2 30 1", "J 79 1 2 30 1"},
    {COMMIT_MISSING, "an older token in the register", "R register 5", "R register 4"},
    {COMMIT_UNASKED, "the row of a transfer that failed", "J 71 1 2 30 1",
     "J 71 1 2 30 1\nJ 73 1 2 0 2"},
    {NEWEST_REFUSED, "STALE for the newest", "W register 4 ROWLOCK_STALE",
     "W register 5 ROWLOCK_STALE"},
    {REGISTER_BACK, "a write over a newer one", "W register 5 ROWLOCK_OK 4",
     "W register 5 ROWLOCK_OK 6"},
    {WAITER_LOST, "a wait that timed out", "w 1 2 ROWLOCK_OK 9", "w 1 2 ROWLOCK_TIMEOUT 0"},
    {WAITER_LOST, "a waiter that was never answered", "w 1 2 ROWLOCK_OK 9\n", ""},
    {QUEUE_ORDER, "the second before the first", "w 1 2 ROWLOCK_OK 9", "w 1 2 ROWLOCK_OK 7"},
    {CALL_LATE, "a call beyond its deadline", "ROWLOCK_ECONN 5900", "ROWLOCK_ECONN 6100"},
    {ODD_ANSWER, "an answer that is a mistake", NULL, "O acquire ROWLOCK_EMISUSE\n"},
};

static char path[300];

/* The good history with the change. */
static void write_history(const struct spoiled *s)
{
    FILE *file = fopen(path, "w");
    const char *at = s && s->instead_of ? strstr(good, s->instead_of) : NULL;
    if (!file || (s && s->instead_of && !at))
        abort();
    if (at)
        fprintf(file, "%.*s%s%s", (int)(at - good), good, s->lines, at + strlen(s->instead_of));
    else
        fprintf(file, "%s%s\n", s ? s->lines : "", good);
    fclose(file);
}

static void count_mark(void *context, const char *what, long long next_grant_ms)
{
    if (strcmp(what, "cut") == 0)
        *(long long *)context = next_grant_ms;
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    struct judgement j;
    int faults = 0;
    long long next = 0;
    snprintf(path, sizeof path, "%s/spoiled-history", tmp ? tmp : "/tmp");
    write_history(NULL);
    judge(path, SLACK_MS, &j);
    for (int i = 0; i < CHARGES; i++) {
        faults += j.faults[i];
        if (j.faults[i])
            tap_note("%s: %s", charge_sentences[i], j.first[i]);
    }
    tap_is_int(faults, 0, "a good history has no fault");
    tap_is_int(j.grants, 4, "and each whole line counts");
    judge_marks(path, count_mark, &next);
    tap_is_int(next, 1990, "the time from a fault to the next grant is measured");
    for (size_t i = 0; i < sizeof spoiled / sizeof spoiled[0]; i++) {
        write_history(&spoiled[i]);
        judge(path, SLACK_MS, &j);
        tap_ok(j.faults[spoiled[i].charge] > 0, "%s: %s", charge_sentences[spoiled[i].charge],
               spoiled[i].how);
    }
    remove(path);
    return tap_done();
}
