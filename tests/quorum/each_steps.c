/* SPDX-License-Identifier: MIT
 *
 * Steps that only a quorum sends, on one member: lift, retract, and writing down a mark. */
#include "contract.h"
#include "each.h"
#include "core/step_cells.h"
#include "core/ask.h"

static rowlock_db *db;

static bool changes(enum rlk_step step, const rowlock_value *in)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    rlk_fill(&ask, step, in, rlk_count_values(step));
    rlk_reads_answer(&ask);
    if (rlk_ask(db, &ask) != ROWLOCK_OK)
        tap_note("%s", why(db));
    return rlk_has_changed(&ask);
}

static bool retracts(const char *name, const char *owner, int64_t request, int64_t token)
{
    const rowlock_value in[] = {rowlock_text(name), rowlock_text(owner), rowlock_int(request),
                                rowlock_int(token)};
    return changes(RLK_STEP_RETRACT, in);
}

static bool lifts(const char *name, const char *owner, int64_t request, int64_t from, int64_t to,
                  const char *holder)
{
    const rowlock_value in[] = {rowlock_text(name), rowlock_text(owner), rowlock_int(request),
                                rowlock_int(from),  rowlock_int(to),     rowlock_text(holder)};
    return changes(RLK_STEP_LIFT, in);
}

/* Returns the token. 0: refused. */
static int64_t grant(const char *name, const char *owner, int64_t request)
{
    const struct rlk_request asked = {.name = name,
                                      .owner = owner,
                                      .number = request,
                                      .ttl_us = 60000000,
                                      .host = "",
                                      .program = "",
                                      .note = ""};
    struct rlk_grant grant;
    struct rlk_trying trying = {.request = &asked, .grant = &grant};
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    rlk_step_acquire(db, &ask, &trying);
    if (rlk_ask(db, &ask) != ROWLOCK_OK)
        tap_note("%s", why(db));
    return grant.outcome == RLK_GRANTED ? grant.row.token : 0;
}

static void test_retract(void)
{
    tap_is_int(grant("undone", "a", 11), 1, "a request is granted");
    tap_ok(!retracts("undone", "a", 12, 1), "another request of that owner takes nothing back");
    tap_ok(!retracts("undone", "b", 11, 1), "nor does another owner");
    tap_ok(!retracts("undone", "a", 11, 0), "nor what was sent for an earlier grant of it");
    tap_ok(retracts("undone", "a", 11, 1), "the request itself does");
    tap_is_int(grant("undone", "b", 13), 2, "so that another is granted the lock");
    OWNED(lock) rowlock_lock *lock = must_attach(db, "undone", "b", 2);
    tap_is_int(rowlock_renew(lock, 60000), ROWLOCK_OK, "its lease is renewed");
    tap_ok(!retracts("undone", "b", 13, 2), "a holder may count on it then, so it stays");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "until it is released");
}

static void test_lift(void)
{
    tap_is_int(grant("lifted", "a", 21), 1, "a member grants its own token");
    tap_ok(!lifts("lifted", "a", 21, 2, 9, "a"), "a grant with another token is not lifted");
    tap_ok(!lifts("lifted", "a", 22, 1, 9, "a"), "nor is that of another request");
    tap_ok(lifts("lifted", "a", 21, 1, 9, "a"), "the grant of this request is");
    tap_ok(retracts("lifted", "a", 21, 9), "it is given back");
    tap_is_int(grant("lifted", "top-up", 23), 10, "the next grant has a higher token");
    tap_ok(lifts("lifted", "top-up", 23, 10, 5, "a"), "a row that tops up gets the holder's token");
    OWNED(lock) rowlock_lock *lock = must_attach(db, "lifted", "a", 5);
    tap_is_int(rowlock_verify(lock), ROWLOCK_OK, "and is the holder's");
    tap_ok(!retracts("lifted", "top-up", 23, 10), "the request that made it cannot take it back");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "the holder releases it");
    tap_is_int(grant("lifted", "b", 24), 11, "and the counter has not gone back");
}

static void write_down(const char *mark)
{
    const rowlock_value in[] = {rowlock_int(1), rowlock_int(3), rowlock_text("a quorum"),
                                rowlock_int(0), rowlock_text(mark)};
    changes(RLK_STEP_MEMBER, in);
}

static void test_mark(const struct raw *raw, const char *url)
{
    static const char moved[] = "SELECT moved FROM steps_members WHERE member = 1";
    write_down("first");
    db_exec(raw, url, "UPDATE steps_members SET moved = 7");
    write_down("first");
    tap_is_int(db_int(raw, url, moved), 7, "a copy that comes late does not move a mark back");
    write_down("second");
    tap_is_int(db_int(raw, url, moved), 0, "a new mark has not moved");
}

static int run(const struct raw *raw, const char *url)
{
    /* Tables of its own: other tests raise tokens. */
    OWNED(text) char *own = url_with(url, "rowlock_prefix=steps_");
    must_install(own);
    db = must_open(own);
    test_retract();
    test_lift();
    test_mark(raw, url);
    rowlock_db_close(db);
    return tap_done();
}

EACH_MAIN(run)
