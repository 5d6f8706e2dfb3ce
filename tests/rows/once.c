/* SPDX-License-Identifier: MIT
 *
 * Keys that say what was asked for, so that asking twice does it once: what each client that claims one is
 * told, in whose transaction it is completed, what is taken over, and what is swept. */
#include "scene.h"
#include "tables.h"

enum { CLAIMS = 4, CONTESTS = 15, RESULT_MAX = 65535, DAY_S = 86400 };

/* Two with a connection each, and an application that has lent us its own. */
enum who { ONE, TWO, APP };

struct asking {
    struct site site, app;
    rowlock_db *other;
    rowlock_once *handles[4];
    struct helper *helper;
};

static struct asking ask_open(const struct contract *c)
{
    struct asking a = {.site = site_open(c), .app = site_adopt(c), .other = must_open(c->url)};
    site_run(&a.site, "DELETE FROM rowlock_once");
    site_run(&a.site, "DELETE FROM once_work");
    site_run(&a.site, "INSERT INTO once_work VALUES (1)");
    return a;
}

static void ask_close(struct asking *a)
{
    for (int h = 0; h < COUNT(a->handles); h++)
        rowlock_once_close(a->handles[h]);
    rowlock_db_close(a->other);
    site_close(&a->app);
    site_close(&a->site);
}

static rowlock_db *db_of(const struct asking *a, enum who who)
{
    return who == ONE ? a->site.db : who == TWO ? a->other : a->app.db;
}

static rowlock_once_options once_about(const char *fingerprint, int64_t ttl_ms)
{
    return *OPTIONS(once, .fingerprint = fingerprint, .ttl_ms = ttl_ms);
}

static rowlock_once *claim_as(rowlock_db *db, const char *key, const rowlock_once_options *o,
                              int want, const char *what)
{
    rowlock_once *once = (rowlock_once *)(uintptr_t)1; /* to be overwritten */
    is_result(db, rowlock_once_claim(db, key, o, &once), want, "%s", what);
    bool given = want == ROWLOCK_OK || want == ROWLOCK_DONE;
    tap_ok((once != NULL) == given, "%s", given ? "a handle is given" : "no handle is given");
    return once;
}

static rowlock_once *claim(rowlock_db *db, const char *key, const char *fingerprint, int want,
                           const char *what)
{
    rowlock_once_options o = once_about(fingerprint, 0);
    return claim_as(db, key, &o, want, what);
}

static void result_is(const rowlock_once *once, const void *want, size_t want_length,
                      const char *what)
{
    size_t length = 12345;
    const void *got = rowlock_once_result(once, &length);
    tap_ok(got && length == want_length && memcmp(got, want, length) == 0, "%s", what);
}

/* In a thread of its own, and waits. */
static int claim_and_wait(void *argument)
{
    const struct asking *a = argument;
    OWNED(db) rowlock_db *db = must_open(a->site.c->url);
    OWNED(once) rowlock_once *once = NULL;
    rowlock_once_options o = once_about("x", 0);
    return rowlock_once_claim(db, "key", &o, &once);
}

/* ---- plays: what each is told, step by step */

enum act {
    CLAIM,
    COMPLETE,
    RETRY, /* completes handle 1, at the second attempt */
    ABANDON,
    FORGET,
    RESULT, /* of a handle: it is as it was */
    CLOSE, /* the connection of the client that acts */
    ASK, /* a client claims in a thread, and waits for APP's transaction */
    TOLD, /* and is told */
    COUNT_ROWS /* of the table that is called as the key */
};

/* For one key, where none is said. */
struct step {
    const char *what;
    enum who who;
    enum act act;
    int h; /* handle: where a claim puts it, 0: it is closed at once */
    const char *key, *as; /* and the fingerprint */
    const char *result; /* to be stored, or found in what is done */
    int64_t token, ttl_ms;
    int want; /* result, or number of rows */
    bool may_be_seen; /* but not on PostgreSQL: what came after the snapshot, and so no conflict */
    bool late; /* before: the time of all claims is over */
    bool snapshot; /* before: APP begins a transaction that sees what was there by now */
    const char *before, *after; /* SQL of APP */
};

static void no_result(const rowlock_once *once)
{
    size_t length = 12345;
    tap_ok(!rowlock_once_result(once, &length) && length == 0, "it has no result of its own");
}

