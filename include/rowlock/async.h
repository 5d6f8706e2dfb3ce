/* SPDX-License-Identifier: MIT
 *
 * rowlock: acquire in an event loop, without blocking it.
 *
 *     if (rowlock_acquire_start(lock, &options) == ROWLOCK_OK)
 *         watch(rowlock_acquire_fd(lock));            // readable when there is something to do
 *     // and when it is readable:
 *     int result = rowlock_acquire_step(lock);        // a result of rowlock_acquire(), or PENDING
 *
 * A thread of the library waits in place of yours, on every database alike. So nothing blocks your
 * loop: also no look-up of a host's name and no TLS handshake while it reconnects. The thread ends
 * with the result.
 *
 * Each acquire under way needs a rowlock_db of its own.
 *
 * A handle of a pool (rowlock/pool.h) needs no thread and one descriptor, so one loop can have
 * thousands of acquires under way, if RLIMIT_NOFILE allows so many descriptors. It goes on only
 * inside rowlock_acquire_step(): call that soon when the descriptor is readable, at least once in
 * ttl_ms / 2. Systems other than Linux use a thread there too.
 *
 * WHAT BLOCKS
 *
 *   - There is no started release. rowlock_release(), rowlock_renew(), rowlock_verify(),
 *     rowlock_db_open(), and closing a handle that holds a lock block for a round trip. While the
 *     server is away they block for longer (rowlock.h).
 *   - Renewing needs no call: let a keeper do it (options.keep).
 *   - What needs no round trip does not block: rowlock_lock_state(), rowlock_lock_remaining_ms(),
 *     rowlock_lock_token().
 *
 * Let a thread of yours release. A rowlock_db may be used by one thread after the other. With a
 * pool, the releases of many threads go together in one statement.
 *
 *     #include <pthread.h>
 *     #include <rowlock/async.h>
 *     #include <unistd.h>
 *
 *     struct job {
 *         rowlock_db *db;
 *         rowlock_lock *lock;
 *         pthread_t thread;
 *         int result, ends[2];                        // of pipe(): the loop polls ends[0]
 *     };
 *
 *     static void *let_go(void *context)
 *     {
 *         struct job *job = context;
 *         job->result = rowlock_release(job->lock);
 *         close(job->ends[1]);                        // ends[0] is readable now
 *         return NULL;
 *     }
 *
 *     // From here until ends[0] is readable, the loop must not use job->db and its locks. Then it
 *     // calls pthread_join(), reads job->result, and closes ends[0].
 *     int release_start(struct job *job)
 *     {
 *         if (pipe(job->ends) != 0)
 *             return -1;
 *         return pthread_create(&job->thread, NULL, let_go, job);
 *     }
 *
 * WHILE AN ACQUIRE IS UNDER WAY
 *
 * Until you have the result, the rowlock_db belongs to that acquire:
 *   - Calls that need the database return EMISUSE.
 *   - The lock tells nothing.
 *   - rowlock_cancel() works.
 *   - Closing the rowlock_db, or a lock of it, cancels the acquire and waits for its end.
 */
#ifndef ROWLOCK_ASYNC_H
#define ROWLOCK_ASYNC_H

#include <rowlock/rowlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rowlock_acquire_start begins to acquire the lock, and returns at once. The options and their
 * texts are copied.
 *
 * Returns
 *   ROWLOCK_OK         begun. Poll rowlock_acquire_fd().
 *   ROWLOCK_EINVAL, EMISUSE, ENOMEM    as rowlock_acquire(). Nothing was begun.
 * Round trips  0 in your thread
 * Example      examples/event_loop.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire_start(rowlock_lock *lock,
                                                         const rowlock_acquire_options *options);

/* rowlock_acquire_fd returns a descriptor for poll(): it is readable when rowlock_acquire_step()
 * has something to do. -1: nothing was begun.
 *
 * It belongs to the lock. The step that returns a result may close it, and its number may soon be
 * that of another file. With epoll, remove it before each step, and add it again after PENDING. */
ROWLOCK_API int rowlock_acquire_fd(const rowlock_lock *lock);

/* rowlock_acquire_step returns the result if there is one. It never blocks.
 *
 * Returns
 *   ROWLOCK_PENDING    not decided yet: poll again
 *   others             as rowlock_acquire(): it is over
 *   ROWLOCK_EMISUSE    nothing was begun
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire_step(rowlock_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
