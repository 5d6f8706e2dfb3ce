/* SPDX-License-Identifier: MIT
 * The place of src/base/clock.c, random.c, thread.c and wait.c. Threads are fibers, of which one
 * runs at a time. The clock stands still while one runs, and jumps when all wait.
 *
 * ucontext begins a fiber. _setjmp() switches, because swapcontext() calls the system each time. */
#include "simulate.h"

#include "base/base.h"
#include "base/thread.h"
#include "base/wait.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 256 * 1024, BUCKETS = 4096, ALARMS = 1 << 20 };

struct fiber {
    struct fiber *next;
    struct process *process;
    void *(*run)(void *context);
    void *context;
    void *mine;
    jmp_buf at;
    char *stack;
    bool started, ended, joined;
    /* What it waits for, and the number of this wait. 0: it does not wait. */
    const void *key;
    uint64_t wait;
    bool woken;
};

struct event {
    int64_t time;
    uint64_t order;
    /* A fiber goes on if it still is at this wait. NULL: act(context). */
    struct fiber *fiber;
    uint64_t wait;
    void (*act)(void *context);
    void *context;
};

struct process *sim_process;
static int64_t now;
static uint64_t waits, orders, generator;
static struct fiber *current, *waiting[BUCKETS], *spare;
static jmp_buf scheduler;
static struct event *heap;
static size_t count, room;

/* ---- random numbers (xorshift64*) */

void sim_seed(uint64_t seed)
{
    generator = seed * 2862933555777941757u + 3037000493u;
    generator = generator ? generator : 1;
}

static uint64_t next_bits(void)
{
    generator ^= generator >> 12;
    generator ^= generator << 25;
    generator ^= generator >> 27;
    return generator * 2685821657736338717u;
}

int64_t sim_random(int64_t bound)
{
    return bound > 1 ? (int64_t)((next_bits() >> 1) % (uint64_t)bound) : 0;
}

bool sim_once_in(int64_t many)
{
    return many > 0 && sim_random(many) == 0;
}

int64_t sim_spread(int64_t least, int64_t most)
{
    int doublings = 0;
    while (least << (doublings + 1) < most)
        doublings++;
    int64_t top = least << (sim_random(doublings + 1) + 1);
    return least + sim_random((top < most ? top : most) - least + 1);
}

int rlk_random_seed(uint64_t *out)
{
    *out = next_bits();
    return 0;
}

/* What a row tells of its client has the same length on every machine: a disk is full by pages. */
pid_t getpid(void)
{
    return 1000;
}

int gethostname(char *name, size_t size)
{
    snprintf(name, size, "host");
    return 0;
}

int rlk_random_owner(char out[RLK_TEXT_MAX + 1])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)next_bits(),
             (unsigned long long)next_bits());
    return 0;
}

/* ---- clocks */

int64_t sim_now(void)
{
    return now;
}

static int64_t local_us(void)
{
    const struct process *p = sim_process;
    return p ? now + p->ahead_us + now * p->ppm / 1000000 : now;
}

int64_t (*rlk_clock)(void) = local_us;

int64_t rlk_now_us(void)
{
    return local_us();
}

int64_t rlk_wall_us(void)
{
    return local_us() + (sim_process ? sim_process->set_us : 0);
}

/* Rounded up: a wait must not end too early. */
int64_t sim_true(int64_t local)
{
    const struct process *p = sim_process;
    if (local == INT64_MAX || !p)
        return local;
    int64_t time = local - p->ahead_us;
    return time - time * p->ppm / (1000000 + p->ppm) + 1;
}

