/* SPDX-License-Identifier: MIT
 *
 * What may be a name, an owner, a note, and which names are the same: only those whose bytes are.
 * What is no UTF-8 is in drivers/test_names.c. */
#include "contract.h"

enum { TTL_MS = 30000 };

/* Collations make some of these equal on one database or another. */
static const char *const different[] = {
    "Lock", "lock",       "lock ",  "lock  ",       " lock",    "LOCK",    "lo", "lö",
    "lô",   "lo\xCC\x88", "lock\t", "lock\n",       "straße",   "strasse", "ǆ",  "dž",
    "i",    "ı",          "I",      "\xE2\x80\x8B", "\xC2\xA0", "\x01",    "ﬀ",  "ff",
};

static const char *const hostile[] = {
    "'",
    "\"",
    "`",
    "\\",
    "%",
    "%s%n",
    "_",
    "a'b''c",
    "x'); DROP TABLE rowlock_locks; --",
    "\\'; DROP TABLE rowlock_locks; --",
    "$1",
    "?1",
    ":name",
    "$$",
    "line\nbreak\r\n",
    "tab\tbell\a",
    "/* comment */",
    "-- comment",
    "😀 lock 🔒",
    "\xEF\xBB\xBF bom",
    "NULL",
    "\x7F",
};

/* Every name at once: each is granted, and each is met as itself. */
static void are_all_different(const struct contract *c, const char *const *names, int count,
                              const char *what)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    rowlock_lock *locks[64];
    int granted = 0, met = 0;
    for (int i = 0; i < count; i++) {
        locks[i] = must_lock(db, names[i]);
        granted += try_lock(locks[i], TTL_MS) == ROWLOCK_OK;
    }
    tap_is_int(granted, count, "%s: each is a lock of its own", what);
    for (int i = 0; i < count; i++) {
        OWNED(lock) rowlock_lock *rival = must_lock(db, names[i]);
        bool same = try_lock(rival, TTL_MS) == ROWLOCK_BUSY &&
                    strcmp(holder_of(rival).name, names[i]) == 0 &&
                    holder_of(rival).token == rowlock_lock_token(locks[i]);
        if (!same)
            tap_note("not met as itself: %d", i);
        met += same;
    }
    tap_is_int(met, count, "%s: each is found again by its bytes", what);
    int released = 0;
    for (int i = 0; i < count; i++) {
        released += rowlock_release(locks[i]) == ROWLOCK_OK;
        rowlock_lock_close(locks[i]);
    }
    tap_is_int(released, count, "%s: each is released", what);
}

static int opens(rowlock_db *db, const char *name)
{
    OWNED(lock) rowlock_lock *lock = NULL;
    int result = rowlock_lock_open(db, name, &lock);
    if ((result == ROWLOCK_OK) != (lock != NULL))
        tap_ok(false, "a refused handle is NULL");
    return result;
}

static void lengths(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    char name[300], umlauts[300] = "";
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    is_result(db, opens(db, name), ROWLOCK_EINVAL, "a name of 256 bytes is refused");
    tap_ok(strstr(why(db), "255") != NULL, "and told why");
    is_result(db, opens(db, ""), ROWLOCK_EINVAL, "an empty name is refused");
    is_result(db, opens(db, NULL), ROWLOCK_EINVAL, "no name at all is refused");
    name[255] = '\0';
    for (int i = 0; i < 127; i++)
        strcat(umlauts, "ö");
    strcat(umlauts, "x");
    char other[256];
    memcpy(other, name, sizeof other);
    other[254] = 'm';
    const char *const longest[] = {name, other, umlauts};
    are_all_different(c, longest, 3, "names of 255 bytes");
}

static void bad_texts(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "bad texts"), *attached = NULL;
    char long_text[257];
    memset(long_text, 't', 256);
    long_text[256] = '\0';
    is_result(db, rowlock_acquire(lock, OPTIONS(acquire, .note = long_text)), ROWLOCK_EINVAL,
              "a note of 256 bytes is refused");
    static const struct {
        const char *name, *owner;
        int64_t token;
    } wrong[] = {{"x", "", 1},  {"x", NULL, 1}, {"x", "\xFF", 1},
                 {"x", "y", 0}, {"x", "y", -1}, {"", "y", 1}};
    for (int i = 0; i < COUNT(wrong); i++) {
        attached = lock;
        is_result(db,
                  rowlock_lock_attach(db, wrong[i].name, wrong[i].owner, wrong[i].token, &attached),
                  ROWLOCK_EINVAL, "attaching takes a name, an owner and a token above nought");
        tap_ok(attached == NULL, "and the handle is NULL without");
    }
    is_result(db, rowlock_lock_attach(db, "x", "y", 1, NULL), ROWLOCK_EINVAL,
              "and a place for the handle");
    tap_is_int(rows_of(c, "bad texts"), 0, "nothing of it has reached the table");
}

/* Hostile texts as owner, program and note, read back from the table. */
static void hostile_texts(const struct contract *c)
{
    int same = 0;
    for (int i = 0; i < COUNT(hostile); i++) {
        rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
        rowlock_db_options who =
            *OPTIONS(db, .owner = how.note = hostile[i], .program = how.note = hostile[i]);
        OWNED(db) rowlock_db *db = must_open_with(c->url, &who);
        OWNED(lock) rowlock_lock *lock = must_lock(db, "hostile texts");
        rowlock_grant broken = ROWLOCK_GRANT_INIT;
        bool good = rowlock_acquire(lock, &how) == ROWLOCK_OK &&
                    rowlock_renew(lock, 0) == ROWLOCK_OK && rowlock_verify(lock) == ROWLOCK_OK &&
                    rowlock_break(db, "hostile texts", 0, &broken) == ROWLOCK_OK &&
                    strcmp(broken.owner, hostile[i]) == 0 && strcmp(broken.note, hostile[i]) == 0;
        if (!good)
            tap_note("text %d: %s; owner '%s' note '%s'", i, why(db), broken.owner, broken.note);
        same += good;
    }
    tap_is_int(same, COUNT(hostile), "owners and notes are just texts");
}

void contract_names(const struct contract *c)
{
    are_all_different(c, different, COUNT(different), "names that look alike");
    are_all_different(c, hostile, COUNT(hostile), "hostile names");
    lengths(c);
    bad_texts(c);
    hostile_texts(c);
}
