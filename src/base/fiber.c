/* SPDX-License-Identifier: MIT
 * Fibers on ucontext. Where a C library has no ucontext or a system no timerfd, there are none.
 *
 * The descriptor is a timer: it becomes readable at the end of a wait, or at once for a wake-up. */
#include "base/fiber.h"
#include "base/base.h"

#if defined(__linux__) && defined(__GLIBC__)

#include <errno.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

/* The stack holds no statement and no vendor call. Under it is a page that cannot be used. */
enum { STACK = 128 * 1024, GUARD = 4096, LONGEST_US = 60000000 };

struct rlk_fiber {
    void (*run)(void *context);
    void *context;
    char *stack;
    int timer;
    bool returned;
    ucontext_t inside, outside;
#if defined(__SANITIZE_THREAD__)
    void *tsan_inside, *tsan_outside;
#endif
#if defined(__SANITIZE_ADDRESS__)
    void *asan_inside, *asan_outside;
    const void *outside_stack;
    size_t outside_size;
#endif
};

static _Thread_local struct rlk_fiber *current;

/* The sanitizers must know which stack is in use. */
static void enter(struct rlk_fiber *f)
{
#if defined(__SANITIZE_THREAD__)
    f->tsan_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan_inside, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&f->asan_outside, f->stack + GUARD, STACK);
#endif
    swapcontext(&f->outside, &f->inside);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(f->asan_outside, NULL, NULL);
#endif
}

static void leave(struct rlk_fiber *f)
{
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(f->tsan_outside, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(f->returned ? NULL : &f->asan_inside, f->outside_stack,
                                   f->outside_size);
#endif
    swapcontext(&f->inside, &f->outside);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(f->asan_inside, &f->outside_stack, &f->outside_size);
#endif
}

/* makecontext() passes integers only, so the fiber is found by the thread that enters it. */
static void begin(void)
{
    struct rlk_fiber *f = current;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(NULL, &f->outside_stack, &f->outside_size);
#endif
    f->run(f->context);
    f->returned = true;
    leave(f);
}

struct rlk_fiber *rlk_fiber_new(void)
{
    struct rlk_fiber *f = rlk_alloc(sizeof *f);
    if (!f)
        return NULL;
    f->returned = true;
    f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    f->stack = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (f->timer < 0 || f->stack == MAP_FAILED || mprotect(f->stack, GUARD, PROT_NONE) != 0) {
        rlk_fiber_free(f);
        return NULL;
    }
#if defined(__SANITIZE_THREAD__)
    f->tsan_inside = __tsan_create_fiber(0);
#endif
    return f;
}

void rlk_fiber_begin(struct rlk_fiber *f, void (*run)(void *context), void *context)
{
    f->run = run;
    f->context = context;
    f->returned = false;
    getcontext(&f->inside);
    f->inside.uc_stack.ss_sp = f->stack + GUARD;
    f->inside.uc_stack.ss_size = STACK;
    makecontext(&f->inside, begin, 0);
}

void rlk_fiber_free(struct rlk_fiber *f)
{
    if (!f)
        return;
#if defined(__SANITIZE_THREAD__)
    if (f->tsan_inside)
        __tsan_destroy_fiber(f->tsan_inside);
#endif
    if (f->stack != MAP_FAILED)
        munmap(f->stack, STACK + GUARD);
    if (f->timer >= 0)
        close(f->timer);
    rlk_free(f);
}

static void set_timer(const struct rlk_fiber *f, int64_t after_us)
{
    int saved = errno;
    struct itimerspec when = {
        .it_value = {.tv_sec = after_us / 1000000, .tv_nsec = after_us % 1000000 * 1000}};
    /* A zero would disarm it. */
    if (after_us <= 0)
        when.it_value = (struct timespec){.tv_nsec = 1};
    timerfd_settime(f->timer, 0, &when, NULL);
    errno = saved;
}

bool rlk_fiber_resume(struct rlk_fiber *f)
{
    uint64_t expirations;
    struct rlk_fiber *before = current;
    ssize_t ignored = read(f->timer, &expirations, sizeof expirations);
    (void)ignored;
    if (!f->returned) {
        current = f;
        enter(f);
        current = before;
    }
    return f->returned;
}

int rlk_fiber_fd(const struct rlk_fiber *f)
{
    return f->timer;
}

struct rlk_fiber *rlk_fiber_current(void)
{
    return current;
}

void rlk_fiber_expect(struct rlk_fiber *f, int64_t until_us)
{
    int64_t left_us = until_us - rlk_now_us();
    set_timer(f, left_us < LONGEST_US ? left_us : LONGEST_US);
}

void rlk_fiber_pause(struct rlk_fiber *f)
{
    leave(f);
}

void rlk_fiber_wake(struct rlk_fiber *f)
{
    set_timer(f, 0);
}

#else

struct rlk_fiber *rlk_fiber_new(void)
{
    return NULL;
}

void rlk_fiber_begin(struct rlk_fiber *f, void (*run)(void *context), void *context)
{
    (void)f;
    (void)run;
    (void)context;
}

bool rlk_fiber_resume(struct rlk_fiber *f)
{
    (void)f;
    return true;
}

int rlk_fiber_fd(const struct rlk_fiber *f)
{
    (void)f;
    return -1;
}

void rlk_fiber_free(struct rlk_fiber *f)
{
    (void)f;
}

struct rlk_fiber *rlk_fiber_current(void)
{
    return NULL;
}

void rlk_fiber_expect(struct rlk_fiber *f, int64_t until_us)
{
    (void)f;
    (void)until_us;
}

void rlk_fiber_pause(struct rlk_fiber *f)
{
    (void)f;
}

void rlk_fiber_wake(struct rlk_fiber *f)
{
    (void)f;
}

#endif
