/* SPDX-License-Identifier: MIT
 *
 * Telling stories; see story.h. */
#include "story.h"

struct story story;

/* ---- beginnings */

static void begin_with(rowlock_db *(*open)(void), bool jumps)
{
    story_end();
    script_reset();
    if (jumps)
        script_jump();
    story.db = open();
    story.lock = must_lock(story.db, "nightly");
}

static rowlock_db *open_plainly(void)
{
    return script_open(NULL);
}

void opened(void)
{
    begin_with(open_plainly, true);
}

void adopted(void)
{
    begin_with(script_adopt, true);
}

void ticking(void)
{
    begin_with(open_plainly, false);
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

#define DEFINE(name, result)   \
    int64_t name(int64_t with) \
    {                          \
        return result;         \
    }                          \
    int64_t name(int64_t with)

DEFINE(acquires, with ? try_lock(story.lock, with) : rowlock_acquire(story.lock, NULL));
DEFINE(renews, rowlock_renew(story.lock, with));
DEFINE(verifies, rowlock_verify(story.lock));
DEFINE(releases, rowlock_release(story.lock));
DEFINE(guards, rowlock_guard(story.lock, story.tx));
DEFINE(releases_in_tx, rowlock_tx_release(story.lock, story.tx));
DEFINE(forgets, (rowlock_forget(story.lock), 0));
DEFINE(its_token, rowlock_lock_token(story.lock));
DEFINE(its_state, (int64_t)rowlock_lock_state(story.lock));
DEFINE(remaining_ms, rowlock_lock_remaining_ms(story.lock));
DEFINE(error_kept, error_code(story.db));
DEFINE(slot_asked, script.held.slot);

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

int64_t holder_known(int64_t unused)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    return rowlock_lock_holder(story.lock, &holder);
}

int64_t new_requests(int64_t unused)
{
    int64_t changes = unused;
    for (int i = 1; i < script.request_count; i++)
        changes += script.requests[i] != script.requests[i - 1];
    return changes;
}