static void is_told(const struct asking *a, const struct step *s, int result)
{
    rowlock_db *db = db_of(a, s->who);
    int seen = s->act == CLAIM ? ROWLOCK_DONE : ROWLOCK_OK;
    bool is_seen = s->may_be_seen && !is_postgres(a->site.c) && result == seen;
    is_result(db, result, is_seen ? seen : s->want, "%s", s->what);
    if (s->who == APP)
        tap_is_int(error_of(db).transaction_over, result == ROWLOCK_CONFLICT,
                   "a conflict ends the transaction, and nothing else does");
}

static void play_claim(struct asking *a, const struct step *s, const char *key)
{
    rowlock_once_options o = once_about(s->as, s->ttl_ms);
    rowlock_once *once = (rowlock_once *)(uintptr_t)1; /* to be overwritten */
    o.token = s->token;
    int result = rowlock_once_claim(db_of(a, s->who), key, &o, &once);
    is_told(a, s, result);
    tap_ok((once != NULL) == (result == ROWLOCK_OK || result == ROWLOCK_DONE),
           "a handle is given if it is ours, or done");
    if (result == ROWLOCK_OK)
        no_result(once);
    if (result == ROWLOCK_DONE && s->result)
        result_is(once, s->result, strlen(s->result), "with what was stored");
    rowlock_once_close(s->h ? a->handles[s->h] : once);
    a->handles[s->h] = s->h ? once : NULL;
}

static int complete_at_second(void *context, const rowlock_attempt *attempt)
{
    const struct asking *a = context;
    int result = rowlock_once_complete(a->handles[1], a->site.db, "r", 1);
    return result == ROWLOCK_OK && attempt->number == 1 ? ROWLOCK_STALE : result;
}

static void play_act(struct asking *a, const struct step *s)
{
    const char *key = s->key ? s->key : "key";
    rowlock_db *db = db_of(a, s->who);
    rowlock_once *once = a->handles[s->h];
    size_t length = s->result ? strlen(s->result) : 0;
    switch (s->act) {
    case CLAIM:
        play_claim(a, s, key);
        break;
    case COMPLETE:
        is_told(a, s, rowlock_once_complete(once, db, s->result, length));
        if (s->want == ROWLOCK_OK)
            no_result(once);
        break;
    case RETRY:
        is_told(a, s, rowlock_retry(db, complete_at_second, a, NULL, NULL));
        break;
    case ABANDON:
        is_told(a, s, rowlock_once_abandon(once, 0, NULL, 0));
        break;
    case FORGET:
        is_told(a, s, rowlock_once_forget(db, key, 0));
        break;
    case RESULT:
        result_is(once, s->result, length, s->what);
        break;
    case CLOSE:
        rowlock_db_close(a->other);
        a->other = NULL;
        break;
    case ASK:
        a->helper = helper_start(claim_and_wait, a);
        tap_ok(!a->site.c->has_server || somebody_waits(a->site.c), "%s", s->what);
        break;
    case TOLD:
        tap_is_result(helper_join(a->helper), s->want, "%s", s->what);
        break;
    case COUNT_ROWS:
        tap_is_int(raw_int(a->site.c->raw, s->who == APP ? a->app.session : a->site.look,
                           "SELECT count(*) FROM %s", key),
                   s->want, "%s", s->what);
    }
}

static void play(const struct contract *c, const struct step *s)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    for (; s->what; s++) {
        if (s->late)
            site_run(&a.site, "UPDATE rowlock_once SET expires = 1");
        if (s->snapshot) {
            begin_at(c, a.app.session, is_sqlite(c) ? "" : "REPEATABLE READ");
            raw_int(c->raw, a.app.session, "SELECT count(*) FROM once_work");
        }
        if (s->before)
            raw_run(c->raw, a.app.session, "%s", s->before);
        play_act(&a, s);
        if (s->after)
            raw_run(c->raw, a.app.session, "%s", s->after);
    }
}

#define K15 "kkkkkkkkkkkkkkk"
#define K255 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15 K15

enum { BUSY = ROWLOCK_BUSY, DONE = ROWLOCK_DONE, LOST = ROWLOCK_LOST, OTHER = ROWLOCK_MISMATCH };

