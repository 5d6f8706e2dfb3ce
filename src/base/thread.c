/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>

bool rlk_thread_start(pthread_t *out, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(out ? out : &thread, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started && !out)
        pthread_detach(thread);
    return started;
}

void rlk_thread_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

bool rlk_thread_is_this(pthread_t thread)
{
    return pthread_equal(thread, pthread_self());
}

void rlk_thread_yield(void)
{
    sched_yield();
}

void rlk_lock(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
}

void rlk_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
}

void rlk_wait_notified(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    pthread_cond_wait(condition, mutex);
}

void rlk_notify(pthread_cond_t *condition)
{
    pthread_cond_broadcast(condition);
}
