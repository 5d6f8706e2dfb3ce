/* SPDX-License-Identifier: MIT
 *
 * The judge of a quorum's history finds each kind of fault in a history that was spoiled with it,
 * and none in one that was not. */
#include "verdict.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two names; an outage; a holder that wrote late; the last line was not finished. */
static const char good[] = "P 1000\n"
                           "G a 5 0 1000 600000\nH a 5 2000 601000\nE a 5 3000\n"
                           "G b 1 0 1000 600000\nE b 1 500000\n"
                           "G a 7 2500 4000 604000\nE a 7 9000000\n"
                           "W a 7 ROWLOCK_OK\nW a 5 ROWLOCK_STALE\n"
                           "M 1000000 gone\nH c 9 1500000 2000000\nM 3000000 there\n"
                           "G a 8 1500000 3100000 3500000\nE a 8 3200000\n"
                           "G a 9 12";

static const struct spoiled {
    enum rule rule;
    const char *how;
    /* Put in the place of this. NULL: before the first line. */
    const char *instead_of, *lines;
} spoiled[] = {
    {RULE_ONCE, "a token again", NULL, "G a 7 9100000 9200000 9300000\n"},
    {RULE_ORDER, "9, then 7", "G a 8", "G a 6"},
    {RULE_ORDER, "the same again", "G a 8", "G a 7"},
    {RULE_ORDER, "a lower one, of a request that nobody held", NULL,
     "G a 4 3200000 3300000 3300000\n"},
    {RULE_ALONE, "a holder that goes on", "E a 5 3000", "E a 5 5000"},
    {RULE_ALONE, "a grant within a long one", NULL,
     "G b 2 200000 200500 900000\nE b 2 300000\nG b 3 400000 400500 900000\nE b 3 450000\n"},
    {RULE_MAJORITY, "a grant in an outage", NULL, "G b 9 1100000 1200000 1300000\n"},
    {RULE_IN_TIME, "a holder in an outage", "H c 9 1500000", "H c 9 2100000"},
    {RULE_KEPT, "LOST in the middle of a lease", NULL, "L a 7 5000 200000\n"},
    {RULE_NEWEST, "STALE for the newest", NULL, "W a 8 ROWLOCK_STALE\n"},
    {RULE_ANSWERS, "an answer that is a mistake", NULL, "O acquire ROWLOCK_EMISUSE\n"},
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
        fprintf(file, "%s%s", s ? s->lines : "", good);
    fclose(file);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    struct verdict v;
    int faults = 0;
    snprintf(path, sizeof path, "%s/spoiled-quorum", tmp ? tmp : "/tmp");
    write_history(NULL);
    reach_verdict(path, &v);
    for (int i = 0; i < RULES; i++) {
        faults += v.broken[i];
        if (v.broken[i])
            tap_note("%s: %s", rule_sentences[i], v.first[i]);
    }
    tap_is_int(faults, 0, "a good history breaks no rule");
    tap_is_int(v.grants, 4, "and each whole grant counts");
    tap_is_int(v.outages, 1, "and the outage");
    for (size_t i = 0; i < sizeof spoiled / sizeof spoiled[0]; i++) {
        write_history(&spoiled[i]);
        reach_verdict(path, &v);
        tap_ok(v.broken[spoiled[i].rule] > 0, "%s: %s", rule_sentences[spoiled[i].rule],
               spoiled[i].how);
    }
    remove(path);
    return tap_done();
}
