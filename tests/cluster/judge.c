/* SPDX-License-Identifier: MIT
 *
 * Reads and judges the history of a load; see judge.h. Nothing here speaks to a database. */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const charge_sentences[CHARGES] = {
    [TOKEN_TWICE] = "no token is granted twice",
    [TOKENS_OUT_OF_ORDER] = "tokens increase in the order of grants",
    [TWO_HOLDERS] = "no two holders at once",
    [LEASE_OVERRUN] = "while no lease can be renewed, no holder and no child outlives its lease",
    [GRANT_LOST] = "no grant is lost before its lease ends",
    [GRANT_FORGOTTEN] = "the newest token of each name is still known",
    [MONEY] = "the money is exact to the cent",
    [COMMIT_MISSING] = "no answered commit is missing",
    [COMMIT_UNASKED] = "nothing is committed of what failed",
    [NEWEST_REFUSED] = "the register never refuses the newest holder",
    [REGISTER_BACK] = "the register never goes back to an older token",
    [WAITER_LOST] = "no waiter is lost: each gets its turn",
    [QUEUE_ORDER] = "waiters get their turns in the order of the queue",
    [CALL_LATE] = "no call goes on beyond its deadline",
    [ODD_ANSWER] = "no client gets an answer that it should not get",
};

const bool charge_of_loss[CHARGES] = {
    [GRANT_LOST] = true,
    [COMMIT_MISSING] = true,
    [QUEUE_ORDER] = true,
};

enum { WORD = 40, NUMBERS = 5 };

/* A line: its words, and its numbers in their order. */
struct line {
    char kind;
    char name[WORD], word[WORD];
    long long n[NUMBERS];
};

/* Someone believes, from start to end, that it alone has the name. */
struct holding {
    char name[WORD];
    long long token, start, end, until;
    bool child;
};

struct past {
    struct line *lines;
    struct holding *holdings;
    int count, held, room;
    long long ttl_us;
    struct judgement *out;
};