static const struct step plays[] = {
    {"a new key", ONE, CLAIM, .h = 1, .as = "buy 1"},
    {"it is in progress for another", TWO, CLAIM, .as = "buy 1", .want = BUSY},
    {"and for the client that claimed it", ONE, CLAIM, .as = "buy 1", .want = BUSY},
    {"for something else it cannot be used", TWO, CLAIM, .as = "buy 2", .want = OTHER},
    {"nor for nothing", TWO, CLAIM, .want = OTHER},
    {"nor for less", TWO, CLAIM, .as = "buy ", .want = OTHER},
    {"nor for more", TWO, CLAIM, .as = "buy 12", .want = OTHER},
    {"another key is another", TWO, CLAIM, .key = "key 2", .as = "buy 1"},
    {"it is completed", ONE, COMPLETE, .h = 1, .result = "x"},
    {"completed again it gets another result", ONE, COMPLETE, .h = 1, .result = "yes"},
    {"a client that asks again is told", TWO, CLAIM, .h = 2, .as = "buy 1", .result = "yes",
     .want = DONE},
    {"it cannot be completed again", TWO, COMPLETE, .h = 2, .result = "x", .want = ROWLOCK_EMISUSE},
    {"nor given back", TWO, ABANDON, .h = 2, .want = ROWLOCK_EMISUSE},
    {"and is as it was", TWO, RESULT, .h = 2, .result = "yes"},
    {"it is done, but not for something else", TWO, CLAIM, .as = "buy 2", .want = OTHER},
    {0},
    {"a new key", ONE, CLAIM, .h = 1, .as = "x"},
    {"it is given back", ONE, ABANDON, .h = 1},
    {"anybody may have it at once", TWO, CLAIM, .h = 2, .as = "y"},
    {"the client that gave it back cannot complete it", ONE, COMPLETE, .h = 1, .want = LOST},
    {"to give it back again is harmless", ONE, ABANDON, .h = 1},
    {"to the other, too", ONE, CLAIM, .as = "y", .want = BUSY},
    {"which completes it", TWO, COMPLETE, .h = 2, .result = "y"},
    {"to give back what is done is harmless", TWO, ABANDON, .h = 2},
    {"it stays done", TWO, CLAIM, .as = "y", .result = "y", .want = DONE},
    {0},
    {"a key of 256 bytes", ONE, CLAIM, .key = K255 "k", .want = ROWLOCK_EINVAL},
    {"a fingerprint of as many", ONE, CLAIM, .as = K255 "k", .want = ROWLOCK_EINVAL},
    {"an empty key", ONE, CLAIM, .key = "", .want = ROWLOCK_EINVAL},
    {"one that is no UTF-8", ONE, CLAIM, .key = "\xff", .want = ROWLOCK_EINVAL},
    {"a time below nothing", ONE, CLAIM, .ttl_ms = -1, .want = ROWLOCK_EINVAL},
    {"a token below nothing", ONE, CLAIM, .token = -1, .want = ROWLOCK_EINVAL},
    {"255 bytes of each", ONE, CLAIM, .key = K255, .as = K255},
    {"are found again", TWO, CLAIM, .key = K255, .as = K255, .want = BUSY},
    {"a small letter", ONE, CLAIM, .key = "key"},
    {"is not a capital one", ONE, CLAIM, .key = "Key"},
    {"nor is a blank nothing", ONE, CLAIM, .key = "key "},
    {0},
    {"a claim of short time", ONE, CLAIM, .h = 1, .as = "x"},
    {"it is still no other's", TWO, CLAIM, .as = "y", .want = OTHER, .late = true},
    {"its time is over: taken over", TWO, CLAIM, .h = 2, .as = "x"},
    {"the first cannot complete it", ONE, COMPLETE, .h = 1, .result = "1", .want = LOST},
    {"nor give away", ONE, ABANDON, .h = 1},
    {"what is the second's", ONE, CLAIM, .as = "x", .want = BUSY},
    {"which completes it", TWO, COMPLETE, .h = 2, .result = "2"},
    {"and for all it is done as the second said", ONE, CLAIM, .as = "x", .result = "2",
     .want = DONE},
    {0},
    /* A claim that ran out, but that no other wanted, is not lost. */
    {"a claim of short time", ONE, CLAIM, .h = 1, .as = "x"},
    {"late, but no other client came", ONE, COMPLETE, .h = 1, .result = "1", .late = true},
    {"it is done", TWO, CLAIM, .as = "x", .result = "1", .want = DONE},
    {0},
    /* The present holder of the lock takes over from an earlier one, and not the other way round. */
    {"a claim under a lock", ONE, CLAIM, .h = 1, .as = "x", .token = 6},
    {"it is in progress", TWO, CLAIM, .as = "x", .want = BUSY},
    {"also for an earlier holder of the lock", TWO, CLAIM, .as = "x", .token = 5, .want = BUSY},
    {"and under the same token", TWO, CLAIM, .as = "x", .token = 6, .want = BUSY},
    {"for something else none is taken over", TWO, CLAIM, .as = "y", .token = 8, .want = OTHER},
    {"a later holder takes it", TWO, CLAIM, .h = 2, .as = "x", .token = 7},
    {"the first cannot complete it", ONE, COMPLETE, .h = 1, .result = "1", .want = LOST},
    {"nor get it back", ONE, CLAIM, .as = "x", .token = 6, .want = BUSY},
    {"the later one can", TWO, COMPLETE, .h = 2, .result = "2"},
    {"what is done is not taken over, and stays as it was", ONE, CLAIM, .as = "x", .token = 9,
     .result = "2", .want = DONE},
    {"a claim without a lock", ONE, CLAIM, .key = "free", .as = "x"},
    {"is not taken over by a client that has one", TWO, CLAIM, .key = "free", .as = "x", .token = 9,
     .want = BUSY},
    {0},
    /* In the application's transaction. */
    {"claimed by a connection", ONE, CLAIM, .h = 1},
    {"completed in another's transaction", APP, COMPLETE, .h = 1, .result = "1", .before = "BEGIN",
     .after = "ROLLBACK"},
    {"which was rolled back: it is not done", TWO, CLAIM, .want = BUSY},
    {"once more", APP, COMPLETE, .h = 1, .result = "2", .before = "BEGIN", .after = "COMMIT"},
    {"committed: it is done", TWO, CLAIM, .result = "2", .want = DONE},
    {0},
    {"claimed", ONE, CLAIM, .h = 1, .token = 1},
    {"and taken over", TWO, CLAIM, .h = 2, .token = 2},
    {"there is work", APP, COUNT_ROWS, .key = "once_work", .want = 1, .before = "BEGIN",
     .after = "DELETE FROM once_work"},
    {"the transaction in which it was done is told", APP, COMPLETE, .h = 1, .want = LOST},
    {"and may go on, as it was", APP, COUNT_ROWS, .key = "once_work", .want = 0,
     .after = "ROLLBACK"},
    {"it is rolled back by the session that began it", ONE, COUNT_ROWS, .key = "once_work",
     .want = 1},
    {0},
    {"claimed inside a transaction", APP, CLAIM, .as = "x", .before = "BEGIN", .after = "ROLLBACK"},
    {"rolled back it was never claimed", APP, CLAIM, .h = 1, .as = "x", .before = "BEGIN"},
    {"claimed and completed in one", APP, COMPLETE, .h = 1, .result = "r",
     .before = "DELETE FROM once_work", .after = "COMMIT"},
    {"the next transaction is told", APP, CLAIM, .as = "x", .result = "r", .want = DONE,
     .before = "BEGIN"},
    {"for something else, too", APP, CLAIM, .as = "y", .want = OTHER,
     .after = "INSERT INTO once_work VALUES (1)"},
    {"and goes on", ONE, COUNT_ROWS, .key = "once_work", .want = 1, .before = "COMMIT"},
    {0},
    /* A client that claims a key that an open transaction has claimed waits for what becomes of that. */
    {"claimed, not yet committed", APP, CLAIM, .h = 1, .as = "x", .before = "BEGIN"},
    {"completed", APP, COMPLETE, .h = 1, .result = "r"},
    {"another waits for that", ONE, ASK, .after = "COMMIT"},
    {"the commit makes it done", ONE, TOLD, .want = DONE},
    {0},
    {"claimed, not yet committed", APP, CLAIM, .h = 1, .as = "x", .before = "BEGIN"},
    {"completed", APP, COMPLETE, .h = 1, .result = "r"},
    {"another waits for that", ONE, ASK, .after = "ROLLBACK"},
    {"the rollback makes it the other's", ONE, TOLD, .want = ROWLOCK_OK},
    {0},
    /* None has the key any more. To look for it makes no key of that name. */
    {"claimed", ONE, CLAIM, .h = 1},
    {"and given back", ONE, ABANDON, .h = 1},
    {"it is lost, though no client claimed it", APP, COMPLETE, .h = 1, .result = "1", .want = LOST,
     .snapshot = true, .after = "COMMIT"},
    {"and leaves no key", ONE, COUNT_ROWS, .key = "rowlock_once", .want = 0},
    {0},
    {"claimed", ONE, CLAIM, .h = 1},
    {"completed where it was tried again", ONE, RETRY, .want = ROWLOCK_OK},
    {"it is done", TWO, CLAIM, .result = "r", .want = DONE},
    {0},
    {"claimed", TWO, CLAIM, .h = 1},
    {"and completed", TWO, COMPLETE, .h = 1, .result = "r"},
    {"seen by another", TWO, CLAIM, .h = 2, .result = "r", .want = DONE},
    {"another one", TWO, CLAIM, .h = 3, .key = "open"},
    {"closed", TWO, CLOSE, .want = ROWLOCK_OK},
    {"it is not completed after its connection was closed", ONE, COMPLETE, .h = 3, .result = "r",
     .want = ROWLOCK_EMISUSE},
    {"nor given back", ONE, ABANDON, .h = 3, .want = ROWLOCK_EMISUSE},
    {"a result stays until it is closed itself", TWO, RESULT, .h = 2, .result = "r"},
    {0},
    {"a key", TWO, CLAIM, .h = 1, .as = "f"},
    {"it is done", TWO, COMPLETE, .h = 1, .result = "x"},
    {"another is not known", TWO, FORGET, .key = "ke", .want = ROWLOCK_NONE},
    {"it is forgotten", TWO, FORGET, .want = ROWLOCK_OK},
    {"once", TWO, FORGET, .want = ROWLOCK_NONE},
    {"it can be claimed for something else", TWO, CLAIM, .h = 1, .as = "g"},
    {"and forgotten meanwhile", TWO, FORGET, .want = ROWLOCK_OK},
    {"which completing it finds", TWO, COMPLETE, .h = 1, .result = "x", .want = LOST},
    {"a key has a byte at least", TWO, FORGET, .key = "", .want = ROWLOCK_EINVAL},
    {0},
};

