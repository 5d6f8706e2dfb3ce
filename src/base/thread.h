/* SPDX-License-Identifier: MIT
 * Threads of the library, and how they exclude each other. No other file starts, joins or locks. */
#ifndef RLK_THREAD_H
#define RLK_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* The thread blocks all signals. The application's threads handle them. out NULL: the thread is not
 * joined. False: none could be started. */
bool rlk_thread_start(pthread_t *out, void *(*run)(void *context), void *context);
void rlk_thread_join(pthread_t thread);
bool rlk_thread_is_this(pthread_t thread);
/* Others that are ready run first. */
void rlk_thread_yield(void);

void rlk_lock(pthread_mutex_t *mutex);
void rlk_unlock(pthread_mutex_t *mutex);
/* Unlocks the mutex until rlk_notify(), and locks it again. */
void rlk_wait_notified(pthread_cond_t *condition, pthread_mutex_t *mutex);
void rlk_notify(pthread_cond_t *condition);

#endif
