/* SPDX-License-Identifier: MIT
 * Closes connections and keepers. */
#include "db/db.h"
#include "lock/keeper.h"
#include "queue/queue.h"
#include "rows/rows.h"
#include "seam/resend.h"
#include "seam/statements.h"

#include <pthread.h>
#include <unistd.h>

void rlk_db_free(rowlock_db *db)
{
    if (!db)
        return;
    bool in_child = db->pid != getpid();
    if (db->conn)
        rlk_disconnect(db, in_child);
    if (db->target.pool)
        rlk_pool_release(db->target.pool);
    rlk_wake_close(&db->waiting);
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
    /* After one release could not reach the server, the others do not wait for it. */
    bool reachable = true;
    while (db->locks) {
        if (!reachable) {
            rowlock_forget(db->locks);
            rlk_ticket_end(db, &db->locks->ticket);
        }
        rlk_lock_abandon(db->locks);
        reachable = db->up;
    }
    rlk_onces_abandon(db);
    rlk_db_free(db);
}

void rowlock_keeper_close(rowlock_keeper *k)
{
    rowlock_db_close(rlk_keeper_stop(k));
}