/* In a file a reader keeps others from committing. */
static const struct step server_plays[] = {
    /* What was done and committed after a snapshot is never taken for new, whatever that snapshot shows. */
    {"another claims", TWO, CLAIM, .h = 1, .snapshot = true},
    {"and completes", TWO, COMPLETE, .h = 1},
    {"a transaction with an older snapshot is told", APP, CLAIM, .want = ROWLOCK_CONFLICT,
     .may_be_seen = true, .after = "ROLLBACK"},
    {"afterwards, too", APP, CLAIM, .want = DONE},
    {0},
    /* LOST is said only of a claim that is gone, not of one that a snapshot does not show yet. */
    {"claimed after a snapshot", TWO, CLAIM, .h = 1, .snapshot = true},
    {"completed in that transaction, or to be tried anew", APP, COMPLETE, .h = 1, .result = "1",
     .want = ROWLOCK_CONFLICT, .may_be_seen = true, .after = "ROLLBACK"},
    {"anew", APP, COMPLETE, .h = 1, .result = "2", .snapshot = true, .after = "COMMIT"},
    {"it is done", ONE, CLAIM, .result = "2", .want = DONE},
    {0},
    {"claimed", ONE, CLAIM, .h = 2, .token = 1},
    {"taken over after a snapshot", TWO, CLAIM, .h = 1, .token = 2, .snapshot = true},
    {"completed in that transaction, or to be tried anew", APP, COMPLETE, .h = 1, .result = "1",
     .want = ROWLOCK_CONFLICT, .may_be_seen = true, .after = "ROLLBACK"},
    {"anew", APP, COMPLETE, .h = 1, .result = "2", .snapshot = true, .after = "COMMIT"},
    {"it is done", ONE, CLAIM, .result = "2", .want = DONE},
    {"what was taken over before the snapshot is lost", APP, COMPLETE, .h = 2, .result = "1",
     .want = LOST, .snapshot = true},
    {0},
};

