/* SPDX-License-Identifier: MIT
 *
 * Blocks, catches and fetches signals. job.c sends them to a job.
 */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/signalfd.h>
#endif

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif

/* They end a process that has no handler. */
static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
/* The others that we handle while a job runs. With those that stop a process, a stray Ctrl-Z cannot
 * stop the renewing, and the terminal can be handed over from the background. */
static const int others[] = {SIGCHLD, SIGCONT, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static sigset_t original_mask;
static struct sigaction original_ending[COUNT(ending)];
static struct sigaction original_child;
static struct sigaction original_pipe;
static sigset_t kept;

static rowlock_db *waiting_db;
static volatile sig_atomic_t caught;

/* SIGUSR1 asks a leader to resign. While there is nothing to resign from it does nothing. */
static bool can_resign;

static void on_signal(int signal)
{
    int saved = errno;
    if (signal == SIGUSR1 && can_resign)
        return;
    if (!caught)
        caught = signal;
    rowlock_cancel(waiting_db);
    errno = saved;
}

bool signal_ends(int signal)
{
    for (size_t i = 0; i < COUNT(ending); i++)
        if (ending[i] == signal)
            return true;
    return false;
}

void signals_ignore_pipe(void)
{
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    static bool ignored;
    if (!ignored)
        sigaction(SIGPIPE, &ignore, &original_pipe);
    ignored = true;
}

void signals_note_originals(void)
{
    pthread_sigmask(SIG_SETMASK, NULL, &original_mask);
    for (size_t i = 0; i < COUNT(ending); i++)
        sigaction(ending[i], NULL, &original_ending[i]);
    sigaction(SIGCHLD, NULL, &original_child);
}

static bool is_not_ignored(size_t i)
{
    return original_ending[i].sa_handler != SIG_IGN;
}

/* All ending signals get the handler, or only the one to resign. Others are as at the start. */
static void set_handlers(bool all)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < COUNT(ending); i++) {
        bool takes = all ? is_not_ignored(i) : ending[i] == SIGUSR1 && can_resign;
        sigaction(ending[i], takes ? &action : &original_ending[i], NULL);
    }
    pthread_sigmask(SIG_SETMASK, &original_mask, NULL);
}

void signals_cancel(rowlock_db *db)
{
    waiting_db = db;
    caught = 0;
    set_handlers(true);
}

void signals_start(bool resign)
{
    can_resign = resign;
    sigaction(SIGCHLD, &original_child, NULL);
    set_handlers(false);
}

/* A blocked signal is kept even if it is ignored, so ignored signals are left out. */
int signals_keep(void)
{
    sigemptyset(&kept);
    for (size_t i = 0; i < COUNT(ending); i++)
        if (is_not_ignored(i))
            sigaddset(&kept, ending[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        sigaddset(&kept, others[i]);
    pthread_sigmask(SIG_BLOCK, &kept, NULL);
    /* With an ignored SIGCHLD the kernel would drop the status of our child. */
    signal(SIGCHLD, SIG_DFL);
    return caught;
}

int signals_fd(void)
{
#ifdef __linux__
    return signalfd(-1, &kept, SFD_CLOEXEC | SFD_NONBLOCK);
#else
    return -1;
#endif
}

int signals_next(int64_t wait_ms)
{
    if (wait_ms < 0)
        wait_ms = 0;
    struct timespec wait = {.tv_sec = (time_t)(wait_ms / 1000),
                            .tv_nsec = (long)(wait_ms % 1000) * 1000000};
    int signal = sigtimedwait(&kept, NULL, &wait);
    return signal > 0 ? signal : 0;
}

int signals_pause(int64_t until_ms)
{
    for (;;) {
        int64_t left_ms = until_ms - now_ms();
        int signal = signals_next(left_ms < 1000 ? left_ms : 1000);
        if (signal_ends(signal) && !(signal == SIGUSR1 && can_resign))
            return signal;
        if (!signal && left_ms <= 0)
            return 0;
    }
}

/* ---------------------------------------------------------------- the end */

static int deadly;

int die_later(int signal)
{
    deadly = signal;
    return EXIT_SIGNAL + signal;
}

bool die_of_pipe_later(void)
{
    if (original_pipe.sa_handler == SIG_IGN)
        return false;
    die_later(SIGPIPE);
    return true;
}

/* Process number 1 survives the signal, and exits with the status. */
void die_of_signal(int status)
{
    const struct rlimit none = {0, 0};
    sigset_t set;
    if (!deadly || status != EXIT_SIGNAL + deadly)
        return;
    /* A core file would show us, not the job. */
    setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0);
#endif
    signal(deadly, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, deadly);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(deadly);
}

void signals_restore(void)
{
    signals_start(false);
    sigaction(SIGPIPE, &original_pipe, NULL);
}

int64_t wall_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool pause_until(int64_t then_ms, int fd)
{
    struct pollfd file = {.fd = fd, .events = POLLIN};
    for (int64_t left_ms; (left_ms = then_ms - now_ms()) > 0;)
        if (poll(&file, 1, left_ms < 60000 ? (int)left_ms : 60000) > 0)
            return false;
    return true;
}
