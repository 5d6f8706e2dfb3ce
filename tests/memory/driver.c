/* SPDX-License-Identifier: MIT
 * A fourth database, for tests: locks and their queue, in the memory of this process. A statement is a verb and
 * its values (sql/memory/), and one mutex makes each statement atomic. There are no transactions, no wake-ups and
 * no tables of the caller's. Core does without, or says that the database has no such step. */
#include "driver.h"

#include "core/core.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { ROOM = 256, ROW_CELLS = 13 };

static struct {
    bool installed;
    struct lock {
        struct rlk_row row; /* without an owner: free */
        int64_t request;
    } locks[ROOM];
    struct rlk_waiter waiters[ROOM];
    struct counter {
        char name[RLK_TEXT_MAX + 1];
        int64_t token, granted_us;
    } counters[ROOM];
    int64_t tickets;
} database;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* One statement. */
struct running {
    struct rlk_query *query;
    const rowlock_value *v;
    int64_t now_us;
};

#define EACH_WAITER(waiter)                                                                        \
    for (struct rlk_waiter *waiter = database.waiters; waiter < database.waiters + ROOM; waiter++) \
        if (waiter->name[0])
#define EACH_LOCK(lock)                                                            \
    for (struct lock *lock = database.locks; lock < database.locks + ROOM; lock++) \
        if (lock->row.owner[0])
#define COPY(out, value) rlk_copy_text(out, sizeof(out), (value).text, (value).length)

static bool is(const char *text, const rowlock_value *value)
{
    return strlen(text) == value->length && memcmp(text, value->text, value->length) == 0;
}

static enum rlk_class give(const struct running *r, const rowlock_value *cells, size_t count)
{
    return r->query->each(r->query->context, cells, count) < 0 ? RLK_MISFIT : RLK_DONE;
}

static enum rlk_class counts(const struct running *r, bool done)
{
    r->query->counted = true;
    r->query->changed = done;
    return RLK_DONE;
}

/* By name, slot, owner and token, as these begin the values of what a holder does. */
static struct lock *held(const rowlock_value *v)
{
    EACH_LOCK(lock)
    {
        const struct rlk_row *row = &lock->row;
        if (is(row->name, &v[0]) && row->slot == v[1].number && is(row->owner, &v[2]) &&
            row->token == v[3].number)
            return lock;
    }
    return NULL;
}

static struct counter *counter_of(const rowlock_value *name, bool make)
{
    struct counter *unused = NULL;
    for (struct counter *c = database.counters; c < database.counters + ROOM; c++) {
        if (c->token && is(c->name, name))
            return c;
        if (!c->token && !unused)
            unused = c;
    }
    if (make && unused)
        COPY(unused->name, *name);
    return make ? unused : NULL;
}

/* ---- a try */

enum { NAME, PERMITS, OWNER, REQUEST, TTL, HOST, PID, PROGRAM, NOTE, TICKET, UNFAIR };

/* The grant of this request, or one that keeps it out. */
static struct lock *in_the_way(const struct running *r)
{
    const rowlock_value *v = r->v;
    struct lock *last = NULL;
    int64_t others = 0;
    EACH_LOCK(lock)
    {
        const struct rlk_row *row = &lock->row;
        bool own = is(row->owner, &v[OWNER]);
        if (!is(row->name, &v[NAME]) || row->expires_us <= r->now_us)
            continue;
        if (own && lock->request == v[REQUEST].number)
            return lock;
        if (own)
            continue;
        if (v[PERMITS].number == 0 || row->slot == 0 || row->permits != v[PERMITS].number)
            return lock;
        last = lock;
        others++;
    }
    return v[PERMITS].number > 0 && others >= v[PERMITS].number ? last : NULL;
}

static bool is_behind(const struct running *r)
{
    const rowlock_value *v = r->v;
    EACH_LOCK(lock)
    if (is(lock->row.name, &v[NAME]) && is(lock->row.owner, &v[OWNER]) &&
        lock->row.expires_us > r->now_us)
        return false;
    EACH_WAITER(waiter)
    if (is(waiter->name, &v[NAME]) && waiter->expires_us > r->now_us &&
        (v[TICKET].number == 0 || waiter->ticket < v[TICKET].number))
        return v[UNFAIR].number == 0;
    return false;
}

