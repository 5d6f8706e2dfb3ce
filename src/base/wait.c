/* SPDX-License-Identifier: MIT
 * Pauses that a cancel can end, and alarms. No other file of the library waits for a time. How long
 * pauses are: pause.c, and lock/queueing.c for a waiter. */
#include "base/wait.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/timerfd.h>
#endif

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

enum { LONGEST_POLL_US = 60000000 };

/* Tests with a clock of their own set another function. */
int (*rlk_poll)(struct pollfd *fds, nfds_t count, int timeout_ms) = poll;

int64_t rlk_wait_end(int64_t wait_ms)
{
    int64_t now_us = rlk_now_us();
    bool endless = wait_ms == ROWLOCK_FOREVER || wait_ms > (INT64_MAX - now_us) / 1000;
    return endless ? INT64_MAX : now_us + wait_ms * 1000;
}

int rlk_waiting_open(struct rlk_waiting *w)
{
    if (pipe2(w->wake, O_CLOEXEC | O_NONBLOCK) == 0)
        return 0;
    w->wake[0] = w->wake[1] = -1;
    return -1;
}

void rlk_turn_open(struct rlk_waiting *w)
{
    w->wake[0] = w->wake[1] = -1;
    rlk_turn_init(&w->turn);
}

void rlk_turn_init(struct rlk_turn *turn)
{
    sem_init(&turn->posted, 0, 0);
    turn->alarm = -1;
}

void rlk_turn_end(struct rlk_turn *turn)
{
    sem_destroy(&turn->posted);
}

bool rlk_turn_came(struct rlk_turn *turn)
{
    return sem_trywait(&turn->posted) == 0;
}

void rlk_waiting_close(struct rlk_waiting *w)
{
    for (int i = 0; i < 2; i++)
        if (w->wake[i] >= 0)
            close(w->wake[i]);
    w->wake[0] = w->wake[1] = -1;
    if (w->turn.alarm >= 0)
        close(w->turn.alarm);
    w->turn.alarm = -1;
}

/* write() to a pipe and sem_post() are safe in signal handlers and threads. A full pipe needs no
 * other byte. */
void rlk_cancel_wait(struct rlk_waiting *w)
{
    int saved = errno;
    if (w->wake[1] < 0) {
        w->cancelled = true;
        rlk_turn_post(&w->turn);
        return;
    }
    if (write(w->wake[1], "", 1) < 0)
        errno = saved;
}

bool rlk_take_cancel(struct rlk_waiting *w)
{
    char bytes[64];
    bool any = false;
    if (w->wake[0] < 0)
        return atomic_exchange(&w->cancelled, false);
    while (read(w->wake[0], bytes, sizeof bytes) > 0)
        any = true;
    return any;
}

/* Rounded up, since a wait must not end too early. At most a minute at a time. */
static int poll_ms(int64_t left_us)
{
    return left_us <= 0                 ? 0
           : left_us >= LONGEST_POLL_US ? LONGEST_POLL_US / 1000
                                        : (int)(left_us / 1000 + 1);
}

/* A thread that was waiting may free the turn at once. One that has an alarm does not. */
void rlk_turn_post(struct rlk_turn *turn)
{
    int alarm = turn->alarm;
    sem_post(&turn->posted);
    if (alarm >= 0)
        rlk_alarm_set(alarm, 0);
}

/* The thread sanitizer knows sem_post() and sem_wait(), but not sem_clockwait(). */
static bool clock_wait(sem_t *posted, int64_t after_us)
{
#ifdef __GLIBC__
    struct timespec end = rlk_wait_clock(after_us);
    bool came = sem_clockwait(posted, CLOCK_MONOTONIC, &end) == 0;
#else /* musl waits for the span from now to the end, which a change of the clock does not change */
    int64_t end_us = rlk_wall_us() + after_us;
    struct timespec end = {(time_t)(end_us / 1000000), (long)(end_us % 1000000) * 1000};
    bool came = sem_timedwait(posted, &end) == 0;
#endif
#if defined(__SANITIZE_THREAD__)
    if (came)
        __tsan_acquire(posted);
#endif
    return came;
}

/* The clock of sem_clockwait() may stand still while the machine is suspended. So it waits at most
 * a minute at a time. */
bool rlk_wait_turn(struct rlk_turn *turn, int64_t until_us)
{
    for (;;) {
        int64_t left_us = until_us - rlk_now_us();
        if (left_us <= 0)
            return sem_trywait(&turn->posted) == 0;
        if (clock_wait(&turn->posted, rlk_least(left_us, LONGEST_POLL_US)))
            return true;
    }
}

/* Other posts than that of a cancel may end one wait. */
static bool wait_without_pipe(struct rlk_waiting *w, int64_t until_us)
{
    while (!atomic_load(&w->cancelled) && rlk_wait_turn(&w->turn, until_us))
        ;
    return !rlk_take_cancel(w);
}

bool rlk_wait_until(struct rlk_waiting *w, int64_t until_us)
{
    if (w->wake[0] < 0)
        return wait_without_pipe(w, until_us);
    for (;;) {
        int64_t left_us = until_us - rlk_now_us();
        struct pollfd fd = {.fd = w->wake[0], .events = POLLIN};
        int n = rlk_poll(&fd, 1, poll_ms(left_us));
        if (n > 0)
            return !rlk_take_cancel(w);
        if (left_us <= 0 || (n < 0 && errno != EINTR))
            return true;
    }
}

int rlk_wait_socket(int socket, short events, int wake, int64_t until_us)
{
    struct pollfd fds[] = {{.fd = socket, .events = events}, {.fd = wake, .events = POLLIN}};
    for (;;) {
        int64_t left_us = until_us - rlk_now_us();
        if (left_us <= 0)
            return 0;
        if (rlk_poll(fds, 2, poll_ms(left_us)) > 0)
            return (fds[0].revents ? RLK_READY : 0) | (fds[1].revents ? RLK_WOKEN : 0);
    }
}

void rlk_wait_plain(int64_t pause_us)
{
    int64_t until = rlk_now_us() + pause_us;
    for (int64_t left = until - rlk_now_us(); left > 0; left = until - rlk_now_us())
        rlk_poll(NULL, 0, (int)(left / 1000 + 1));
}

/* ---- alarms */

#ifdef __linux__

int rlk_alarm_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* A zero would disarm it. */
void rlk_alarm_set(int fd, int64_t after_us)
{
    int saved = errno;
    struct itimerspec timer = {0};
    if (after_us != INT64_MAX) {
        timer.it_value.tv_sec = after_us <= 0 ? 0 : (time_t)(after_us / 1000000);
        timer.it_value.tv_nsec = after_us <= 0 ? 1 : (long)(after_us % 1000000) * 1000 + 1;
    }
    timerfd_settime(fd, 0, &timer, NULL);
    errno = saved;
}

#else

int rlk_alarm_open(void)
{
    return -1;
}

void rlk_alarm_set(int fd, int64_t after_us)
{
    (void)fd;
    (void)after_us;
}

#endif