static void charge(struct past *p, enum charge kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void charge(struct past *p, enum charge kind, const char *format, ...)
{
    va_list arguments;
    if (p->out->faults[kind]++ > 0)
        return;
    va_start(arguments, format);
    vsnprintf(p->out->first[kind], sizeof p->out->first[kind], format, arguments);
    va_end(arguments);
}

/* ---- reading */

/* What follows the letter: n a number, s the name, w another word. */
static const char *shape_of(char kind)
{
    static const char *const shapes[128] = {
        ['P'] = "n",    ['G'] = "snnnn", ['H'] = "snnn", ['E'] = "snn",   ['L'] = "snnn",
        ['S'] = "snn",  ['t'] = "snn",   ['C'] = "swnn", ['O'] = "sw",    ['T'] = "nnnnn",
        ['Y'] = "n",    ['U'] = "n",     ['F'] = "n",    ['W'] = "snwnn", ['Q'] = "nnn",
        ['w'] = "nnwn", ['M'] = "ns",    ['b'] = "nn",   ['B'] = "nn",    ['J'] = "nnnnn",
        ['N'] = "sn",   ['R'] = "sn",
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

static void read_lines(struct past *p, const char *path)
{
    char text[400];
    FILE *file = fopen(path, "r");
    while (file && fgets(text, sizeof text, file)) {
        if (p->count == p->room) {
            p->room = 2 * p->room + 1000;
            p->lines = grown(p->lines, p->room, sizeof *p->lines);
            p->holdings = grown(p->holdings, p->room, sizeof *p->holdings);
        }
        p->count += parse(text, &p->lines[p->count]);
    }
    if (file)
        fclose(file);
}

static struct holding *holding_of(struct past *p, const struct line *l)
{
    for (int i = p->held - 1; i >= 0; i--)
        if (p->holdings[i].token == l->n[0] && strcmp(p->holdings[i].name, l->name) == 0)
            return &p->holdings[i];
    return NULL;
}

static void begin_holding(struct past *p, const struct line *l)
{
    struct holding *h = &p->holdings[p->held++];
    h->child = l->kind == 'S';
    memcpy(h->name, l->name, WORD);
    h->token = l->n[0];
    h->start = h->end = h->child ? l->n[1] : l->n[2];
    h->until = l->n[3];
    p->out->grants += !h->child;
    p->out->children += h->child;
}

/* A holder that has let go did so before its lease was over, or believed nothing since. */
static void build_holdings(struct past *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        struct holding *h =
            l->kind == 'H' || l->kind == 'E' || l->kind == 't' ? holding_of(p, l) : NULL;
        if (l->kind == 'G' || l->kind == 'S')
            begin_holding(p, l);
        if (h && l->kind == 'H')
            h->until = l->n[2];
        if (h)
            h->end = l->kind == 'E' && l->n[1] > h->until ? h->until : l->n[1];
    }
}

/* ---- tokens and holders */

static int by_token(const void *left, const void *right)
{
    const struct holding *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : a->token < b->token ? -1 : a->token > b->token;
}

static int by_start(const void *left, const void *right)
{
    const struct holding *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : a->start < b->start ? -1 : a->start > b->start;
}

/* A grant whose lease was over when its answer came was held by nobody. */
static bool was_held(const struct holding *h)
{
    return h->end > h->start || h->child;
}

static void judge_tokens(struct past *p)
{
    qsort(p->holdings, (size_t)p->held, sizeof *p->holdings, by_token);
    const struct holding *before = NULL;
    for (int i = 0; i < p->held; i++) {
        const struct holding *h = &p->holdings[i];
        if (i > 0 && strcmp(h[-1].name, h->name) == 0 && h[-1].token == h->token)
            charge(p, TOKEN_TWICE, "%s: token %lld", h->name, h->token);
        if (!was_held(h))
            continue;
        if (before && strcmp(before->name, h->name) == 0 && before->start > h->start)
            charge(p, TOKENS_OUT_OF_ORDER, "%s: %lld was held before %lld", h->name, h->token,
                   before->token);
        before = h;
    }
}

static void judge_holders(struct past *p)
{
    qsort(p->holdings, (size_t)p->held, sizeof *p->holdings, by_start);
    const struct holding *last = NULL;
    for (int i = 0; i < p->held; i++) {
        const struct holding *h = &p->holdings[i];
        if (!was_held(h))
            continue;
        bool same = last && strcmp(last->name, h->name) == 0;
        if (same && last->end > h->start)
            charge(p, TWO_HOLDERS, "%s: %lld until %lld, %lld from %lld", h->name, last->token,
                   last->end, h->token, h->start);
        if (!same || h->end > last->end)
            last = h;
    }
}

static long long newest_token(const struct past *p, const char *name)
{
    long long newest = 0;
    for (int i = 0; i < p->held; i++)
        if (strcmp(p->holdings[i].name, name) == 0 && p->holdings[i].token > newest)
            newest = p->holdings[i].token;
    return newest;
}

static void judge_names(struct past *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (l->kind == 'L')
            charge(p, GRANT_LOST, "%s: %lld was lost %lld ms early", l->name, l->n[0],
                   (l->n[2] - l->n[1]) / 1000);
        if (l->kind == 'N' && l->n[0] < newest_token(p, l->name))
            charge(p, GRANT_FORGOTTEN, "%s: the newest is %lld, not %lld", l->name, l->n[0],
                   newest_token(p, l->name));
    }
}

/* Between cut and back no renewal can reach the database. */
static void judge_outages(struct past *p)
{
    long long end = 0;
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (l->kind == 'P')
            p->ttl_us = l->n[0] * 1000;
        if (l->kind == 'M' && strcmp(l->name, "cut") == 0)
            end = l->n[0] + p->ttl_us;
        if (l->kind == 'M' && strcmp(l->name, "back") == 0)
            end = 0;
        if (end > 0 && (l->kind == 'H' || l->kind == 't') && l->n[1] > end)
            charge(p, LEASE_OVERRUN, "%s: %lld lives %lld ms after its lease", l->name, l->n[0],
                   (l->n[1] - end) / 1000);
    }
}

/* ---- money and the register */

static const struct line *find(const struct past *p, char kind, long long id)
{
    for (int i = 0; i < p->count; i++)
        if (p->lines[i].kind == kind && p->lines[i].n[0] == id)
            return &p->lines[i];
    return NULL;
}

static long long sum_of_journal(const struct past *p, long long account)
{
    long long sum = 0;
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (l->kind == 'J' && l->n[2] == account)
            sum += l->n[3];
        if (l->kind == 'J' && l->n[1] == account)
            sum -= l->n[3];
    }
    return sum;
}

static void judge_money(struct past *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i], *end;
        if (l->kind != 'b')
            continue;
        end = find(p, 'B', l->n[0]);
        long long want = l->n[1] + sum_of_journal(p, l->n[0]);
        if (!end)
            charge(p, MONEY, "account %lld is not there", l->n[0]);
        else if (end->n[1] != want)
            charge(p, MONEY, "account %lld has %lld cents, not %lld", l->n[0], end->n[1], want);
    }
}

static int by_id(const void *left, const void *right)
{
    const struct line *a = *(const struct line *const *)left,
                      *b = *(const struct line *const *)right;
    return a->n[0] < b->n[0] ? -1 : a->n[0] > b->n[0];
}