/* ---- what takes more than steps */

static void misuse(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    OWNED(once) rowlock_once *once = NULL;
    claim(a.site.db, NULL, NULL, ROWLOCK_EINVAL, "no key");
    tap_is_int(rowlock_once_claim(a.site.db, "short", NULL, NULL), ROWLOCK_EINVAL, "no handle");
    tap_is_int(rowlock_once_claim(NULL, "short", NULL, &once), ROWLOCK_EMISUSE, "no connection");
    tap_is_int(rowlock_once_complete(NULL, a.site.db, NULL, 0), ROWLOCK_EMISUSE, "no claim");
    tap_is_int(rowlock_once_abandon(NULL, 0, NULL, 0), ROWLOCK_EMISUSE, "nor here");
    no_result(NULL);
    rowlock_once_close(NULL);
    once = claim(a.site.db, "short", NULL, ROWLOCK_OK, "a claim");
    is_result(a.site.db, rowlock_once_complete(once, a.site.db, NULL, 5), ROWLOCK_EINVAL,
              "a result that is not there");
    tap_is_int(rowlock_once_complete(once, NULL, "x", 1), ROWLOCK_EMISUSE, "on no connection");
}

static void results_of_any_length(const struct contract *c)
{
    static const size_t lengths[] = {0, 1, RESULT_MAX};
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    OWNED(text) char *long_result = calloc(1, RESULT_MAX + 1);
    if (!long_result)
        abort();
    for (int i = 0; i <= RESULT_MAX; i++)
        long_result[i] = (char)i;
    for (int i = 0; i < COUNT(lengths); i++) {
        char key[20];
        snprintf(key, sizeof key, "length %d", i);
        rowlock_once *once = claim(a.site.db, key, NULL, ROWLOCK_OK, "a key without a fingerprint");
        is_result(a.site.db, rowlock_once_complete(once, a.site.db, long_result, RESULT_MAX + 1),
                  ROWLOCK_EINVAL, "a result that is too long");
        const char *result = lengths[i] ? long_result : NULL;
        is_result(a.site.db, rowlock_once_complete(once, a.site.db, result, lengths[i]), ROWLOCK_OK,
                  "one of %zu bytes", lengths[i]);
        rowlock_once_close(once);
        once = claim(a.other, key, "", ROWLOCK_DONE, "none is the empty one");
        result_is(once, long_result, lengths[i], "and the result is as long");
        rowlock_once_close(once);
    }
}

