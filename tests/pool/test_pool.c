/* SPDX-License-Identifier: MIT
 *
 * Options of a pool and of its handles, what it refuses, and the steps of a single caller. What
 * many callers do is in each_pool.c. */
#include "backend_script.h"

static rowlock_error err;

static int opens(const char *url, const rowlock_pool_options *options)
{
    OWNED(pool) rowlock_pool *pool = NULL;
    err = (rowlock_error)ROWLOCK_ERROR_INIT;
    int result = rowlock_pool_open(url, options, &pool, &err);
    if ((result == ROWLOCK_OK) != (pool != NULL) || (result != ROWLOCK_OK && !err.text[0]))
        tap_ok(false, "a refusal has a text and no pool");
    return result;
}

#define DB(...) (&(const rowlock_db_options){.size = sizeof(rowlock_db_options), __VA_ARGS__})

static void test_options(void)
{
    enum { SIZE = sizeof(rowlock_pool_options) };
    const struct {
        rowlock_pool_options options;
        int result;
        const char *what;
    } cases[] = {
        {{.size = SIZE}, ROWLOCK_OK, "options as they come"},
        {{.size = SIZE, .connections = 1, .batch = 1}, ROWLOCK_OK, "the smallest pool"},
        {{.size = SIZE, .connections = 64, .batch = 1000}, ROWLOCK_OK, "the largest pool"},
        {{.size = SIZE, .connections = 65}, ROWLOCK_EINVAL, "too many connections"},
        {{.size = SIZE, .connections = -1}, ROWLOCK_EINVAL, "less than no connection"},
        {{.size = SIZE, .batch = 1001}, ROWLOCK_EINVAL, "too many steps in one statement"},
        {{.size = SIZE, .batch = -1}, ROWLOCK_EINVAL, "less than no step"},
        {{.size = 0}, ROWLOCK_EINVAL, "no size"},
        {{.size = 4097}, ROWLOCK_EINVAL, "an unknown size"},
        {{.size = sizeof(size_t)}, ROWLOCK_OK, "a struct that ends with its size"},
        {{.size = SIZE, .db = DB(.prefix = "a-b")}, ROWLOCK_EINVAL, "a wrong prefix"},
        {{.size = SIZE, .db = DB(.statement_timeout_ms = -1)}, ROWLOCK_EINVAL, "a wrong limit"},
        {{.size = SIZE, .db = DB(.owner = "me")}, ROWLOCK_EINVAL, "an owner for the whole pool"},
    };
    script_reset();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        tap_is_result(opens("sqlite:x", &cases[i].options), cases[i].result, "%s", cases[i].what);
    tap_is_int(opens("sqlite:x", NULL), ROWLOCK_OK, "no options");
    tap_is_int(opens(NULL, NULL), ROWLOCK_EINVAL, "no URL");
    tap_is_int(opens("mariadb:x", NULL), ROWLOCK_EUNSUPPORTED, "a database that is not built in");
    err = (rowlock_error)ROWLOCK_ERROR_INIT;
    tap_is_int(rowlock_pool_open("sqlite:x", NULL, NULL, &err), ROWLOCK_EINVAL,
               "nowhere to put it");
    tap_is_str(err.text, "the place for the new handle is NULL", "which it says");
    tap_is_int(rowlock_pool_open("sqlite:x", NULL, NULL, NULL), ROWLOCK_EINVAL,
               "also without a place for the error");
    script_always(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(opens("sqlite:x", NULL), ROWLOCK_EDENIED, "a login that is denied");
    tap_ok(strstr(err.text, "own words") != NULL, "which says why: %s", err.text);
    rowlock_pool_close(NULL);
}

static rowlock_pool *must_pool_of(int connections)
{
    rowlock_pool *pool = NULL;
    rowlock_pool_options options = *OPTIONS(pool, .connections = connections);
    script_reset();
    if (rowlock_pool_open("sqlite:x", &options, &pool, NULL) != ROWLOCK_OK)
        tap_ok(false, "a pool opens");
    script_calls();
    return pool;
}

static void test_handles(void)
{
    static const struct {
        const char *url;
        rowlock_db_options options;
        int result;
        const char *what;
    } cases[] = {
        {NULL, {.owner = "me"}, ROWLOCK_OK, "a handle with an owner"},
        {NULL, {.statement_timeout_ms = 5, .reconnect_ms = -1}, ROWLOCK_OK, "with limits"},
        {"sqlite:x", {0}, ROWLOCK_EINVAL, "with a URL"},
        {NULL, {.schema = "main"}, ROWLOCK_EINVAL, "with a schema"},
        {NULL, {.prefix = "a_"}, ROWLOCK_EINVAL, "with a prefix"},
    };
    static int vendor;
    OWNED(pool) rowlock_pool *pool = must_pool_of(1);
    rowlock_db *db = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rowlock_db_options options = cases[i].options;
        options.size = sizeof options;
        options.pool = pool;
        tap_is_result(rowlock_db_open(cases[i].url, &options, &db, &err), cases[i].result, "%s",
                      cases[i].what);
        rowlock_db_close(db);
    }
    tap_is_str(script_calls(), "", "opening and closing handles sends nothing");
    rowlock_pool_options inner = *OPTIONS(pool, .db = DB(.pool = pool));
    tap_is_int(opens("sqlite:x", &inner), ROWLOCK_EINVAL, "no pool in a pool");
    tap_is_int(
        rowlock_db_adopt_sqlite((struct sqlite3 *)(void *)&vendor, DB(.pool = pool), &db, &err),
        ROWLOCK_EINVAL, "no adopted connection in a pool");
}

/* The calls of the database for one caller. */
static const char *use(rowlock_db *db)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "x");
    tap_is_int(try_lock(lock, 0), ROWLOCK_OK, "acquire");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "renew");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "release");
    return script_calls();
}

static void test_single_caller(void)
{
    char plain[200];
    script_reset();
    rowlock_db *db = script_open(NULL);
    snprintf(plain, sizeof plain, "%s", use(db));
    rowlock_db_close(db);
    OWNED(pool) rowlock_pool *pool = must_pool_of(2);
    if (rowlock_db_open(NULL, DB(.pool = pool), &db, NULL) != ROWLOCK_OK)
        tap_ok(false, "a handle opens");
    tap_ok(strncmp(plain, "meta ", 5) == 0, "a connection looks at the tables first: %s", plain);
    tap_is_str(use(db), plain + 5,
               "a single caller of a pool sends the same steps. The pool has looked at the tables");
    rowlock_db_close(db);
}

int main(void)
{
    test_options();
    test_handles();
    test_single_caller();
    return tap_done();
}
