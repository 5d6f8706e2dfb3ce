/* SPDX-License-Identifier: MIT
 *
 * The judge finds each kind of fault in a history that was spoiled with it, and none in one that was
 * not: in the history of a cluster's load, of a quorum's, and of a load of locks. */
#include "judge.h"

enum { SLACK_MS = 1000 };

/* Two grants of a lock, a child, two transfers, a queue, an outage: nothing is wrong. */
static const char cluster_good[] =
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
    "G queue 7 0 10 20\nQ 1 1 3\nQ 1 2 2\nw 1 3 ROWLOCK_OK 8\nw 1 2 ROWLOCK_OK 9\n"
    /* The first waiter's first grant was 11, and no answer came. */
    "G queue 10 0 30 40\nQ 2 1 3\nQ 2 2 2\nG queue 12 0 50 60\nw 2 2 ROWLOCK_OK 12\n"
    "w 2 3 ROWLOCK_OK 13\n"
    "C acquire ROWLOCK_OK 20 5000\nC acquire ROWLOCK_ECONN 5900 5000\n"
    "B 1 970\nB 2 1030\nJ 71 1 2 30 1\nN a 2\nN job 2\nR register 5\n"
    "G a 3 12";

struct spoiled {
    enum charge charge;
    const char *how;
    /* Put in the place of this. NULL: before the first line. */
    const char *instead_of, *lines;
};

static const struct spoiled cluster_spoiled[] = {
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
    {QUEUE_ORDER, "a late one that lost no grant", "G queue 12 0 50 60",
     "G queue 11 0 45 46\nG queue 12 0 50 60"},
    {QUEUE_ORDER, "the second before the first", "w 1 2 ROWLOCK_OK 9", "w 1 2 ROWLOCK_OK 7"},
    {CALL_LATE, "a call beyond its deadline", "ROWLOCK_ECONN 5900", "ROWLOCK_ECONN 6100"},
    {ODD_ANSWER, "an answer that is a mistake", NULL, "O acquire ROWLOCK_EMISUSE\n"},
};

/* Two names; an outage; a holder that wrote late; the last line was not finished. */
static const char quorum_good[] =
    "P 1000\n"
    "G a 5 0 1000 600000\nH a 5 2000 601000\nE a 5 3000\n"
    "G b 1 0 1000 600000\nE b 1 500000\n"
    "G a 7 2500 4000 604000\nE a 7 9000000\n"
    "W a 7 ROWLOCK_OK 0 5000\nW a 5 ROWLOCK_STALE 0 6000\n"
    "M 1000000 cut\nH c 9 1500000 2000000\nM 3000000 back\n"
    "G a 8 1500000 3100000 3500000\nE a 8 3200000\n"
    "X d 1\n"
    "G d 1 5800000 5900000 6500000\nE d 1 6020000\nL d 1 6020000 6500000\n"
    "G d 2 5990000 6010000 6600000\nE d 2 6030000\n"
    "G a 9 12";

static const struct spoiled quorum_spoiled[] = {
    {TOKEN_TWICE, "a token again", NULL, "G a 7 9100000 9200000 9300000\n"},
    {TOKEN_NOT_HIGHER, "9, then 7", "G a 8", "G a 6"},
    {TOKEN_NOT_HIGHER, "the same again", "G a 8", "G a 7"},
    {TOKEN_NOT_HIGHER, "a lower one, of another request", NULL, "G a 4 3200000 3300000 3300000\n"},
    {TWO_HOLDERS, "a holder that goes on", "E a 5 3000", "E a 5 5000"},
    {TWO_HOLDERS, "a grant within a long one", NULL,
     "G b 2 200000 200500 900000\nE b 2 300000\nG b 3 400000 400500 900000\nE b 3 450000\n"},
    {TWO_HOLDERS, "a clock that jumps when all have the row", "X d 1", "X d 2"},
    {OUTAGE_GRANT, "a grant in an outage", NULL, "G b 9 1100000 1200000 1300000\n"},
    {LEASE_OVERRUN, "a holder in an outage", "H c 9 1500000", "H c 9 2100000"},
    {GRANT_LOST, "LOST in the middle of a lease", NULL, "L a 7 5000 200000\n"},
    {NEWEST_REFUSED, "STALE for the newest", NULL, "W a 8 ROWLOCK_STALE 0 7000\n"},
    {ODD_ANSWER, "an answer that is a mistake", NULL, "O acquire ROWLOCK_EMISUSE\n"},
};