struct contest {
    const struct contract *c;
    atomic_int won[CONTESTS], busy;
};

static int contend(void *argument)
{
    struct contest *contest = argument;
    OWNED(db) rowlock_db *db = must_open(contest->c->url);
    for (int i = 0; i < CONTESTS; i++) {
        OWNED(once) rowlock_once *once = NULL;
        int result = rowlock_once_claim(db, textf("contest %d", i), NULL, &once);
        contest->won[i] += result == ROWLOCK_OK;
        contest->busy += result == ROWLOCK_BUSY;
    }
    return 0;
}

static void contests(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a __attribute__((unused)) = ask_open(c);
    struct contest contest = {.c = c};
    struct helper *helpers[CLAIMS];
    int decided = 0;
    for (int i = 0; i < CLAIMS; i++)
        helpers[i] = helper_start(contend, &contest);
    for (int i = 0; i < CLAIMS; i++)
        helper_join(helpers[i]);
    for (int k = 0; k < CONTESTS; k++)
        decided += contest.won[k] == 1;
    tap_is_int(decided, CONTESTS, "of several that claim a key at once one has it");
    tap_is_int(contest.busy, CONTESTS * (CLAIMS - 1),
               "and all others are told that it is in progress");
}

static void other_tables(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    OWNED(text) char *url = fresh_tables(c, "once2_");
    OWNED(db) rowlock_db *elsewhere = must_open(url);
    OWNED(once) rowlock_once *once = claim(a.site.db, "tables", NULL, ROWLOCK_OK, "claimed");
    is_result(elsewhere, rowlock_once_complete(once, elsewhere, NULL, 0), ROWLOCK_ESCHEMA,
              "not to be completed in other tables");
    claim(a.other, "tables", NULL, ROWLOCK_BUSY, "it is still in progress");
    rowlock_once_close(claim(elsewhere, "tables", NULL, ROWLOCK_OK, "there the key is another"));
}

static void make_older(const struct asking *a, const char *key, long long seconds)
{
    site_run(&a->site,
             "UPDATE rowlock_once SET changed = changed - %lld, expires = expires - %lld "
             "WHERE name = '%s'",
             seconds * 1000000, seconds * 1000000, key);
}

static void swept(const struct asking *a, int64_t older_ms, int32_t batch, int64_t want,
                  const char *what)
{
    int64_t removed = -1;
    is_result(a->site.db, rowlock_once_sweep(a->site.db, older_ms, batch, &removed), ROWLOCK_OK,
              "%s", what);
    tap_is_int(removed, want, "as many were removed");
}

