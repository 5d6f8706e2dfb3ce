/* SPDX-License-Identifier: MIT
 *
 * rowlock: do what is asked for twice only once.
 *
 * A key says what was asked for: an order's number, the day of a nightly job. The first client
 * claims the key, does the work and completes the key with a result. Later clients with the same
 * key get that result. Keys stay in the table until they are swept by age.
 *
 *     rowlock_once *once = NULL;
 *     int result = rowlock_once_claim(db, "order 1234", NULL, &once);
 *     if (result == ROWLOCK_OK) {
 *         charge();
 *         result = rowlock_once_complete(once, db, "receipt 77", 10);
 *     } else if (result == ROWLOCK_DONE) {
 *         answer(rowlock_once_result(once, &length));
 *     }
 *     rowlock_once_close(once);
 */
#ifndef ROWLOCK_ONCE_H
#define ROWLOCK_ONCE_H

#include <rowlock/rowlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A claim, or the result of a key that is done. */
typedef struct rowlock_once rowlock_once;

typedef struct rowlock_once_options {
    /* sizeof(rowlock_once_options) */
    size_t size;
    /* What is asked for, up to 255 bytes. The same key with another fingerprint is a MISMATCH.
     * NULL: none. */
    const char *fingerprint;
    /* How long the claim counts as in progress if it is not completed. 0: 60,000. */
    int64_t ttl_ms;
    /* The token of an exclusive lock that every client holds when it claims this key. A claim in
     * progress with the same fingerprint and a smaller token is taken over at once: its client no
     * longer holds the lock. 0: none. */
    int64_t token;
} rowlock_once_options;

#define ROWLOCK_ONCE_OPTIONS_INIT                       \
    {                                                   \
        sizeof(rowlock_once_options), ROWLOCK_NIL, 0, 0 \
    }

/* rowlock_once_claim claims the key, 1-255 bytes of UTF-8.
 *
 * Returns
 *   ROWLOCK_OK         the key is new, was given back, or was taken over. Do the work, then
 *                      complete. Close *out.
 *   ROWLOCK_DONE       the work was done before. rowlock_once_result() has the result. Close *out.
 *   ROWLOCK_BUSY       another client claimed it, and its time is not over. *out is NULL.
 *   ROWLOCK_MISMATCH   the key was used with another fingerprint. *out is NULL. This stays so until
 *                      the key is swept or forgotten, also when the time of the claim is over.
 * Guarantees
 *   - Outside a transaction it is a commit of its own.
 *   - In your transaction on an adopted connection it lasts if you commit. Other clients that claim
 *     the key meanwhile wait for that.
 * Round trips  2
 * Example      docs/VERSIONS.md, examples/once.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_claim(rowlock_db *db, const char *key,
                                                      const rowlock_once_options *options,
                                                      rowlock_once **out);

/* rowlock_once_complete says that the work is done, and stores a result of up to 65,535 bytes.
 *
 *   - tx: the rowlock_db in whose transaction the work was done. Or db itself: then it is a commit
 *     of its own.
 *
 * Returns
 *   ROWLOCK_OK         done, if the transaction commits. The same claim may be completed again: the
 *                      new result replaces the old one. (A transaction may have been rolled back.)
 *   ROWLOCK_LOST       the claim is gone. Roll back. Its time was over, or a later holder of the
 *                      lock came, and another client claimed the key; or it was swept or forgotten;
 *                      or you gave it back.
 *   ROWLOCK_CONFLICT   your transaction lost against another, or its snapshot is older than the
 *                      claim (PostgreSQL above READ COMMITTED). Roll back and do the work again:
 *                      the claim is as it was.
 *   ROWLOCK_EMISUSE    the key was DONE when it was claimed, or its rowlock_db is closed
 * Round trips  1; PostgreSQL: up to 3 if it is LOST in your transaction
 * Example      examples/once.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_complete(rowlock_once *once, rowlock_db *tx,
                                                         const void *result, size_t length);

/* rowlock_once_abandon gives the key back: the work was not done, and another client may claim the
 * key.
 *   - pause_ms: for how long others with the same fingerprint get BUSY. 0: none. At most 366 days.
 *   - why: up to 65,535 bytes. rowlock_once_list() shows them until the key is completed. NULL:
 *     none.
 *   - Without both the key is removed. Else it stays, with token 0, until it is claimed or swept.
 *
 * Returns
 *   ROWLOCK_OK         the claim is no longer in progress. If it was completed, the key stays done.
 *                      If another client took it over, it stays that client's.
 *   ROWLOCK_EMISUSE    as rowlock_once_complete()
 * Round trips  1
 * Example      examples/once.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_abandon(rowlock_once *once, int64_t pause_ms,
                                                        const void *why, size_t length);

/* rowlock_once_result returns the stored result if the claim returned DONE.
 *   - The memory belongs to the handle.
 *   - A result without bytes: a pointer that is not NULL, and *length is 0. length may be NULL.
 *   - NULL if the claim did not return DONE, also after you completed it. */
