/* SPDX-License-Identifier: MIT
 *
 * Reading and judging a history of grants; see history.h. Nothing here speaks to a database.
 */
#include "history.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD = 5 };

/* ---- reading */

static struct past *find(struct history *h, int name, long long token)
{
    for (int i = h->count - 1; i >= 0; i--)
        if (h->past[i].name == name && h->past[i].token == token)
            return &h->past[i];
    return NULL;
}

static void read_grant(struct history *h, const char *line)
{
    struct past p = {0};
    bool whole = sscanf(line, "G %d %d %lld %lld %lld %lld", &p.name, &p.permits, &p.token,
                        &p.start, &p.end, &p.told) == 6;
    if (whole && h->count < HISTORY_MAX)
        h->past[h->count++] = p;
}

static void read_later(struct history *h, const char *line)
{
    int name;
    long long token, until = 0;
    char what;
    if (sscanf(line, "%c %d %lld %lld", &what, &name, &token, &until) < 3)
        return;
    struct past *p = find(h, name, token);
    h->lost += what == 'L';
    h->kept += what == 'K';
    if (p && ((what == 'E' && until < p->end) || (what == 'K' && until > p->end))) {
        p->end = until;
        p->witnessed = true;
    }
    if (p && what == 'R' && until > p->end) {
        p->end = until;
        p->witnessed = false;
    }
}

/* A grant whose row is still there was never out of its holder's hands, be its lease over; but when a lease
 * was over before the next renewal, the grant counts until then all the same: nobody may have come. */
void history_read(struct history *h, const char *path)
{
    char line[200];
    FILE *file = fopen(path, "r");
    memset(h, 0, sizeof *h);
    while (file && fgets(line, sizeof line, file)) {
        if (line[0] == 'G')
            read_grant(h, line);
        else
            read_later(h, line);
    }
    if (file)
        fclose(file);
}

/* ---- judging */

static bool exclude_each_other(const struct past *a, const struct past *b)
{
    return a->name == b->name && (a->permits == 0 || b->permits == 0 || a->permits != b->permits);
}

/* Was the one over when the other was granted? Its lease was by the other's own clock. What its holder has seen
 * himself, under the guard or before he let it go, may be a little later than that: servers read the clock when a
 * statement begins, which may then stand still for a while. But the other was told still later. */
static bool is_over(const struct past *one, const struct past *other)
{
    return one->end <= (one->witnessed ? other->told : other->start);
}

int history_conflicts(const struct history *h, bool aloud)
{
    int found = 0;
    for (int i = 0; i < h->count; i++)
        for (int k = i + 1; k < h->count; k++) {
            const struct past *a = &h->past[i], *b = &h->past[k];
            if (!exclude_each_other(a, b) || is_over(a, b) || is_over(b, a))
                continue;
            if (aloud && found < TOLD)
                tap_note("lock %d: token %lld (%d) from %lld to %lld, %lld (%d) from %lld to %lld",
                         a->name, a->token, a->permits, a->start, a->end, b->token, b->permits,
                         b->start, b->end);
            found++;
        }
    return found;
}

/* The token says which grant was earlier. Their starts do not: a server reads the clock before it decides, and may
 * stand still in between. */
int history_excesses(const struct history *h, int *most)
{
    int found = 0;
    *most = 0;
    for (int i = 0; i < h->count; i++) {
        const struct past *a = &h->past[i];
        int there = 0;
        for (int k = 0; k < h->count && a->permits > 0; k++)
            there += h->past[k].name == a->name && h->past[k].permits == a->permits &&
                     h->past[k].token <= a->token && !is_over(&h->past[k], a);
        found += there > a->permits && a->permits > 0;
        *most = there > *most ? there : *most;
    }
    return found;
}

/* Of grants that may stand side by side only the token row knows which was first: the clock is read before that is
 * locked, and a lease that was over before its grant was told has been renewed since. Of others he was first who
 * knew of his before the other's statement began. */
int history_inversions(const struct history *h)
{
    int found = 0;
    for (int i = 0; i < h->count; i++)
        for (int k = 0; k < h->count; k++) {
            const struct past *a = &h->past[i], *b = &h->past[k];
            found += exclude_each_other(a, b) && a->told < b->start && a->token >= b->token;
            found += i < k && a->name == b->name && a->token == b->token;
        }
    return found;
}