static void judge_transfers(struct past *p)
{
    const struct line **journal = grown(NULL, p->count + 1, sizeof *journal);
    size_t count = 0;
    for (int i = 0; i < p->count; i++)
        if (p->lines[i].kind == 'J')
            journal[count++] = &p->lines[i];
    qsort(journal, count, sizeof *journal, by_id);
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (l->kind != 'Y' && l->kind != 'F')
            continue;
        bool there = bsearch(&l, journal, count, sizeof *journal, by_id) != NULL;
        p->out->transfers += l->kind == 'Y';
        if (l->kind == 'Y' && !there)
            charge(p, COMMIT_MISSING, "transfer %lld", l->n[0]);
        if (l->kind == 'F' && there)
            charge(p, COMMIT_UNASKED, "transfer %lld", l->n[0]);
    }
    free(journal);
}

static void judge_register(struct past *p)
{
    long long newest = 0;
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        bool wrote = l->kind == 'W' && strcmp(l->word, "ROWLOCK_OK") == 0;
        p->out->writes += wrote;
        if (wrote && l->n[1] > l->n[0])
            charge(p, REGISTER_BACK, "from %lld to %lld", l->n[1], l->n[0]);
        if (wrote && l->n[0] > newest)
            newest = l->n[0];
        if (l->kind == 'W' && strcmp(l->word, "ROWLOCK_STALE") == 0 &&
            newest_token(p, l->name) <= l->n[0])
            charge(p, NEWEST_REFUSED, "%s: %lld", l->name, l->n[0]);
        if (l->kind == 'R' && l->n[0] < newest)
            charge(p, COMMIT_MISSING, "the register has %lld, not %lld", l->n[0], newest);
    }
}

/* ---- waiters and calls */

static const struct line *wait_of(const struct past *p, long long round, long long waiter)
{
    for (int i = 0; i < p->count; i++)
        if (p->lines[i].kind == 'w' && p->lines[i].n[0] == round && p->lines[i].n[1] == waiter)
            return &p->lines[i];
    return NULL;
}

/* Lines of a round's queue come one after the other, in the order of places. */
static void judge_queue(struct past *p)
{
    long long round = -1, token = 0;
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i], *wait;
        p->out->waits += l->kind == 'w';
        if (l->kind == 'w' && strcmp(l->word, "ROWLOCK_OK") != 0)
            charge(p, WAITER_LOST, "round %lld: waiter %lld: %s", l->n[0], l->n[1], l->word);
        if (l->kind != 'Q')
            continue;
        if (l->n[0] != round)
            token = 0;
        p->out->rounds += l->n[0] != round;
        round = l->n[0];
        wait = wait_of(p, round, l->n[2]);
        if (!wait)
            charge(p, WAITER_LOST, "round %lld: waiter %lld was not answered", round, l->n[2]);
        else if (strcmp(wait->word, "ROWLOCK_OK") == 0 && wait->n[2] < token)
            charge(p, QUEUE_ORDER, "round %lld: waiter %lld came with %lld, after %lld", round,
                   l->n[2], wait->n[2], token);
        if (wait && wait->n[2] > token)
            token = wait->n[2];
    }
}

static void judge_calls(struct past *p, int slack_ms)
{
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (l->kind == 'O')
            charge(p, ODD_ANSWER, "%s: %s", l->name, l->word);
        if (l->kind != 'C')
            continue;
        p->out->calls++;
        p->out->errors += strncmp(l->word, "ROWLOCK_E", 9) == 0;
        if (l->n[0] > p->out->longest_call_ms)
            p->out->longest_call_ms = l->n[0];
        if (l->n[0] > l->n[1] + slack_ms)
            charge(p, CALL_LATE, "%s: %s after %lld ms of %lld", l->name, l->word, l->n[0],
                   l->n[1]);
    }
}

/* ---- the whole */

void judge(const char *path, int slack_ms, struct judgement *out)
{
    struct past p = {.out = out};
    memset(out, 0, sizeof *out);
    read_lines(&p, path);
    build_holdings(&p);
    judge_tokens(&p);
    judge_holders(&p);
    judge_names(&p);
    judge_outages(&p);
    judge_money(&p);
    judge_transfers(&p);
    judge_register(&p);
    judge_queue(&p);
    judge_calls(&p, slack_ms);
    free(p.lines);
    free(p.holdings);
}

void judge_marks(const char *path,
                 void (*each)(void *context, const char *what, long long next_grant_ms),
                 void *context)
{
    struct judgement ignored;
    struct past p = {.out = &ignored};
    memset(&ignored, 0, sizeof ignored);
    read_lines(&p, path);
    build_holdings(&p);
    for (int i = 0; i < p.count; i++) {
        const struct line *mark = &p.lines[i];
        long long next = -1;
        for (int k = 0; k < p.held && mark->kind == 'M'; k++)
            if (p.holdings[k].start >= mark->n[0] && (next < 0 || p.holdings[k].start < next))
                next = p.holdings[k].start;
        if (mark->kind == 'M')
            each(context, mark->name, next < 0 ? -1 : (next - mark->n[0]) / 1000);
    }
    free(p.lines);
    free(p.holdings);
}
