/* SPDX-License-Identifier: MIT
 *
 * Judges the history of a load; see judge.h. Nothing here speaks to a database. */
#include "judge.h"

#include "history.h"

#include <limits.h>

const struct sentence cluster_sentences[] = {
    {"no token is granted twice", TOKEN_TWICE, false},
    {"tokens increase in the order of grants", TOKENS_OUT_OF_ORDER, false},
    {"no two holders at once", TWO_HOLDERS, false},
    {"while no lease can be renewed, no holder and no child outlives its lease", LEASE_OVERRUN,
     false},
    {"no grant is lost before its lease ends", GRANT_LOST, true},
    {"the newest token of each name is still known", GRANT_FORGOTTEN, false},
    {"the money is exact to the cent", MONEY, false},
    {"no answered commit is missing", COMMIT_MISSING, true},
    {"nothing is committed of what failed", COMMIT_UNASKED, false},
    {"the register never refuses the newest holder", NEWEST_REFUSED, false},
    {"the register never goes back to an older token", REGISTER_BACK, false},
    {"no waiter is lost: each gets its turn", WAITER_LOST, false},
    {"waiters get their turns in the order of the queue", QUEUE_ORDER, true},
    {"no call goes on beyond its deadline", CALL_LATE, false},
    {"no client gets an answer that it should not get", ODD_ANSWER, false},
    {NULL, CHARGES, false},
};

const struct sentence quorum_sentences[] = {
    {"no token is granted twice", TOKEN_TWICE, false},
    {"a grant asked for after another was returned has a higher token", TOKEN_NOT_HIGHER, false},
    {"no two holders while leases hold", TWO_HOLDERS, false},
    {"nothing is granted while two members are gone", OUTAGE_GRANT, false},
    {"and holders know of it before their leases end", LEASE_OVERRUN, false},
    {"no grant is lost before its lease ends", GRANT_LOST, false},
    {"the fenced register never refuses the newest holder", NEWEST_REFUSED, false},
    {"no client gets an answer that it should not get", ODD_ANSWER, false},
    {NULL, CHARGES, false},
};

const struct sentence lock_sentences[] = {
    {"no token is granted twice", TOKEN_TWICE, false},
    {"tokens increase strictly in the order of grants", TOKEN_NOT_HIGHER, false},
    {"never a writer with a reader, or with another writer", TWO_HOLDERS, false},
    {"never more holders than the permits", TOO_MANY_HOLDERS, false},
    {"no client gets an answer that it should not get", ODD_ANSWER, false},
    {NULL, CHARGES, false},
};

const struct sentence queue_sentences[] = {
    {"each waiter that lives gets its turn", WAITER_LOST, false},
    {"in the order of tickets", QUEUE_ORDER, false},
    {NULL, CHARGES, false},
};

/* Someone has the name from start to end: by its own clock, which it believes, or by the
 * database's. */
struct holding {
    char name[HISTORY_WORD];
    long long token, asked, start, end, until;
    /* Its holder knew of the grant. */
    long long told;
    int permits;
    bool child;
};

struct past {
    struct line *lines;
    struct holding *holdings;
    int count, held;
    struct judgement *out;
};

#define EACH_LINE(l, p)                                                 \
    const struct line *l = (p)->lines, *e##l = (p)->lines + (p)->count; \
    l < e##l;                                                           \
    l++

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

static void *room_for(int count, size_t size)
{
    void *array = calloc((size_t)count + 1, size);
    if (!array)
        abort();
    return array;
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
    memcpy(h->name, l->name, sizeof h->name);
    h->token = l->n[0];
    h->asked = l->n[1];
    h->start = h->end = h->told = h->child ? l->n[1] : l->n[2];
    h->until = l->n[3];
    if (l->kind == 'g') {
        h->start = l->n[1];
        h->end = l->n[2];
        h->told = l->n[3];
        h->permits = (int)l->n[4];
    }
    p->out->grants += !h->child;
    p->out->children += h->child;
}

/* A grant whose row is still there was never another's, even if its lease was over. */
static void look_by_database(struct holding *h, const struct line *l)
{
    long long at = l->n[1];
    bool ends = l->kind == 'e' && at < h->end, lasts = l->kind != 'e' && at > h->end;
    if (ends || lasts)
        h->end = at;
}

