/* SPDX-License-Identifier: MIT
 * Closing, which may call everything below: what is under way ends, what is held goes back. */
#include "internal.h"

#include <pthread.h>
#include <unistd.h>

static void abandon(rowlock_lock *lock)
{
    rlk_started_end(lock);
    rlk_kept_quit(lock);
    rlk_release_quietly(lock);
    if (lock->db->pid == getpid()) /* a child shares the timer */
        rlk_watch_end(&lock->watch);
    rlk_lock_unlink(lock);
    lock->state = RLK_IDLE;
}

void rowlock_lock_close(rowlock_lock *lock)
{
    if (!lock || lock->tag != RLK_LOCK_TAG)
        return;
    if (lock->db)
        abandon(lock);
    if (lock->watch.fd >= 0)
        close(lock->watch.fd);
    lock->tag = 0;
    rlk_free(lock);
}

void rlk_db_free(rowlock_db *db)
{
    if (!db)
        return;
    bool in_child = db->pid != getpid();
    if (db->conn)
        rlk_disconnect(db, in_child);
    rlk_wake_close(db);
    rlk_texts_clear(&db->texts);
    rlk_free(db->conn);
    rlk_free(db->url);
    pthread_mutex_destroy(&db->starting);
    db->tag = 0;
    rlk_free(db);
}

void rowlock_db_close(rowlock_db *db)
{
    if (!db || db->tag != RLK_DB_TAG)
        return;
    rlk_started_stop(db);
    bool reachable = true; /* what one release could not reach, the next need not wait for */
    while (db->locks) {
        if (!reachable) {
            rowlock_lock_forget(db->locks);
            rlk_ticket_end(db, &db->locks->ticket);
        }
        abandon(db->locks);
        reachable = db->up;
    }
    rlk_onces_abandon(db);
    rlk_db_free(db);
}

void rowlock_keeper_close(rowlock_keeper *k)
{
    rowlock_db_close(rlk_keeper_stop(k));
}
