/* SPDX-License-Identifier: MIT
 *
 * Telling stories; see story.h. */
#include "story.h"

struct story story;

/* ---- beginnings */

static void begin(bool jumps)
{
    story_end();
    script_reset();
    if (jumps)
        script_jump();
}

static void begin_with(rowlock_db *db)
{
    story.db = db;
    story.lock = must_lock(db, "nightly");
}

void opened_with(const rowlock_db_options *options)
{
    begin(true);
    begin_with(script_open(options));
}

void opened(void)
{
    opened_with(NULL);
}

void adopted(void)
{
    begin(true);
    begin_with(script_adopt());
}

void ticking(void)
{
    begin(false);
    begin_with(script_open(NULL));
}

void frozen(void)
{
    opened();
    script_freeze();
}

static void hold(void)
{
    if (acquires(STORY_TTL_MS) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first: %s", why(story.db));
    script_calls();
}

void holding(void)
{
    opened();
    hold();
}

void frozen_holding(void)
{
    frozen();
    hold();
}

void attached(void)
{
    opened();
    rowlock_lock_close(story.lock);
    story.lock = must_attach(story.db, "weekly", "somebody", 41);
}

void enter_transaction(void)
{
    story.tx = script_adopt();
    script.inside = true;
}

void story_end(void)
{
    script_hook(NULL);
    script.inside = false;
    rowlock_lock_close(story.lock);
    close_dbs(story.tx, story.db);
    rowlock_keeper_close(story.keeper);
    memset(&story, 0, sizeof story);
}

/* ---- rows */

static void tell_row(const struct story_row *row)
{
    if (row->begin)
        row->begin();
    script_calls();
    for (const struct story_answer *a = row->answers; a < row->answers + STORY_ANSWERS; a++)
        if (a->how != NO_ANSWER)
            (a->how == ONCE ? script_next : script_always)(a->op, a->answer);
    script_pass_ms(row->after_ms);
    if (row->call)
        tap_is_int(row->call(row->with), row->want, "%s", row->what);
    if (row->calls)
        tap_is_str(script_calls(), row->calls, "%s: what is asked", row->what);
}

void story_tell(const struct story_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tell_row(&rows[i]);
    story_end();
}

/* ---- calls and looks */

STORY_CALL(acquires, with ? try_lock(story.lock, with) : rowlock_acquire(story.lock, NULL));
STORY_CALL(renews, rowlock_renew(story.lock, with));
STORY_CALL(verifies, rowlock_verify(story.lock));
STORY_CALL(releases, rowlock_release(story.lock));
STORY_CALL(guards, rowlock_guard(story.lock, story.tx));
STORY_CALL(releases_in_tx, rowlock_tx_release(story.lock, story.tx));
STORY_CALL(forgets, (rowlock_forget(story.lock), 0));
STORY_CALL(its_token, rowlock_lock_token(story.lock));
STORY_CALL(its_state, rowlock_lock_state(story.lock));
STORY_CALL(remaining_ms, rowlock_lock_remaining_ms(story.lock));
STORY_CALL(error_kept, error_code(story.db));
STORY_CALL(holder_known, rowlock_lock_holder(story.lock, &(rowlock_grant)ROWLOCK_GRANT_INIT));
STORY_CALL(slot_asked, script.held.slot);

int64_t closes(int64_t unused)
{
    rowlock_lock_close(story.lock);
    story.lock = must_lock(story.db, "nightly");
    return unused;
}

int64_t closes_db(int64_t unused)
{
    rowlock_db_close(story.db);
    story.db = NULL;
    return unused;
}

int64_t closes_keeper(int64_t unused)
{
    rowlock_keeper_close(story.keeper);
    story.keeper = NULL;
    return unused;
}

int64_t new_requests(int64_t unused)
{
    int64_t changes = 0;
    for (int i = 1; i < script.request_count; i++)
        changes += script.requests[i] != script.requests[i - 1];
    return changes;
}

/* ---- handles of which nothing can be asked */

const char *accepted(rowlock_db *db, rowlock_lock *lock, const char *but)
{
    rowlock_lock *made = (rowlock_lock *)&made, *attached_one = made;
    const struct {
        const char *call;
        long long got, want;
    } calls[] = {
        {"acquire", rowlock_acquire(lock, NULL), ROWLOCK_EMISUSE},
        {"renew", rowlock_renew(lock, 0), ROWLOCK_EMISUSE},
        {"verify", rowlock_verify(lock), ROWLOCK_EMISUSE},
        {"release", rowlock_release(lock), ROWLOCK_EMISUSE},
        {"lock_open", rowlock_lock_open(db, "x", &made), ROWLOCK_EMISUSE},
        {"lock_attach", rowlock_lock_attach(db, "x", "me", 1, &attached_one), ROWLOCK_EMISUSE},
        {"install", rowlock_install(db), ROWLOCK_EMISUSE},
        {"check", rowlock_check(db, NULL, NULL, NULL), ROWLOCK_EMISUSE},
        {"list", rowlock_list(db, NULL, ignore_grant, NULL), ROWLOCK_EMISUSE},
        {"last_grant", rowlock_last_grant(db, "x", NULL, NULL), ROWLOCK_EMISUSE},
        {"sweep", rowlock_sweep(db, NULL, NULL), ROWLOCK_EMISUSE},
        {"break", rowlock_break(db, "x", 0, NULL), ROWLOCK_EMISUSE},
        {"fence", rowlock_fence(db, "x", 1), ROWLOCK_EMISUSE},
        {"raise_tokens", rowlock_raise_tokens(db, 1, NULL), ROWLOCK_EMISUSE},
        {"acquire_all", rowlock_acquire_all(&lock, 1, NULL, NULL), ROWLOCK_EMISUSE},
        {"acquire_start", rowlock_acquire_start(lock, NULL), ROWLOCK_EMISUSE},
        {"async step", rowlock_acquire_step(lock), ROWLOCK_EMISUSE},
        {"async fd", rowlock_acquire_fd(lock), -1},
        {"list_waiters", rowlock_list_waiters(db, NULL, ignore_waiter, NULL), ROWLOCK_EMISUSE},
        {"lock_state", rowlock_lock_state(lock), ROWLOCK_STATE_NONE},
        {"state_fd", rowlock_lock_state_fd(lock), -1},
        {"token", rowlock_lock_token(lock), 0},
        {"expires_us", rowlock_lock_expires_us(lock), 0},
        {"remaining_ms", rowlock_lock_remaining_ms(lock), 0},
    };
    for (int i = 0; i < COUNT(calls); i++)
        if (calls[i].got != calls[i].want &&
            (!but || strncmp(calls[i].call, but, strlen(but)) != 0))
            return calls[i].call;
    return made || attached_one ? "a handle that is not NULL" : NULL;
}