/* A holder that has let go did so before its lease was over, or believed nothing since. */
static void read_past(struct past *p, const char *path)
{
    p->lines = history_lines(path, &p->count);
    p->holdings = room_for(p->count, sizeof *p->holdings);
    for (EACH_LINE(l, p)) {
        struct holding *h = strchr("HEtrke", l->kind) ? holding_of(p, l) : NULL;
        if (strchr("GSg", l->kind))
            begin_holding(p, l);
        p->out->confirmed += l->kind == 'k';
        p->out->lost += l->kind == 'l';
        if (h && l->kind == 'H')
            h->until = l->n[2];
        if (h && strchr("rke", l->kind))
            look_by_database(h, l);
        else if (h)
            h->end = l->kind == 'E' && l->n[1] > h->until ? h->until : l->n[1];
    }
}

/* ---- tokens and holders */

static int compare(const char *name, long long a, const char *other, long long b)
{
    int names = strcmp(name, other);
    return names ? names : a < b ? -1 : a > b;
}

static int by_token(const void *left, const void *right)
{
    const struct holding *a = left, *b = right;
    return compare(a->name, a->token, b->name, b->token);
}

static int by_told(const void *left, const void *right)
{
    const struct holding *a = left, *b = right;
    return compare(a->name, a->told, b->name, b->told);
}

static int by_asking(const void *left, const void *right)
{
    const struct holding *const *a = left, *const *b = right;
    return compare((*a)->name, (*a)->asked, (*b)->name, (*b)->asked);
}

static bool same_name(const struct holding *a, const struct holding *b)
{
    return a && strcmp(a->name, b->name) == 0;
}

/* A grant whose lease was over when its answer came had no holder. */
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
        if (i > 0 && same_name(h - 1, h) && h[-1].token == h->token)
            charge(p, TOKEN_TWICE, "%s: token %lld", h->name, h->token);
        if (!was_held(h))
            continue;
        if (same_name(before, h) && before->start > h->start)
            charge(p, TOKENS_OUT_OF_ORDER, "%s: %lld was held before %lld", h->name, h->token,
                   before->token);
        before = h;
    }
}

/* The highest exclusive grant and the highest other one, as far as that. */
struct highest {
    const struct holding *alone, *beside;
};

static void raise_highest(struct highest *highest, const struct holding *h)
{
    const struct holding **which = h->permits == 0 ? &highest->alone : &highest->beside;
    if (!same_name(*which, h) || h->token > (*which)->token)
        *which = h;
}

static void judge_asked(struct past *p, const struct holding *highest, const struct holding *h)
{
    if (same_name(highest, h) && highest->token >= h->token)
        charge(p, TOKEN_NOT_HIGHER, "%s: %lld was returned, and %lld ms later %lld was asked for",
               h->name, highest->token, (h->asked - highest->told) / 1000, h->token);
}

/* The holdings are in the order in which they were told. Those without a holder count too. Of
 * grants that may stand side by side only the database knows which was first: it reads its clock
 * before it counts. */
static void judge_order(struct past *p)
{
    struct holding **asked = room_for(p->held, sizeof *asked);
    struct highest highest = {NULL, NULL};
    int started = 0;
    for (int i = 0; i < p->held; i++)
        asked[i] = &p->holdings[i];
    qsort(asked, (size_t)p->held, sizeof *asked, by_asking);
    for (int i = 0; i < p->held; i++) {
        const struct holding *h = asked[i];
        for (; started < p->held; started++) {
            const struct holding *before = &p->holdings[started];
            if (compare(before->name, before->told, h->name, h->asked) >= 0)
                break;
            raise_highest(&highest, before);
        }
        judge_asked(p, highest.alone, h);
        if (h->permits == 0)
            judge_asked(p, highest.beside, h);
    }
    free(asked);
}

/* A grant needs a majority only. Where the last member has no row of it yet, or has refused it, a
 * clock that jumps is one failure too many. */
static bool was_bare(const struct past *p, const char *name, long long token)
{
    for (EACH_LINE(l, p))
        if (l->kind == 'X' && l->n[0] == token && strcmp(l->name, name) == 0)
            return true;
    return false;
}

static bool exclude_each_other(const struct holding *a, const struct holding *b)
{
    return a->permits == 0 || b->permits == 0 || a->permits != b->permits;
}

/* Was the one over when the other was granted? The latest moment of that is when the other was told.
 * Its clock may be far behind: a server reads it when a statement begins, and then stands still.
 * Meanwhile the row can go: its holder releases it, a sweep or a later grant finds its lease over. */
static bool is_over(const struct holding *one, const struct holding *other)
{
    return one->end <= other->told;
}