static void put_row(const struct rlk_row *row, rowlock_value *out)
{
    const rowlock_value cells[ROW_CELLS] = {
        rowlock_text(row->name),      rowlock_int(row->slot),   rowlock_int(row->permits),
        rowlock_text(row->owner),     rowlock_int(row->token),  rowlock_int(row->acquired_us),
        rowlock_int(row->expires_us), rowlock_int(row->ttl_us), rowlock_int(row->renewals),
        rowlock_text(row->host),      rowlock_int(row->pid),    rowlock_text(row->program),
        rowlock_text(row->note)};
    memcpy(out, cells, sizeof cells);
}

static enum rlk_class tell(const struct running *r, const struct lock *lock, bool behind)
{
    bool ours = lock->request == r->v[REQUEST].number && is(lock->row.owner, &r->v[OWNER]);
    rowlock_value cells[5 + ROW_CELLS] = {rowlock_null(), rowlock_bool(ours), rowlock_null(),
                                          rowlock_bool(behind), rowlock_int(r->now_us)};
    put_row(&lock->row, cells + 5);
    return give(r, cells, 5 + ROW_CELLS);
}

static enum rlk_class grant(const struct running *r)
{
    const rowlock_value *v = r->v;
    struct counter *counter = counter_of(&v[NAME], true);
    struct lock *to = NULL;
    EACH_LOCK(lock)
    if (is(lock->row.name, &v[NAME]) &&
        (is(lock->row.owner, &v[OWNER]) || lock->row.expires_us <= r->now_us))
        lock->row.owner[0] = '\0';
    for (struct lock *lock = database.locks; lock < database.locks + ROOM && !to; lock++)
        to = lock->row.owner[0] ? NULL : lock;
    if (!counter || !to)
        return RLK_READONLY;
    EACH_WAITER(waiter)
    if (is(waiter->name, &v[NAME]) && waiter->request == v[REQUEST].number)
        waiter->name[0] = '\0';
    *counter = (struct counter){.token = counter->token + 1, .granted_us = r->now_us};
    COPY(counter->name, v[NAME]);
    *to = (struct lock){.request = v[REQUEST].number,
                        .row = {.permits = (int)v[PERMITS].number,
                                .slot = v[PERMITS].number ? counter->token : 0,
                                .token = counter->token,
                                .acquired_us = r->now_us,
                                .expires_us = r->now_us + v[TTL].number,
                                .ttl_us = v[TTL].number,
                                .pid = v[PID].number}};
    COPY(to->row.name, v[NAME]);
    COPY(to->row.owner, v[OWNER]);
    COPY(to->row.host, v[HOST]);
    COPY(to->row.program, v[PROGRAM]);
    COPY(to->row.note, v[NOTE]);
    const rowlock_value cells[] = {rowlock_int(counter->token), rowlock_null(), rowlock_null(),
                                   rowlock_bool(0), rowlock_int(r->now_us)};
    return give(r, cells, 5);
}

static enum rlk_class acquire(const struct running *r)
{
    const struct lock *way = in_the_way(r);
    bool behind = is_behind(r);
    const rowlock_value cells[] = {rowlock_null(), rowlock_null(), rowlock_null(), rowlock_bool(1),
                                   rowlock_int(r->now_us)};
    return way ? tell(r, way, behind) : behind ? give(r, cells, 5) : grant(r);
}

/* ---- what a holder does */

static enum rlk_class renew(const struct running *r)
{
    struct lock *lock = held(r->v);
    if (!lock)
        return RLK_DONE;
    int64_t late_us = r->now_us - lock->row.expires_us;
    if (r->v[4].number > 0)
        lock->row.ttl_us = r->v[4].number;
    lock->row.expires_us = r->now_us + lock->row.ttl_us;
    lock->row.renewals++;
    const rowlock_value cells[] = {rowlock_int(lock->row.expires_us),
                                   rowlock_int(late_us > 0 ? late_us : 0), rowlock_int(r->now_us)};
    return give(r, cells, 3);
}

static enum rlk_class note(const struct running *r)
{
    struct lock *lock = held(r->v);
    if (lock)
        COPY(lock->row.note, r->v[4]);
    return counts(r, lock != NULL);
}