static void sweeps(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    int64_t day_ms = INT64_C(1000) * DAY_S, removed = -1;
    static const char *const names[] = {"done 0", "done 1", "done 2", "done 3", "done 4"};
    for (int i = 0; i < COUNT(names); i++) {
        rowlock_once *once = claim(a.site.db, names[i], NULL, ROWLOCK_OK, "a key");
        is_result(a.site.db, rowlock_once_complete(once, a.site.db, NULL, 0), ROWLOCK_OK, "done");
        rowlock_once_close(once);
        make_older(&a, names[i], i * DAY_S);
    }
    rowlock_once_options days = once_about(NULL, 10 * day_ms);
    rowlock_once *slow = claim_as(a.site.db, "slow", &days, ROWLOCK_OK, "one that takes days");
    make_older(&a, "slow", 9 * DAY_S);
    swept(&a, 5 * day_ms, 0, 0, "nothing is so old");
    swept(&a, 2 * day_ms, 1, 3, "what was done longer ago goes, one in a transaction");
    site_finds(&a.site, "3", "what is younger, or in progress, stays",
               "SELECT count(*) FROM rowlock_once WHERE name IN ('done 0', 'done 1', 'slow')");
    rowlock_once_close(claim(a.other, "done 1", NULL, ROWLOCK_DONE, "and is known"));
    rowlock_once_close(claim(a.other, "done 3", NULL, ROWLOCK_OK, "what is gone is new"));
    make_older(&a, "slow", 2 * DAY_S);
    swept(&a, 2 * day_ms, 0, 1, "when its time is over, what was never done goes as well");
    is_result(a.site.db, rowlock_once_complete(slow, a.site.db, NULL, 0), ROWLOCK_LOST,
              "a client that comes even later has lost it, though to no other");
    rowlock_once_close(slow);
    swept(&a, 0, 2, 2, "all that is done");
    is_result(a.site.db, rowlock_once_sweep(a.site.db, -1, 0, &removed), ROWLOCK_EINVAL,
              "an age below nothing");
    is_result(a.site.db, rowlock_once_sweep(a.site.db, 0, 10001, &removed), ROWLOCK_EINVAL,
              "batches that are too big");
    is_result(a.site.db, rowlock_once_sweep(a.site.db, 0, 0, NULL), ROWLOCK_OK,
              "no count is asked for");
    site_run(&a.site, "DELETE FROM rowlock_once");
}

struct listed {
    int count, stop_at;
    rowlock_once_record last;
    bool in_order;
};

static int note_record(void *context, const rowlock_once_record *record)
{
    struct listed *l = context;
    l->in_order = l->in_order && strcmp(l->last.key, record->key) < 0;
    l->last = *record;
    return ++l->count == l->stop_at;
}

static struct listed list(rowlock_db *db, const char *prefix, int stop_at, int want)
{
    struct listed l = {.stop_at = stop_at, .in_order = true};
    is_result(db, rowlock_once_list(db, prefix, note_record, &l), ROWLOCK_OK, "a list of keys");
    tap_is_int(l.count, want, "has those that begin with '%s'", prefix ? prefix : "");
    tap_ok(l.in_order, "in the order of their bytes");
    return l;
}

static void lists(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    rowlock_once *once[3];
    rowlock_once_options o = once_about("a sum", 3600000);
    o.token = 17;
    list(a.other, NULL, 0, 0);
    once[0] = claim_as(a.other, "a", &o, ROWLOCK_OK, "a key in progress");
    once[1] = claim(a.other, "A\xC3\xA4 ", NULL, ROWLOCK_OK, "another");
    once[2] =
        claim(a.other, "a/%_'\\", NULL, ROWLOCK_OK, "one with characters that mean something");
    is_result(a.other, rowlock_once_complete(once[2], a.other, "x", 1), ROWLOCK_OK, "it is done");
    struct listed l = list(a.other, "a/", 0, 1);
    tap_ok(l.last.done == 1 && l.last.remaining_ms == 0, "which the list says");
    tap_ok(l.last.result_length == 1 && l.last.result[0] == 'x', "with its result");
    tap_is_str(l.last.key, "a/%_'\\", "of that key");
    tap_ok(l.last.age_ms >= 0 && l.last.age_ms < 600000, "and when: %d ms ago", (int)l.last.age_ms);
    l = list(a.other, "a", 1, 1);
    tap_ok(l.last.done == 0 && l.last.token == 17 && l.last.remaining_ms > 3000000,
           "a key in progress has its token and its time");
    tap_is_str(l.last.fingerprint, "a sum", "and its fingerprint");
    tap_is_int(l.last.result_length, -1, "and no result");
    list(a.other, "a", 0, 2);
    list(a.other, "A", 0, 1);
    list(a.other, "%", 0, 0);
    list(a.other, NULL, 0, 3);
    for (int i = 0; i < 3; i++)
        rowlock_once_close(once[i]);
    site_run(&a.site,
             "INSERT INTO rowlock_once (name, fingerprint, claim, token, expires, done, changed) "
             "SELECT %s, '', 1, 0, 0, i = i, 0 FROM " NUMBERS " WHERE i < 1200",
             numbered(c, "many "));
    list(a.other, "many ", 0, 1200);
    list(a.other, "many ", 700, 700);
}