/* Those before it have lower tokens. The start of all later ones is not below the earliest. */
static void judge_holding(struct past *p, const struct holding **before, int *count,
                          const struct holding *h, long long earliest)
{
    int kept = 0, beside = 1;
    for (int i = 0; i < *count; i++) {
        const struct holding *other = before[i];
        if (!same_name(other, h) || other->end <= earliest)
            continue;
        before[kept++] = other;
        if (is_over(other, h))
            continue;
        if (!exclude_each_other(other, h))
            beside++;
        else if (!is_over(h, other) && !was_bare(p, other->name, other->token))
            charge(p, TWO_HOLDERS, "%s: %lld until %lld, %lld from %lld", h->name, other->token,
                   other->end, h->token, h->start);
    }
    before[kept] = h;
    *count = kept + 1;
    if (h->permits > 0 && beside > p->out->most_beside)
        p->out->most_beside = beside;
    if (h->permits > 0 && beside > h->permits)
        charge(p, TOO_MANY_HOLDERS, "%s: %d when %lld was granted", h->name, beside, h->token);
}

/* The holdings are in the order of tokens. That is the order of grants, and their starts are not:
 * a server reads the clock before it decides. */
static void judge_holders(struct past *p)
{
    long long *earliest = room_for(p->held, sizeof *earliest);
    const struct holding **before = room_for(p->held, sizeof(struct holding *));
    int count = 0;
    for (int i = p->held - 1; i >= 0; i--) {
        const struct holding *h = &p->holdings[i];
        bool last = i == p->held - 1 || !same_name(h, h + 1);
        earliest[i] = last || h->start < earliest[i + 1] ? h->start : earliest[i + 1];
    }
    for (int i = 0; i < p->held; i++)
        if (was_held(&p->holdings[i]))
            judge_holding(p, before, &count, &p->holdings[i], earliest[i]);
    free(before);
    free(earliest);
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
    for (EACH_LINE(l, p)) {
        if (l->kind == 'L' && !was_bare(p, l->name, l->n[0]))
            charge(p, GRANT_LOST, "%s: %lld was lost %lld ms early", l->name, l->n[0],
                   (l->n[2] - l->n[1]) / 1000);
        if (l->kind == 'N' && l->n[0] < newest_token(p, l->name))
            charge(p, GRANT_FORGOTTEN, "%s: the newest is %lld, not %lld", l->name, l->n[0],
                   newest_token(p, l->name));
    }
}

static void judge_outage(struct past *p, long long cut, long long back, long long ttl_us)
{
    long long end = cut + ttl_us;
    p->out->outages++;
    for (int i = 0; i < p->held; i++)
        if (p->holdings[i].asked >= cut && p->holdings[i].start <= back)
            charge(p, OUTAGE_GRANT, "%s: token %lld, %lld ms after the cut", p->holdings[i].name,
                   p->holdings[i].token, (p->holdings[i].start - cut) / 1000);
    for (EACH_LINE(l, p)) {
        if ((l->kind == 'H' || l->kind == 't') && l->n[1] > end && l->n[1] < back)
            charge(p, LEASE_OVERRUN, "%s: %lld lives %lld ms after its lease", l->name, l->n[0],
                   (l->n[1] - end) / 1000);
    }
}

/* Between cut and back no renewal can reach the database. */
static void judge_outages(struct past *p)
{
    long long cut = 0, ttl_us = 0;
    for (EACH_LINE(l, p)) {
        if (l->kind == 'P')
            ttl_us = l->n[0] * 1000;
        if (l->kind == 'M' && strcmp(l->name, "cut") == 0)
            cut = l->n[0];
        if (l->kind != 'M' || strcmp(l->name, "back") != 0 || !cut)
            continue;
        judge_outage(p, cut, l->n[0], ttl_us);
        cut = 0;
    }
    if (cut)
        judge_outage(p, cut, LLONG_MAX, ttl_us);
}

/* ---- money and the register */

static const struct line *find(const struct past *p, char kind, long long id)
{
    for (EACH_LINE(l, p))
        if (l->kind == kind && l->n[0] == id)
            return l;
    return NULL;
}

static long long sum_of_journal(const struct past *p, long long account)
{
    long long sum = 0;
    for (EACH_LINE(l, p)) {
        if (l->kind == 'J' && l->n[2] == account)
            sum += l->n[3];
        if (l->kind == 'J' && l->n[1] == account)
            sum -= l->n[3];
    }
    return sum;
}

