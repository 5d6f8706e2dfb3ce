/* SPDX-License-Identifier: MIT
 *
 * Every allocation of the library fails in turn, while a pool is opened, used by one handle and by
 * many at once, and closed. */
#include "swarm.h"

#include "each.h"
#include "fail_alloc.h"
#include "pool/pool.h"

enum { GUESTS = 3, FAR_TOO_OFTEN = 1000 };

static const struct raw *raw;
static const char *url;

struct feast {
    int nth;
    rowlock_pool *pool;
    struct member guest[GUESTS];
    bool good;
};

static bool is_fine(struct feast *f, const char *what, int result)
{
    bool fine = result == ROWLOCK_OK || result == ROWLOCK_ENOMEM;
    if (!fine)
        tap_note("failure %d: %s gives %s", f->nth, what, rowlock_result_name(result));
    f->good = f->good && fine;
    return result == ROWLOCK_OK;
}

/* What has failed once is done again. */
static bool opens(struct feast *f, struct member *m, int number)
{
    rowlock_db_options options = *OPTIONS(db, .pool = f->pool);
    const char *name = textf("feast %d", number);
    if (!is_fine(f, "open a handle", rowlock_db_open(NULL, &options, &m->db, NULL)) && !m->db &&
        !is_fine(f, "open it again", rowlock_db_open(NULL, &options, &m->db, NULL)))
        return false;
    return is_fine(f, "open a lock", rowlock_lock_open(m->db, name, &m->lock)) ||
           is_fine(f, "open it again", rowlock_lock_open(m->db, name, &m->lock));
}

static bool does(struct feast *f, struct member *m, int (*act)(struct member *m), const char *what)
{
    return is_fine(f, what, act(m)) || is_fine(f, what, act(m));
}

static bool stand_or_have_ended(struct feast *f)
{
    int count = pool_in_line(f->pool);
    for (int i = 0; i < GUESTS; i++)
        count += f->guest[i].ended;
    return count == GUESTS;
}

static void all_do(struct feast *f, int (*act)(struct member *m), const char *what)
{
    struct rlk_pooled *conn;
    while (!(conn = rlk_line_idle(f->pool)))
        sleep_ms(1);
    for (int i = 0; i < GUESTS; i++)
        member_start(&f->guest[i], act);
    until(EVENTUALLY(stand_or_have_ended(f)), "all stand in line");
    rlk_line_give(f->pool, conn);
    for (int i = 0; i < GUESTS; i++) {
        helper_join(f->guest[i].thread);
        if (!is_fine(f, what, f->guest[i].result))
            does(f, &f->guest[i], act, what);
    }
}

/* Only an answer with texts, such as a holder's, takes memory. */
static int act_meet_holder(struct member *m)
{
    int result = act_try(m);
    return result == ROWLOCK_BUSY ? ROWLOCK_OK : result;
}

static int act_wait_briefly(struct member *m)
{
    int result = wait_lock(m->lock, SWARM_TTL_MS, 1);
    return result == ROWLOCK_TIMEOUT ? ROWLOCK_OK : result;
}

static void feast(struct feast *f)
{
    bool all = true;
    rowlock_pool_options options = *OPTIONS(pool, .connections = 1);
    if (!is_fine(f, "open a pool", rowlock_pool_open(url, &options, &f->pool, NULL)) &&
        !is_fine(f, "open it again", rowlock_pool_open(url, &options, &f->pool, NULL)))
        return;
    for (int i = 0; i < GUESTS; i++)
        all = opens(f, &f->guest[i], i) && all;
    if (all && does(f, &f->guest[0], act_try, "acquire") &&
        does(f, &f->guest[0], act_release, "release")) {
        all_do(f, act_try, "acquire together");
        all_do(f, act_renew, "renew together");
        all_do(f, act_release, "release together");
        for (int i = 0; i < GUESTS; i++)
            db_exec(raw, url,
                    "INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, "
                    "acquired, expires, ttl) VALUES ('feast %d', 0, 0, 'another', 1, 1, 1, "
                    "%s + 60000000, 1)",
                    i, raw->clock);
        all_do(f, act_meet_holder, "meet a holder together");
        does(f, &f->guest[0], act_wait_briefly, "wait");
    }
    for (int i = 0; i < GUESTS; i++)
        member_close(&f->guest[i]);
    rowlock_pool_close(f->pool);
}

static int starve(const struct raw *this, const char *given)
{
    /* The lines of C are the same for each database but in the driver (each_memory.c). So all fail
     * in turn with a file, and on servers only if the tests may take long. */
    int nth = 1, stride = has_server(this) && !getenv("ROWLOCK_TEST_LONG") ? 9 : 1;
    raw = this;
    url = given;
    fail_alloc_at(0);
    must_install(url);
    for (; nth < FAR_TOO_OFTEN; nth += stride) {
        struct feast f = {.nth = nth, .good = true};
        fail_alloc_at(nth);
        feast(&f);
        tap_ok(f.good, "memory that runs out at piece %d does no harm", nth);
        tap_is_int(fail_alloc_live(), 0, "and none is kept");
        db_exec(raw, url, "DELETE FROM rowlock_locks");
        db_exec(raw, url, "DELETE FROM rowlock_waiters");
        if (fail_alloc_asked() < nth)
            break;
    }
    tap_ok(nth > 15 && nth < FAR_TOO_OFTEN, "which were all pieces, or each ninth on a server: %d",
           (nth - 1) / stride);
    return tap_done();
}

EACH_MAIN(starve)