/* A key that is given back with a reason, or for a while. */
static void fails(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    static const char long_reason[513];
    rowlock_db *db = a.other;
    rowlock_once_options o = once_about("a sum", 3600000), newer = o;
    newer.token = (o.token = 17) + 1;
    OWNED(once) rowlock_once *once = claim_as(db, "key", &o, ROWLOCK_OK, "a key is claimed");
    is_result(db, rowlock_once_abandon(once, -1, NULL, 0), ROWLOCK_EINVAL, "a pause below 0");
    is_result(db, rowlock_once_abandon(once, 0, NULL, 1), ROWLOCK_EINVAL, "a reason without bytes");
    is_result(db, rowlock_once_abandon(once, 3600000, "no\0paper", 8), ROWLOCK_OK, "given back");
    struct listed l = list(db, NULL, 0, 1);
    tap_ok(l.last.result_length == 8 && memcmp(l.last.result, "no\0paper", 8) == 0, "it says why");
    tap_ok(!l.last.done && l.last.token == 0 && l.last.remaining_ms > 3000000, "and for how long");
    is_result(db, rowlock_once_complete(once, db, "late", 4), ROWLOCK_LOST, "it is not completed");
    claim_as(db, "key", &newer, ROWLOCK_BUSY, "a later holder waits too");
    site_run(&a.site, "UPDATE rowlock_once SET expires = 0");
    OWNED(once) rowlock_once *second = claim_as(db, "key", &newer, ROWLOCK_OK, "then it has it");
    is_result(db, rowlock_once_abandon(once, 0, "late", 4), ROWLOCK_OK, "the first says no more");
    is_result(db, rowlock_once_abandon(second, 0, long_reason, 513), ROWLOCK_OK, "a long reason");
    l = list(db, NULL, 0, 1);
    tap_is_int(l.last.result_length, -1, "is not listed");
    tap_ok(l.last.remaining_ms < -l.last.age_ms - 1, "a clock that steps back makes no pause");
    OWNED(once) rowlock_once *third = claim_as(db, "key", &newer, ROWLOCK_OK, "the key is free");
    is_result(db, rowlock_once_complete(third, db, "r", 1), ROWLOCK_OK, "and can be completed");
    is_result(db, rowlock_once_abandon(third, 0, "why", 3), ROWLOCK_OK, "which stays");
    l = list(db, NULL, 0, 1);
    tap_ok(l.last.done && l.last.result_length == 1 && l.last.result[0] == 'r', "with its result");
}

/* Another command, such as the repaired one, does the same work. */
static void changes(const struct contract *c)
{
    CLOSED_BY(ask_close) struct asking a = ask_open(c);
    rowlock_db *db = a.other;
    rowlock_once_options old = once_about("old", 3600000), new = once_about("new", 3600000);
    OWNED(once) rowlock_once *first = claim_as(db, "key", &old, ROWLOCK_OK, "a key is claimed");
    claim_as(db, "key", &new, ROWLOCK_MISMATCH, "not for another fingerprint");
    is_result(db, rowlock_once_abandon(first, 3600000, NULL, 0), ROWLOCK_OK, "it is given back");
    old.token = 17;
    claim_as(db, "key", &old, ROWLOCK_BUSY, "for an hour later");
    OWNED(once) rowlock_once *second = claim_as(db, "key", &new, ROWLOCK_OK, "at once for another");
    is_result(db, rowlock_once_abandon(second, 0, NULL, 0), ROWLOCK_OK, "the key is removed");
    OWNED(once) rowlock_once *third = claim_as(db, "key", &old, ROWLOCK_OK, "claimed under a lock");
    is_result(db, rowlock_once_forget(db, "key", 17), ROWLOCK_NONE, "its token frees nothing");
    is_result(db, rowlock_once_forget(db, "key", 18), ROWLOCK_OK, "a later holder frees it");
    is_result(db, rowlock_once_complete(third, db, "r", 1), ROWLOCK_LOST, "the first is too late");
    new.token = 18;
    OWNED(once) rowlock_once *last = claim_as(db, "key", &new, ROWLOCK_OK, "of a later holder");
    is_result(db, rowlock_once_complete(last, db, "r", 1), ROWLOCK_OK, "it is done");
    is_result(db, rowlock_once_forget(db, "key", 19), ROWLOCK_NONE, "which none frees");
    old.token = 19;
    claim_as(db, "key", &old, ROWLOCK_MISMATCH, "and stays so for later holders");
}

void contract_once(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "once_work", "id INTEGER PRIMARY KEY");
    for (int i = 0; i < COUNT(plays); i++)
        if (i == 0 || !plays[i - 1].what)
            play(c, &plays[i]);
    for (int i = 0; c->has_server && i < COUNT(server_plays); i++)
        if (i == 0 || !server_plays[i - 1].what)
            play(c, &server_plays[i]);
    misuse(c);
    results_of_any_length(c);
    contests(c);
    other_tables(c);
    sweeps(c);
    lists(c);
    fails(c);
    changes(c);
}