static void judge_money(struct past *p)
{
    for (EACH_LINE(l, p)) {
        const struct line *end;
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
    const struct line **journal = room_for(p->count, sizeof *journal);
    size_t count = 0;
    for (EACH_LINE(l, p))
        if (l->kind == 'J')
            journal[count++] = l;
    qsort(journal, count, sizeof *journal, by_id);
    for (EACH_LINE(l, p)) {
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
    for (EACH_LINE(l, p)) {
        bool wrote = l->kind == 'W' && strcmp(l->word, "ROWLOCK_OK") == 0;
        p->out->writes += wrote;
        if (wrote && l->n[1] > l->n[0])
            charge(p, REGISTER_BACK, "from %lld to %lld", l->n[1], l->n[0]);
        if (wrote && l->n[0] > newest)
            newest = l->n[0];
        bool refused = l->kind == 'W' && strcmp(l->word, "ROWLOCK_STALE") == 0;
        p->out->refusals += refused;
        if (refused && newest_token(p, l->name) <= l->n[0])
            charge(p, NEWEST_REFUSED, "%s: %lld", l->name, l->n[0]);
        if (l->kind == 'R' && l->n[0] < newest)
            charge(p, COMMIT_MISSING, "the register has %lld, not %lld", l->n[0], newest);
    }
}

/* ---- waiters and calls */

static const struct line *wait_of(const struct past *p, long long round, long long waiter)
{
    for (EACH_LINE(l, p))
        if (l->kind == 'w' && l->n[0] == round && l->n[1] == waiter)
            return l;
    return NULL;
}

/* Lines of a round's queue come one after the other, in the order of places. */
/* How many tokens of the queue between these two no client was told of. Such a grant was a waiter's
 * turn: its answer was lost, and its lease ended in the outage. */
static int untold(const struct past *p, long long from, long long to)
{
    long long told = 0;
    for (EACH_LINE(l, p))
        told += l->kind == 'G' && strcmp(l->name, "queue") == 0 && l->n[0] > from && l->n[0] < to;
    return (int)(to - from - 1 - told);
}

static void judge_queue(struct past *p)
{
    long long round = -1, token = 0, before = 0, late = 0, excused = 0;
    for (EACH_LINE(l, p)) {
        const struct line *wait;
        before = l->kind == 'G' && strcmp(l->name, "queue") == 0 ? l->n[0] : before;
        p->out->waits += l->kind == 'w';
        if (l->kind == 'w' && strcmp(l->word, "ROWLOCK_OK") != 0)
            charge(p, WAITER_LOST, "round %lld: waiter %lld: %s", l->n[0], l->n[1], l->word);
        if (l->kind != 'Q')
            continue;
        if (l->n[0] != round)
            token = late = excused = 0;
        p->out->rounds += l->n[0] != round;
        round = l->n[0];
        wait = wait_of(p, round, l->n[2]);
        if (!wait)
            charge(p, WAITER_LOST, "round %lld: waiter %lld was not answered", round, l->n[2]);
        else if (strcmp(wait->word, "ROWLOCK_OK") == 0 && wait->n[2] < token && token != late) {
            late = token;
            if (++excused > untold(p, before, token))
                charge(p, QUEUE_ORDER, "round %lld: waiter %lld came with %lld, after %lld", round,
                       l->n[2], wait->n[2], token);
        }
        if (wait && wait->n[2] > token)
            token = wait->n[2];
    }
}

static void judge_calls(struct past *p, int slack_ms)
{
    for (EACH_LINE(l, p)) {
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
    read_past(&p, path);
    judge_tokens(&p);
    judge_holders(&p);
    qsort(p.holdings, (size_t)p.held, sizeof *p.holdings, by_told);
    judge_order(&p);
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

void print_sentences(const struct judgement *j, const struct sentence *sentences, const char *may)
{
    for (const struct sentence *s = sentences; s->text; s++) {
        int faults = j->faults[s->charge];
        bool forgiven = !strcmp(may, s->text) || (s->of_loss && !strcmp(may, "--may-lose"));
        printf("%sok - %s\n", faults == 0 || forgiven ? "" : "not ", s->text);
        if (faults > 0)
            printf("# %s%d times not so: %s: %s\n", forgiven ? "lost: " : "", faults, s->text,
                   j->first[s->charge]);
    }
}

int tap_sentences(const struct judgement *j, const struct sentence *sentences, const char *who)
{
    int faults = 0;
    for (const struct sentence *s = sentences; s->text; s++) {
        if (!tap_is_int(j->faults[s->charge], 0, "%s: %s", who, s->text))
            tap_note("%s", j->first[s->charge]);
        faults += j->faults[s->charge];
    }
    return faults;
}

void judge_marks(const char *path,
                 void (*each)(void *context, const char *what, long long next_grant_ms),
                 void *context)
{
    struct judgement ignored;
    struct past p = {.out = &ignored};
    memset(&ignored, 0, sizeof ignored);
    read_past(&p, path);
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