/* ---- events, the earliest first */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push(struct event event)
{
    event.order = ++orders;
    if (count == room) {
        room = room ? 2 * room : 1024;
        heap = realloc(heap, room * sizeof *heap);
    }
    size_t i = count++;
    for (; i > 0 && is_before(&event, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = event;
}

static struct event pop(void)
{
    struct event first = heap[0], last = heap[--count];
    size_t i = 0;
    for (size_t child = 1; child < count; child = 2 * i + 1) {
        child += child + 1 < count && is_before(&heap[child + 1], &heap[child]);
        if (!is_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

void sim_at(int64_t time, void (*act)(void *context), void *context)
{
    push((struct event){.time = time < now ? now : time, .act = act, .context = context});
}

/* ---- fibers */

static struct fiber **bucket(const void *key)
{
    return &waiting[((uintptr_t)key >> 3) * 2654435761u % BUCKETS];
}

static void begin(void)
{
    current->run(current->context);
    current->ended = true;
    sim_wake(current);
    _longjmp(scheduler, 1);
}

static void start_on_stack(struct fiber *fiber)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber->stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = NULL;
    fiber->started = true;
    makecontext(&context, begin, 0);
    setcontext(&context);
}

static void free_fiber(struct fiber *fiber)
{
    fiber->next = spare;
    spare = fiber;
}

static void go_on(struct fiber *fiber)
{
    current = fiber;
    sim_process = fiber->process;
    if (_setjmp(scheduler) == 0) {
        if (!fiber->started)
            start_on_stack(fiber);
        _longjmp(fiber->at, 1);
    }
    sim_process = NULL;
    if (current->ended && !current->joined)
        free_fiber(current);
    current = NULL;
}

static struct fiber *new_fiber(struct process *process, void *(*run)(void *), void *context)
{
    struct fiber *fiber = spare;
    char *stack = fiber ? fiber->stack : NULL;
    if (fiber)
        spare = fiber->next;
    else
        fiber = malloc(sizeof *fiber);
    if (!stack)
        stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *fiber = (struct fiber){.process = process, .run = run, .context = context, .stack = stack};
    fiber->wait = ++waits;
    push((struct event){.time = now, .fiber = fiber, .wait = fiber->wait});
    return fiber;
}

void **sim_mine(void)
{
    return &current->mine;
}

void sim_start(struct process *process, void *(*run)(void *), void *context)
{
    new_fiber(process, run, context);
}

static void forget_wait(struct fiber *fiber)
{
    struct fiber **at = bucket(fiber->key);
    while (*at && *at != fiber)
        at = &(*at)->next;
    if (*at)
        *at = fiber->next;
    fiber->key = NULL;
}

bool sim_wait(const void *key, int64_t until)
{
    struct fiber *self = current;
    self->wait = ++waits;
    self->woken = false;
    self->key = key;
    if (key) {
        self->next = *bucket(key);
        *bucket(key) = self;
    }
    if (until != INT64_MAX)
        push((struct event){.time = until > now ? until : now, .fiber = self, .wait = self->wait});
    if (_setjmp(self->at) == 0)
        _longjmp(scheduler, 1);
    return current->woken;
}

/* A thread that is woken does not run at once. */
void sim_wake(const void *key)
{
    struct fiber *next;
    for (struct fiber *fiber = *bucket(key); fiber; fiber = next) {
        next = fiber->next;
        if (fiber->key != key)
            continue;
        forget_wait(fiber);
        fiber->woken = true;
        push((struct event){.time = now + sim_random(20), .fiber = fiber, .wait = fiber->wait});
    }
}

void sim_sleep(int64_t us)
{
    if (us > 0)
        sim_wait(NULL, now + us);
}

static void happen(const struct event *event)
{
    struct fiber *fiber = event->fiber;
    if (!fiber) {
        event->act(event->context);
        return;
    }
    if (fiber->wait != event->wait)
        return;
    if (fiber->process->dead || fiber->process->stopped_until > now) {
        struct event later = *event;
        later.time = fiber->process->stopped_until;
        if (!fiber->process->dead)
            push(later);
        else
            fiber->wait = 0;
        return;
    }
    if (fiber->key)
        forget_wait(fiber);
    fiber->wait = 0;
    go_on(fiber);
}

void sim_run(const bool *over)
{
    while (!*over && count > 0) {
        struct event event = pop();
        now = event.time > now ? event.time : now;
        happen(&event);
    }
}

/* ---- threads */

bool rlk_thread_start(pthread_t *out, void *(*run)(void *context), void *context)
{
    struct fiber *fiber = new_fiber(sim_process, run, context);
    fiber->joined = out != NULL;
    if (out)
        *out = (pthread_t)(uintptr_t)fiber;
    return true;
}

void rlk_thread_join(pthread_t thread)
{
    struct fiber *fiber = (struct fiber *)(uintptr_t)thread; /* NOLINT */
    while (!fiber->ended)
        sim_wait(fiber, INT64_MAX);
    free_fiber(fiber);
}

bool rlk_thread_is_this(pthread_t thread)
{
    return (uintptr_t)thread == (uintptr_t)current;
}

void rlk_thread_yield(void)
{
    sim_wait(NULL, now + sim_random(5));
}

/* The mutex has its owner in it. */
void rlk_lock(pthread_mutex_t *mutex)
{
    while (*(struct fiber **)mutex)
        sim_wait(mutex, INT64_MAX);
    *(struct fiber **)mutex = current;
}

void rlk_unlock(pthread_mutex_t *mutex)
{
    *(struct fiber **)mutex = NULL;
    sim_wake(mutex);
}

void rlk_wait_notified(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    rlk_unlock(mutex);
    sim_wait(condition, INT64_MAX);
    rlk_lock(mutex);
}

void rlk_notify(pthread_cond_t *condition)
{
    sim_wake(condition);
}

/* ---- waiting */

int (*rlk_poll)(struct pollfd *fds, nfds_t count, int timeout_ms) = poll;

/* What stands for the pipe of a handle: the number of one of these. */
static struct {
    bool rings;
} alarms[ALARMS];

const void *sim_alarm(int wake, bool *rings)
{
    *rings = wake >= 0 && alarms[wake].rings;
    return wake >= 0 ? &alarms[wake] : NULL;
}

int64_t rlk_wait_end(int64_t wait_ms)
{
    int64_t time = local_us();
    bool endless = wait_ms == ROWLOCK_FOREVER || wait_ms > (INT64_MAX - time) / 1000;
    return endless ? INT64_MAX : time + wait_ms * 1000;
}

int rlk_waiting_open(struct rlk_waiting *w)
{
    static int last;
    last = (last + 1) % ALARMS;
    alarms[last].rings = false;
    w->wake[0] = w->wake[1] = last;
    return 0;
}

/* The count of posts is in the semaphore's place. */
static int *posts(struct rlk_turn *turn)
{
    return (int *)(void *)&turn->posted;
}

void rlk_turn_init(struct rlk_turn *turn)
{
    *posts(turn) = 0;
    turn->alarm = -1;
}

void rlk_turn_open(struct rlk_waiting *w)
{
    w->wake[0] = w->wake[1] = -1;
    rlk_turn_init(&w->turn);
}

void rlk_turn_end(struct rlk_turn *turn)
{
}

void rlk_waiting_close(struct rlk_waiting *w)
{
    w->wake[0] = w->wake[1] = -1;
}

bool rlk_turn_came(struct rlk_turn *turn)
{
    bool came = *posts(turn) > 0;
    *posts(turn) -= came;
    return came;
}

void rlk_turn_post(struct rlk_turn *turn)
{
    ++*posts(turn);
    sim_wake(turn);
}

bool rlk_wait_turn(struct rlk_turn *turn, int64_t until_us)
{
    int64_t until = sim_true(until_us);
    while (!rlk_turn_came(turn)) {
        if (now >= until)
            return false;
        sim_wait(turn, until);
    }
    return true;
}

void rlk_cancel_wait(struct rlk_waiting *w)
{
    if (w->wake[1] < 0) {
        w->cancelled = true;
        rlk_turn_post(&w->turn);
        return;
    }
    alarms[w->wake[1]].rings = true;
    sim_wake(&alarms[w->wake[1]]);
}

bool rlk_take_cancel(struct rlk_waiting *w)
{
    if (w->wake[0] < 0)
        return atomic_exchange(&w->cancelled, false);
    bool any = alarms[w->wake[0]].rings;
    alarms[w->wake[0]].rings = false;
    return any;
}

bool rlk_wait_until(struct rlk_waiting *w, int64_t until_us)
{
    bool posted = true;
    if (w->wake[0] >= 0)
        while (posted && !alarms[w->wake[0]].rings)
            posted = sim_wait(&alarms[w->wake[0]], sim_true(until_us)) || now < sim_true(until_us);
    else
        while (posted && !atomic_load(&w->cancelled))
            posted = rlk_wait_turn(&w->turn, until_us);
    return !rlk_take_cancel(w);
}

int rlk_wait_socket(int socket, short events, int wake, int64_t until_us)
{
    sim_wait(NULL, sim_true(until_us));
    return 0;
}

void rlk_wait_plain(int64_t pause_us)
{
    sim_wait(NULL, sim_true(local_us() + pause_us));
}

int rlk_alarm_open(void)
{
    return -1;
}

void rlk_alarm_set(int fd, int64_t after_us)
{
}
