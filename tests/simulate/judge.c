/* SPDX-License-Identifier: MIT
 * What must hold at each moment, and the story that a failure tells. */
#include "simulate.h"

enum { NAMES_MOST = 4096, STORY = 60, TOKENS = 64 };

char judge_command[500];
int64_t judge_grants;

/* ---- the story */

static struct line {
    int64_t time;
    int who;
    char what[60], name[60];
    int64_t a, b;
} story[STORY];
static uint64_t told, sum = 14695981039346656037u;

/* FNV-1a */
static void add(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
}

static void print(FILE *out, const struct line *line)
{
    fprintf(out, "%12.6f  %s %d %s %s %" PRId64 " %" PRId64 "\n", (double)line->time / SECOND,
            line->who < 0 ? "server" : "client", line->who < 0 ? -1 - line->who : line->who,
            line->what, line->name, line->a, line->b);
}

void tell(int who, const char *what, const char *name, int64_t a, int64_t b)
{
    static FILE *trace;
    const char *path = told == 0 ? getenv("TRACE") : NULL;
    struct line *line = &story[told++ % STORY];
    *line = (struct line){.time = sim_now(), .who = who, .a = a, .b = b};
    snprintf(line->what, sizeof line->what, "%s", what);
    snprintf(line->name, sizeof line->name, "%s", name ? name : "");
    const int64_t numbers[] = {line->time, who, a, b};
    add(numbers, sizeof numbers);
    add(line->what, strlen(line->what));
    if (path && *path && !(trace = fopen(path, "w")))
        violation("TRACE=%s cannot be written", path);
    if (trace)
        print(trace, line);
}

uint64_t judge_sum(void)
{
    return sum;
}

void violation(const char *format, ...)
{
    va_list arguments;
    fflush(NULL);
    for (uint64_t i = told > STORY ? told - STORY : 0; i < told; i++)
        print(stderr, &story[i % STORY]);
    fprintf(stderr, "%12.6f  VIOLATION: ", (double)sim_now() / SECOND);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nafter %" PRId64 " grants; again: %s\n", judge_grants, judge_command);
    exit(1);
}

/* ---- locks */

static struct lock {
    char name[40];
    /* The newest token that a holder was told, and that of an exclusive one. */
    int64_t newest, alone;
    struct holding *holdings;
    /* The last tokens that were broken, and whose rows a release has removed. */
    struct tokens {
        int64_t token[TOKENS];
        int count;
    } broken, released;
} locks[NAMES_MOST];
/* Tokens were raised to it. */
static int64_t least;
static int64_t excused_until = -1;

static struct lock *find(const char *name)
{
    size_t i = 5381;
    for (const char *at = name; *at; at++)
        i = i * 33 + (unsigned char)*at;
    for (i %= NAMES_MOST; locks[i].name[0] && strcmp(locks[i].name, name) != 0;)
        i = (i + 1) % NAMES_MOST;
    if (!locks[i].name[0])
        snprintf(locks[i].name, sizeof locks[i].name, "%s", name);
    return &locks[i];
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t judge_asks(const char *name)
{
    return greater(find(name)->newest, least);
}

/* Its clock may run so much too slowly. */
static bool is_trusted(const struct holding *h)
{
    struct process *running = sim_process;
    int64_t drift_ms = h->ttl_ms * llabs(h->process->ppm) / 1000000 + 2;
    sim_process = (struct process *)h->process;
    int64_t left_ms = rowlock_lock_remaining_ms(h->lock);
    sim_process = running;
    return left_ms > drift_ms;
}

static bool has_token(const struct tokens *tokens, int64_t token)
{
    bool has = false;
    for (int i = 0; i < TOKENS; i++)
        has |= tokens->token[i] == token;
    return has;
}

bool judge_broke(const struct holding *holding)
{
    return has_token(&find(holding->name)->broken, holding->token);
}

void judge_removes(const char *name, int64_t token)
{
    struct tokens *released = &find(name)->released;
    released->token[released->count++ % TOKENS] = token;
}

void judge_released(const struct holding *holding, int64_t rival)
{
    if (rival > holding->token && !has_token(&find(holding->name)->released, holding->token))
        violation("client %d is told that it has released '%s' with token %" PRId64
                  "; no release has removed that row, and token %" PRId64 " was granted before",
                  holding->process->number, holding->name, holding->token, rival);
}

void judge_excuses(void)
{
    excused_until = sim_now();
}

bool judge_excused(const struct holding *holding)
{
    return holding->asked <= excused_until;
}

/* A client that stood still may be told of a grant whose lease is over. */
static bool may_stand_beside(const struct holding *other, const struct holding *holding)
{
    bool both_shared = other->permits == ROWLOCK_SHARED && holding->permits == ROWLOCK_SHARED;
    return both_shared || !is_trusted(other) || rowlock_lock_remaining_ms(holding->lock) == 0 ||
           judge_broke(other) || judge_broke(holding) || judge_excused(other) ||
           judge_excused(holding);
}

static void check_others(const struct lock *lock, const struct holding *holding)
{
    int beside = 0;
    for (const struct holding *other = lock->holdings; other; other = other->next) {
        if (other->token == holding->token)
            violation("clients %d and %d have token %" PRId64 " of '%s'", other->process->number,
                      holding->process->number, holding->token, holding->name);
        if (other->process->dead || may_stand_beside(other, holding))
            continue;
        if (other->permits != holding->permits || ++beside >= holding->permits)
            violation("client %d is granted '%s' with token %" PRId64 " and %d permits, and client "
                      "%d trusts token %" PRId64 " with %d",
                      holding->process->number, holding->name, holding->token, holding->permits,
                      other->process->number, other->token, other->permits);
    }
}

static void drop_dead(struct lock *lock)
{
    for (struct holding **at = &lock->holdings; *at;)
        if ((*at)->process->dead)
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

void judge_granted(struct holding *holding, int64_t above)
{
    struct lock *lock = find(holding->name);
    judge_grants++;
    tell(holding->process->number, "is granted", holding->name, holding->token, holding->ttl_ms);
    if (holding->token <= above)
        violation("client %d is granted '%s' with token %" PRId64 ", and %" PRId64 " was told "
                  "before it asked",
                  holding->process->number, holding->name, holding->token, above);
    drop_dead(lock);
    check_others(lock, holding);
    lock->newest = greater(lock->newest, holding->token);
    if (holding->permits == 0)
        lock->alone = greater(lock->alone, holding->token);
    holding->next = lock->holdings;
    lock->holdings = holding;
}

void judge_ends(struct holding *holding)
{
    struct holding **at = &find(holding->name)->holdings;
    while (*at && *at != holding)
        at = &(*at)->next;
    if (*at)
        *at = holding->next;
}

void judge_breaks(const char *name, int64_t token)
{
    struct tokens *broken = &find(name)->broken;
    broken->token[broken->count++ % TOKENS] = token;
}

void judge_raises(int64_t token)
{
    least = greater(least, token);
}

/* Shared and counted grants may have newer ones of their kind beside them. */
int64_t judge_rival(const struct holding *holding)
{
    const struct lock *lock = find(holding->name);
    return holding->permits ? lock->alone : lock->newest;
}

void judge_commits(const struct holding *holding)
{
    int64_t newest = greater(judge_rival(holding), least);
    if (holding->token < newest)
        violation("a transaction that proved token %" PRId64 " of '%s' is committed after token "
                  "%" PRId64 " was granted",
                  holding->token, holding->name, newest);
}