static enum rlk_class release(const struct running *r)
{
    struct lock *lock = held(r->v);
    if (lock)
        lock->row.owner[0] = '\0';
    return counts(r, lock != NULL);
}

static enum rlk_class withdraw(const struct running *r)
{
    EACH_LOCK(lock)
    if (is(lock->row.name, &r->v[0]) && is(lock->row.owner, &r->v[1]) &&
        lock->request == r->v[2].number) {
        lock->row.owner[0] = '\0';
        return counts(r, true);
    }
    return counts(r, false);
}

static enum rlk_class verify(const struct running *r)
{
    const struct lock *lock = held(r->v);
    if (!lock)
        return RLK_DONE;
    const rowlock_value cells[] = {rowlock_int(lock->row.expires_us), rowlock_int(r->now_us)};
    return give(r, cells, 2);
}

static enum rlk_class last(const struct running *r)
{
    const struct counter *counter = counter_of(&r->v[0], false);
    if (!counter)
        return RLK_DONE;
    const rowlock_value cells[] = {rowlock_int(counter->token), rowlock_int(counter->granted_us)};
    return give(r, cells, 2);
}

static enum rlk_class end_by_force(const struct running *r)
{
    EACH_LOCK(lock)
    if (is(lock->row.name, &r->v[0]) && lock->row.token == r->v[1].number) {
        rowlock_value cells[ROW_CELLS + 1];
        struct lock gone = *lock;
        lock->row.owner[0] = '\0';
        counter_of(&r->v[0], false)->token++;
        put_row(&gone.row, cells);
        cells[ROW_CELLS] = rowlock_int(r->now_us);
        return give(r, cells, ROW_CELLS + 1);
    }
    return RLK_DONE;
}

static int compare(const struct rlk_row *row, const char *name, int64_t slot)
{
    int names = strcmp(row->name, name);
    return names ? names : (row->slot > slot) - (row->slot < slot);
}

/* In the order of name and slot, each time the lowest after the one before. */
static enum rlk_class list(const struct running *r)
{
    enum { ONLY, AFTER, SLOT, LIMIT };
    char name[RLK_TEXT_MAX + 1];
    int64_t slot = r->v[SLOT].number;
    COPY(name, r->v[AFTER]);
    for (int64_t left = r->v[LIMIT].number; left > 0; left--) {
        rowlock_value cells[ROW_CELLS + 1];
        const struct rlk_row *next = NULL;
        EACH_LOCK(lock)
        if (compare(&lock->row, name, slot) > 0 &&
            (r->v[ONLY].kind == ROWLOCK_NULL || is(lock->row.name, &r->v[ONLY])) &&
            (!next || compare(&lock->row, next->name, next->slot) < 0))
            next = &lock->row;
        if (!next)
            return RLK_DONE;
        put_row(next, cells);
        cells[ROW_CELLS] = rowlock_int(r->now_us);
        if (give(r, cells, ROW_CELLS + 1) != RLK_DONE)
            return RLK_SCHEMA;
        memcpy(name, next->name, sizeof name);
        slot = next->slot;
    }
    return RLK_DONE;
}

/* ---- the queue, and the tables */

static struct rlk_waiter *ticket_of(const rowlock_value *name, int64_t request)
{
    struct rlk_waiter *unused = NULL;
    for (struct rlk_waiter *w = database.waiters; w < database.waiters + ROOM; w++) {
        if (w->name[0] && is(w->name, name) && w->request == request)
            return w;
        if (!w->name[0] && !unused)
            unused = w;
    }
    return unused;
}

static enum rlk_class enqueue(const struct running *r)
{
    const rowlock_value *v = r->v;
    struct rlk_waiter *mine = ticket_of(&v[NAME], v[REQUEST].number);
    int64_t ahead = 0;
    if (!mine)
        return RLK_READONLY;
    if (!mine->name[0])
        *mine = (struct rlk_waiter){.ticket = ++database.tickets, .request = v[REQUEST].number};
    COPY(mine->name, v[NAME]);
    mine->expires_us = r->now_us + v[TTL].number;
    EACH_WAITER(waiter)
    ahead += is(waiter->name, &v[NAME]) && waiter->expires_us > r->now_us &&
             waiter->ticket < mine->ticket;
    const rowlock_value cells[] = {rowlock_int(mine->ticket), rowlock_int(ahead), rowlock_int(0)};
    return give(r, cells, 3);
}