ROWLOCK_API const void *rowlock_once_result(const rowlock_once *once, size_t *length);

/* rowlock_once_close frees the handle and changes nothing in the database. A claim that was neither
 * completed nor abandoned stays in progress until its time is over. After its rowlock_db was closed
 * only rowlock_once_result() works. NULL does nothing. */
ROWLOCK_API void rowlock_once_close(rowlock_once *once);

/* ---------------------------------------------------------------- administration */

/* A key as it is in the table. Times are microseconds since 1970 by the database's clock. */
typedef struct rowlock_once_record {
    /* sizeof(rowlock_once_record) */
    size_t size;
    /* The token of the lock under which it was claimed. 0: none, or it was given back. */
    int64_t token;
    /* When it was completed or given back, else when it was claimed. */
    int64_t changed_us;
    /* How long ago that was, when the database answered. */
    int64_t age_ms;
    /* What is left to a claim in progress, or to a pause. Below 0: its time is over. */
    int64_t remaining_ms;
    /* 1: completed. 0: claimed. */
    int done;
    /* The bytes of result. -1: there is none, or it is longer than fits. */
    int result_length;
    char key[256];
    char fingerprint[256];
    /* Of a completed key its result. Of another why it was given back, perhaps before it was
     * claimed again. It may have any bytes, and none ends it. */
    char result[512];
} rowlock_once_record;

/* rowlock_once_list calls each() for every key that begins with prefix, in the order of their
 * bytes.
 *   - prefix NULL: all keys
 *   - each() stops the list by returning a number other than 0. It must not use db. It must return
 *     (rowlock.h).
 *
 * Round trips  1 for each 500 keys
 * Example      examples/once.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_once_list(rowlock_db *db, const char *prefix,
                  int (*each)(void *context, const rowlock_once_record *record), void *context);

/* rowlock_once_forget removes one key, done or in progress. It can be claimed again for anything.
 *   - token: above 0, the key stays if it is done, or was claimed under this token or a larger one.
 *     So a later holder of a lock frees what an earlier one has left.
 *
 * Returns
 *   ROWLOCK_OK         removed. If it was in progress, completing it returns LOST.
 *   ROWLOCK_NONE       there is no such key
 * Round trips  1
 * Example      examples/once.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_forget(rowlock_db *db, const char *key,
                                                       int64_t token);

/* rowlock_once_sweep removes keys that were completed longer ago than older_ms, and claims that
 * were made longer ago, were never completed, and whose time is over. A client that completes such
 * a claim later finds LOST.
 *   - batch: keys removed in one transaction. 0: 500.
 *   - *removed: how many. removed may be NULL.
 *
 * Round trips  1 for each batch
 * Example      examples/once.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_sweep(rowlock_db *db, int64_t older_ms, int batch,
                                                      int64_t *removed);

#ifdef __cplusplus
}
#endif
#endif
