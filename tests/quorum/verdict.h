/* SPDX-License-Identifier: MIT
 *
 * The history of clients of a quorum (crew.c), and what it proves. Times are microseconds of
 * CLOCK_MONOTONIC, the same clock for all processes of one machine. Names have no blanks. A line of
 * the file is one of
 *
 *   P ttl_ms                            the longest lease
 *   G name token asked answered until   a grant: its lease lasts until then, as its holder knows it
 *   H name token at until               the holder works on, and knows of this end of its lease
 *   E name token at                     the holder has stopped, and lets the lock go
 *   L name token at until               it was told LOST, although its lease ran on
 *   W name token result                 the fenced register's answer
 *   M at what                           a mark: `gone`, two of three members are gone; `there`, one
 *                                       of them may answer from now on
 *   O call result                       an answer that no client should get
 *
 * Lines that begin with # are for people. */
#ifndef QUORUM_VERDICT_H
#define QUORUM_VERDICT_H

enum rule {
    RULE_ONCE,
    RULE_ORDER,
    RULE_ALONE,
    RULE_MAJORITY,
    RULE_IN_TIME,
    RULE_KEPT,
    RULE_NEWEST,
    RULE_ANSWERS,
    RULES
};

/* The sentence that is true if nothing breaks the rule. */
extern const char *const rule_sentences[RULES];

struct verdict {
    /* How many times each rule was broken, and the first time in words. */
    int broken[RULES];
    char first[RULES][200];
    /* What was judged. */
    int grants, writes, refusals, lost, outages;
};

void reach_verdict(const char *path, struct verdict *out);

#endif
