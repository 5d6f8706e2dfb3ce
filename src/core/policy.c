/* SPDX-License-Identifier: MIT
 * When an ask is sent again: after a lost race, after a lost answer, while a server is away. */
#include "core/policy.h"

#include "base/wait.h"

enum {
    /* Reconnecting ends in time, also if the connect timeout is longer. An attempt that begins at
     * its very end has this long. */
    LAST_ATTEMPT_US = 1000000,
    /* An upgrade on MySQL drops a routine before it creates it anew. A step whose routine is
     * missing is sent again for so long. */
    REMADE_US = 500000
};

int64_t rlk_attempt_end(const struct rlk_ask *ask, int64_t from_us, int64_t after_us)
{
    int64_t last_us = from_us + LAST_ATTEMPT_US;
    if (ask->away_until_us > last_us)
        last_us = ask->away_until_us;
    int64_t end_us = from_us + after_us;
    if (ask->away_until_us && last_us < end_us)
        end_us = last_us;
    return ask->not_after_us && ask->not_after_us < end_us ? ask->not_after_us : end_us;
}

bool rlk_is_patient(const rowlock_db *db, const struct rlk_ask *ask)
{
    return ask->patient_until_us && db->reconnect_us > 0 && !db->adopted;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The end of reconnecting after the first failure. A server that was never seen to take writes may
 * be the wrong one for good, so only a waiter waits for that. */
static int64_t reconnect_end(const rowlock_db *db, const struct rlk_ask *ask, enum rlk_class class,
                             int64_t now_us)
{
    int64_t until_us = rlk_attempt_end(ask, now_us, db->reconnect_us);
    if (db->adopted)
        return 0;
    if (class == RLK_STANDBY && !db->takes_writes)
        until_us = 0;
    return rlk_is_patient(db, ask) ? later(ask->patient_until_us, until_us) : until_us;
}

/* The end of sending again after a lost race. A waiter whose answer was lost waits on: what is in
 * the way may be its first attempt, or transactions that wait for a standby. So does one that only
 * looks at the tables: there is no other turn for it. */
static int64_t contention_end(const rowlock_db *db, const struct rlk_ask *ask,
                              const struct rlk_call *call)
{
    bool sooner = ask->contention_us && ask->contention_us < db->statement_us;
    int64_t after_us = sooner ? ask->contention_us : db->statement_us;
    int64_t until_us = rlk_attempt_end(ask, ask->sent_us, call->no_routine ? REMADE_US : after_us);
    bool looks = ask->step == RLK_STEP_NONE;
    bool waits = (ask->was_uncertain || looks) && rlk_is_patient(db, ask);
    return waits ? later(ask->patient_until_us, until_us) : until_us;
}

/* Until when it is sent again after this failure. 0: it is not. Time spent reconnecting does not
 * count as contention. */
static int64_t resend_end(const rowlock_db *db, const struct rlk_ask *ask, enum rlk_class class,
                          const struct rlk_call *call, struct rlk_again *again, int64_t now_us)
{
    again->passing = rlk_is_away(class) || class == RLK_CONTENTION || call->no_routine;
    if (!again->passing)
        return 0;
    if (!rlk_is_away(class)) {
        if (!again->contention_until)
            again->contention_until = contention_end(db, ask, call);
        return again->contention_until;
    }
    again->contention_until = 0;
    if (!again->reconnect_until) {
        again->reconnect_until = reconnect_end(db, ask, class, now_us);
        again->attempts_until =
            later(ask->sent_us + db->statement_us + db->reconnect_us, again->reconnect_until);
    }
    again->garbled = call->garbled ? again->garbled + 1 : 0;
    again->passing = again->garbled < RLK_GARBLED_MOST;
    return again->passing ? again->reconnect_until : 0;
}

/* The pause before it is sent again. 0: no time is left for that. A waiter sends it once more just
 * before the end of its wait. */
static int64_t pause_to_resend(rowlock_db *db, const struct rlk_ask *ask, struct rlk_again *again,
                               bool away, int64_t until_us, int64_t now_us)
{
    int64_t left_us = until_us - now_us;
    int64_t pause_us = rlk_pause_retry(&db->waiting, &again->tries);
    bool patient = (away || db->away_us) && rlk_is_patient(db, ask);
    if (patient && db->away_us && now_us - db->away_us > db->reconnect_us)
        pause_us = rlk_pause_away(&db->waiting);
    if (patient && pause_us >= left_us)
        pause_us = left_us - 1;
    return pause_us > 0 && pause_us < left_us ? pause_us : 0;
}

/* An ask inside a transaction is not sent again, since its failure may have ended the transaction.
 * Says so in the call, for the meaning of the failure. */
static bool is_inside(const rowlock_db *db, const struct rlk_ask *ask, enum rlk_class class,
                      struct rlk_call *call)
{
    bool ends = ask->frame == RLK_COMMIT;
    /* It was inside until the connection was lost. */
    if ((ask->where == RLK_INSIDE || db->tx) && rlk_is_gone(class))
        call->inside = true;
    /* After contention the transaction was rolled back. Otherwise its end is unknown. */
    if (ends)
        call->inside = class == RLK_CONTENTION;
    return call->inside || ends;
}

enum rlk_next rlk_again_next(rowlock_db *db, struct rlk_ask *ask, struct rlk_again *again,
                             enum rlk_class class, struct rlk_call *call, int64_t now_us)
{
    again->passing = false;
    ask->away_until_us = 0;
    if (class == RLK_DONE || is_inside(db, ask, class, call))
        return RLK_END;
    /* Only the driver has looked at the tables. If our own look finds nothing wrong, it is sent
     * again at once. */
    if (class == RLK_SCHEMA && call->trusted && !call->no_routine)
        return RLK_ASK;
    bool away = rlk_is_away(class);
    int64_t until_us = resend_end(db, ask, class, call, again, now_us);
    ask->away_until_us = away ? again->attempts_until : 0;
    again->pause_us = pause_to_resend(db, ask, again, away, until_us, now_us);
    return again->pause_us ? RLK_WAIT : RLK_END;
}
