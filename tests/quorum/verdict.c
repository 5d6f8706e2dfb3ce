/* SPDX-License-Identifier: MIT
 *
 * Reads and judges the history of a quorum's clients; see verdict.h. Nothing here speaks to a
 * database. */
#include "verdict.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rule_sentences[RULES] = {
    [RULE_ONCE] = "no token is granted twice",
    [RULE_ORDER] = "a grant asked for after another was returned has a higher token",
    [RULE_ALONE] = "no two holders while leases hold",
    [RULE_MAJORITY] = "nothing is granted while two members are gone",
    [RULE_IN_TIME] = "and holders know of it before their leases end",
    [RULE_KEPT] = "no grant is lost before its lease ends",
    [RULE_NEWEST] = "the fenced register never refuses the newest holder",
    [RULE_ANSWERS] = "no client gets an answer that it should not get",
};

enum { WORD = 40, NUMBERS = 4 };

struct line {
    char kind;
    char name[WORD], word[WORD];
    long long n[NUMBERS];
};

/* A holder believes, from answered to end, that it alone has the name. */
struct grant {
    char name[WORD];
    long long token, asked, answered, until, end;
};

struct reading {
    struct line *lines;
    struct grant *grants;
    int count, granted, room;
    struct verdict *out;
};

static void breaks(struct reading *r, enum rule rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void breaks(struct reading *r, enum rule rule, const char *format, ...)
{
    va_list arguments;
    if (r->out->broken[rule]++ > 0)
        return;
    va_start(arguments, format);
    vsnprintf(r->out->first[rule], sizeof r->out->first[rule], format, arguments);
    va_end(arguments);
}

/* ---- reading */

/* What follows the letter: n a number, s the name, w another word. */
static const char *shape_of(char kind)
{
    static const char *const shapes[128] = {
        ['P'] = "n",    ['G'] = "snnnn", ['H'] = "snnn", ['E'] = "snn",
        ['L'] = "snnn", ['W'] = "snw",   ['M'] = "nw",   ['O'] = "sw",
    };
    return kind > 0 ? shapes[(int)kind] : NULL;
}

/* false: the line is not whole. The process that wrote it was killed. */
static bool parse(char *text, struct line *out)
{
    const char *shape = shape_of(text[0]);
    char *rest = NULL, *from = text + 1, *word;
    int numbers = 0;
    memset(out, 0, sizeof *out);
    out->kind = text[0];
    for (; shape && *shape; shape++) {
        word = strtok_r(from, " \n", &rest);
        from = NULL;
        if (!word)
            return false;
        if (*shape == 'n')
            out->n[numbers++] = strtoll(word, NULL, 10);
        else
            snprintf(*shape == 's' ? out->name : out->word, WORD, "%s", word);
    }
    return shape != NULL;
}

static void *grown(void *array, int room, size_t size)
{
    void *bigger = realloc(array, (size_t)room * size);
    if (!bigger)
        abort();
    return bigger;
}

static void read_lines(struct reading *r, const char *path)
{
    char text[400];
    FILE *file = fopen(path, "r");
    while (file && fgets(text, sizeof text, file)) {
        if (r->count == r->room) {
            r->room = 2 * r->room + 1000;
            r->lines = grown(r->lines, r->room, sizeof *r->lines);
            r->grants = grown(r->grants, r->room, sizeof *r->grants);
        }
        r->count += parse(text, &r->lines[r->count]);
    }
    if (file)
        fclose(file);
}

/* The newest lines are about the newest grants. */
static struct grant *grant_of(struct reading *r, const struct line *l)
{
    for (int i = r->granted - 1; i >= 0; i--)
        if (r->grants[i].token == l->n[0] && strcmp(r->grants[i].name, l->name) == 0)
            return &r->grants[i];
    return NULL;
}

/* A holder that has let go after the end of its lease believed nothing since that end. */
static void read_grants(struct reading *r)
{
    for (int i = 0; i < r->count; i++) {
        const struct line *l = &r->lines[i];
        if (l->kind == 'G') {
            struct grant *new = &r->grants[r->granted++];
            memcpy(new->name, l->name, WORD);
            new->token = l->n[0];
            new->asked = l->n[1];
            new->answered = new->end = l->n[2];
            new->until = l->n[3];
        }
        struct grant *g = l->kind == 'H' || l->kind == 'E' ? grant_of(r, l) : NULL;
        if (g && l->kind == 'H')
            g->until = l->n[2];
        if (g)
            g->end = l->n[1] < g->until ? l->n[1] : g->until;
    }
    r->out->grants = r->granted;
}

/* ---- tokens and holders */

static int compare(const char *name, long long a, const char *other, long long b)
{
    int names = strcmp(name, other);
    return names ? names : a < b ? -1 : a > b;
}

static int by_token(const void *left, const void *right)
{
    const struct grant *a = left, *b = right;
    return compare(a->name, a->token, b->name, b->token);
}

static int by_answer(const void *left, const void *right)
{
    const struct grant *a = left, *b = right;
    return compare(a->name, a->answered, b->name, b->answered);
}

static int by_asking(const void *left, const void *right)
{
    const struct grant *const *a = left, *const *b = right;
    return compare((*a)->name, (*a)->asked, (*b)->name, (*b)->asked);
}

static bool same_name(const struct grant *a, const struct grant *b)
{
    return a && strcmp(a->name, b->name) == 0;
}

static void judge_tokens(struct reading *r)
{
    qsort(r->grants, (size_t)r->granted, sizeof *r->grants, by_token);
    for (int i = 1; i < r->granted; i++)
        if (same_name(&r->grants[i - 1], &r->grants[i]) &&
            r->grants[i - 1].token == r->grants[i].token)
            breaks(r, RULE_ONCE, "%s: token %lld", r->grants[i].name, r->grants[i].token);
}

/* The grants are in the order of their answers. */
static void judge_order(struct reading *r)
{
    struct grant **asked = malloc(((size_t)r->granted + 1) * sizeof *asked);
    const struct grant *highest = NULL;
    int answered = 0;
    if (!asked)
        abort();
    for (int i = 0; i < r->granted; i++)
        asked[i] = &r->grants[i];
    qsort(asked, (size_t)r->granted, sizeof *asked, by_asking);
    for (int i = 0; i < r->granted; i++) {
        const struct grant *g = asked[i];
        for (; answered < r->granted; answered++) {
            const struct grant *before = &r->grants[answered];
            if (compare(before->name, before->answered, g->name, g->asked) >= 0)
                break;
            if (!same_name(highest, before) || before->token > highest->token)
                highest = before;
        }
        if (same_name(highest, g) && highest->token >= g->token)
            breaks(r, RULE_ORDER, "%s: %lld was returned, and %lld ms later %lld was asked for",
                   g->name, highest->token, (g->asked - highest->answered) / 1000, g->token);
    }
    free(asked);
}

static void judge_holders(struct reading *r)
{
    const struct grant *last = NULL;
    for (int i = 0; i < r->granted; i++) {
        const struct grant *g = &r->grants[i];
        if (g->end <= g->answered)
            continue;
        if (same_name(last, g) && last->end > g->answered)
            breaks(r, RULE_ALONE, "%s: %lld until %lld, %lld from %lld", g->name, last->token,
                   last->end, g->token, g->answered);
        if (!same_name(last, g) || g->end > last->end)
            last = g;
    }
}

/* ---- outages and the register */

static void judge_outage(struct reading *r, long long gone, long long there, long long ttl_us)
{
    r->out->outages++;
    for (int i = 0; i < r->granted; i++)
        if (r->grants[i].asked >= gone && r->grants[i].answered <= there)
            breaks(r, RULE_MAJORITY, "%s: token %lld, %lld ms after they were gone",
                   r->grants[i].name, r->grants[i].token, (r->grants[i].answered - gone) / 1000);
    for (int i = 0; i < r->count; i++)
        if (r->lines[i].kind == 'H' && r->lines[i].n[1] > gone + ttl_us && r->lines[i].n[1] < there)
            breaks(r, RULE_IN_TIME, "%s: %lld works %lld ms after they were gone", r->lines[i].name,
                   r->lines[i].n[0], (r->lines[i].n[1] - gone) / 1000);
}

static void judge_outages(struct reading *r)
{
    long long gone = 0, ttl_us = 0;
    for (int i = 0; i < r->count; i++) {
        const struct line *l = &r->lines[i];
        if (l->kind == 'P')
            ttl_us = l->n[0] * 1000;
        if (l->kind != 'M')
            continue;
        if (strcmp(l->word, "there") == 0 && gone)
            judge_outage(r, gone, l->n[0], ttl_us);
        gone = strcmp(l->word, "gone") == 0 ? l->n[0] : 0;
    }
}

static bool is_newest(const struct reading *r, const struct line *l)
{
    for (int i = 0; i < r->granted; i++)
        if (r->grants[i].token > l->n[0] && strcmp(r->grants[i].name, l->name) == 0)
            return false;
    return true;
}

static void judge_answers(struct reading *r)
{
    for (int i = 0; i < r->count; i++) {
        const struct line *l = &r->lines[i];
        bool refused = l->kind == 'W' && strcmp(l->word, "ROWLOCK_STALE") == 0;
        r->out->writes += l->kind == 'W' && !refused;
        r->out->refusals += refused;
        r->out->lost += l->kind == 'L';
        if (refused && is_newest(r, l))
            breaks(r, RULE_NEWEST, "%s: %lld", l->name, l->n[0]);
        if (l->kind == 'L')
            breaks(r, RULE_KEPT, "%s: %lld was lost %lld ms early", l->name, l->n[0],
                   (l->n[2] - l->n[1]) / 1000);
        if (l->kind == 'O')
            breaks(r, RULE_ANSWERS, "%s: %s", l->name, l->word);
    }
}

void reach_verdict(const char *path, struct verdict *out)
{
    struct reading r = {.out = out};
    memset(out, 0, sizeof *out);
    read_lines(&r, path);
    read_grants(&r);
    judge_tokens(&r);
    qsort(r.grants, (size_t)r.granted, sizeof *r.grants, by_answer);
    judge_order(&r);
    judge_holders(&r);
    judge_outages(&r);
    judge_answers(&r);
    free(r.lines);
    free(r.grants);
}