/* Readers, then a writer whose server stood still; it stays beyond its lease. Two of two permits. */
static const char lock_good[] = "g a 1 100 1000 110 -1\ng a 2 105 1000 120 -1\n"
                                "e a 1 500\nk a 1 500\ne a 2 600\n"
                                "g a 3 590 2000 700 0\nr a 3 3000\nk a 3 3500\n"
                                "g a 4 3400 5000 3600 -1\nl a 4\n"
                                "g b 1 100 900 110 2\ng b 2 110 900 130 2\ng b 3 900 1500 910 2\n"
                                /* A writer lets go late, and the next one's server stands still. */
                                "g c 1 100 500 110 0\ne c 1 510\ng c 2 400 900 520 0\n"
                                "g a 5 12";

static const struct spoiled lock_spoiled[] = {
    {TOKEN_TWICE, "a token again", NULL, "g a 3 9000 9500 9100 0\n"},
    {TOKEN_NOT_HIGHER, "an older token for a writer", NULL, "g a 0 9000 9500 9100 0\n"},
    {TOKEN_NOT_HIGHER, "an older token for a reader", NULL, "g a 0 9000 9500 9100 -1\n"},
    {TWO_HOLDERS, "a reader that has not let go", "e a 2 600\n", ""},
    {TWO_HOLDERS, "a reader within a renewed lease", "r a 3 3000\nk a 3 3500\n", "r a 3 3650\n"},
    {TWO_HOLDERS, "a writer that is still there", "k a 3 3500", "k a 3 3700"},
    {TWO_HOLDERS, "another number of permits", "g b 2 110 900 130 2", "g b 2 110 900 130 3"},
    {TOO_MANY_HOLDERS, "one more than the permits", "g b 3 900 1500 910", "g b 3 880 1500 899"},
    {TWO_HOLDERS, "a writer within the lease of another", "g c 2 400 900 520", "g c 2 400 900 490"},
    {ODD_ANSWER, "an answer that is a mistake", NULL, "O acquire ROWLOCK_EMISUSE\n"},
};

static char path[300];

/* The good history with the change. */
static void write_history(const char *good, const struct spoiled *s)
{
    FILE *file = fopen(path, "w");
    const char *at = s && s->instead_of ? strstr(good, s->instead_of) : NULL;
    if (!file || (s && s->instead_of && !at))
        abort();
    if (at)
        fprintf(file, "%.*s%s%s", (int)(at - good), good, s->lines, at + strlen(s->instead_of));
    else
        fprintf(file, "%s%s", s ? s->lines : "", good);
    fclose(file);
}

static void count_mark(void *context, const char *what, long long next_grant_ms)
{
    if (strcmp(what, "cut") == 0)
        *(long long *)context = next_grant_ms;
}

static void test_good(const char *good, const struct sentence *sentences, const char *whose,
                      int grants, int outages)
{
    struct judgement j;
    write_history(good, NULL);
    judge(path, SLACK_MS, &j);
    tap_sentences(&j, sentences, whose);
    tap_is_int(j.grants, grants, "%s: each whole grant counts", whose);
    tap_is_int(j.outages, outages, "and the outage");
}

static void test_spoiled(const char *good, const struct sentence *sentences,
                         const struct spoiled *spoiled, size_t count)
{
    struct judgement j;
    for (size_t i = 0; i < count; i++) {
        const struct sentence *s = sentences;
        while (s->text && s->charge != spoiled[i].charge)
            s++;
        write_history(good, &spoiled[i]);
        judge(path, SLACK_MS, &j);
        tap_ok(s->text && j.faults[s->charge] > 0, "%s: %s", s->text, spoiled[i].how);
    }
}

int main(void)
{
    long long next = 0;
    snprintf(path, sizeof path, "%s/spoiled-history", test_folder());
    test_good(cluster_good, cluster_sentences, "a good history of a cluster", 7, 1);
    judge_marks(path, count_mark, &next);
    tap_is_int(next, 1990, "the time from a fault to the next grant is measured");
    test_good(quorum_good, quorum_sentences, "a good history of a quorum", 6, 1);
    test_good(lock_good, lock_sentences, "a good history of locks", 9, 0);
    test_spoiled(cluster_good, cluster_sentences, cluster_spoiled,
                 sizeof cluster_spoiled / sizeof cluster_spoiled[0]);
    test_spoiled(quorum_good, quorum_sentences, quorum_spoiled,
                 sizeof quorum_spoiled / sizeof quorum_spoiled[0]);
    test_spoiled(lock_good, lock_sentences, lock_spoiled,
                 sizeof lock_spoiled / sizeof lock_spoiled[0]);
    remove(path);
    return tap_done();
}
