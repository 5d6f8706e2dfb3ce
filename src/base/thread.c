/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>

bool rlk_thread_start(pthread_t *out, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(out, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
