/* SPDX-License-Identifier: MIT
 * Threads of the library. */
#ifndef RLK_THREAD_H
#define RLK_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* The thread blocks all signals. The application's threads handle them. False: none could be
 * started. */
bool rlk_thread_start(pthread_t *out, void *(*run)(void *context), void *context);

#endif