static enum rlk_class leave(const struct running *r)
{
    struct rlk_waiter *mine = ticket_of(&r->v[0], r->v[1].number);
    bool found = mine && mine->name[0];
    if (found)
        mine->name[0] = '\0';
    return counts(r, found);
}

static enum rlk_class meta(const struct running *r)
{
    const rowlock_value cells[] = {rowlock_int(1),         rowlock_int(1), rowlock_int(1),
                                   rowlock_text("memory"), rowlock_int(0), rowlock_int(0),
                                   rowlock_int(0)};
    return database.installed ? give(r, cells, 7) : RLK_SCHEMA;
}

/* ---- the operations */

static const struct {
    const char *verb;
    enum rlk_class (*run)(const struct running *r);
} verbs[] = {
    {"acquire", acquire}, {"renew", renew},        {"release", release}, {"withdraw", withdraw},
    {"verify", verify},   {"last", last},          {"enqueue", enqueue}, {"leave", leave},
    {"list", list},       {"break", end_by_force}, {"meta", meta},       {"note", note},
};

static enum rlk_class memory_query(void *conn, struct rlk_call *call, struct rlk_query *query)
{
    struct timespec now;
    size_t i = 0;
    if (call->where == RLK_INSIDE)
        return RLK_NO_TX;
    clock_gettime(CLOCK_REALTIME, &now);
    struct running running = {.query = query,
                              .v = query->values,
                              .now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
    const char *verb = strchr(query->sql, '\n') + 1;
    while (strncmp(verb, verbs[i].verb, strcspn(verb, " \n")) != 0)
        i++;
    pthread_mutex_lock(&mutex);
    enum rlk_class class = verbs[i].run(&running);
    pthread_mutex_unlock(&mutex);
    return class;
}

static enum rlk_class memory_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    call->inside = false;
    return what == RLK_LOOK ? RLK_DONE : RLK_UNSUPPORTED;
}

static enum rlk_class memory_open(void *conn, struct rlk_call *call,
                                  const struct rlk_target *target, const struct rlk_texts *texts,
                                  struct rlk_hello *hello)
{
    snprintf(hello->schema, sizeof hello->schema, "main");
    return RLK_DONE;
}

static enum rlk_class memory_adopt(void *conn, struct rlk_call *call, void *vendor,
                                   const struct rlk_texts *texts, struct rlk_hello *hello)
{
    return RLK_UNSUPPORTED;
}

static void memory_close(void *conn, bool in_child)
{
}

static enum rlk_class memory_script(void *conn, struct rlk_call *call, const char *sql)
{
    database.installed = true;
    return RLK_DONE;
}

static enum rlk_class memory_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    snprintf(out->server, sizeof out->server, "the memory of this process");
    out->bytewise = out->may_lock = out->any_isolation = true;
    return RLK_DONE;
}

static enum rlk_class memory_await(void *conn, struct rlk_call *call,
                                   const struct rlk_request *request, int wake,
                                   enum rlk_wakeup *out)
{
    *out = RLK_NO_WAKEUPS;
    return RLK_DONE;
}

int memory_rows(const char *name)
{
    int count = 0;
    pthread_mutex_lock(&mutex);
    EACH_LOCK(lock)
    count += strcmp(lock->row.name, name) == 0;
    pthread_mutex_unlock(&mutex);
    return count;
}

static void memory_client(char *out, size_t cap)
{
    snprintf(out, cap, "memory");
}

static const char *const schemes[] = {"memory", NULL};

const struct rlk_driver rlk_driver_memory = {
    .name = "memory",
    .schemes = schemes,
    .conn_size = 1,
    .quote = '"',
    .marker = '?',
    .numbered = true,
    .local = true,
    .packing = RLK_SINGLY,
    .client = memory_client,
    .open = memory_open,
    .adopt = memory_adopt,
    .close = memory_close,
    .script = memory_script,
    .facts = memory_facts,
    .await = memory_await,
    .query = memory_query,
    .frame = memory_frame,
};
