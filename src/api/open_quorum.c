/* SPDX-License-Identifier: MIT
 * Opens a handle over several databases. Its members are handles like any other. */
#include "base/error.h"
#include "api/api.h"
#include "quorum/quorum.h"
#include "core/ask.h"

#include <rowlock/quorum.h>
#include <string.h>

static void close_all(rowlock_db **dbs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rlk_db_free(dbs[i]);
}

/* None of them connects yet, since one may be away. */
static int open_members(rowlock_db *db, const char *const *urls, size_t count,
                        const rowlock_db_options *options, rowlock_db **dbs)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = ROWLOCK_OK;
    for (size_t i = 0; i <= count && result == ROWLOCK_OK; i++)
        result = rlk_db_open_later(urls[i < count ? i : 0], options, &dbs[i], &err);
    return result == ROWLOCK_OK ? result : rlk_fail(db, result, "%s", err.text);
}

static int check_urls(rowlock_db *db, const char *const *urls, size_t count)
{
    if (count != 3 && count != RLK_MEMBERS_MOST)
        return rlk_fail(db, ROWLOCK_EINVAL, "a quorum has 3 or %d members, not %zu",
                        RLK_MEMBERS_MOST, count);
    for (size_t i = 0; i < count; i++)
        for (size_t other = 0; other < i; other++)
            if (urls && urls[i] && urls[other] && strcmp(urls[i], urls[other]) == 0)
                return rlk_fail(db, ROWLOCK_EINVAL,
                                "members %zu and %zu of the quorum have the same URL", other + 1,
                                i + 1);
    return urls ? ROWLOCK_OK : rlk_fail(db, ROWLOCK_EINVAL, "the URLs are NULL");
}

static int use_quorum(rowlock_db *db, const char *const *urls, size_t count,
                      const rowlock_db_options *options)
{
    rowlock_db *dbs[RLK_MEMBERS_MOST + 1] = {NULL};
    int result = check_urls(db, urls, count);
    if (result == ROWLOCK_OK)
        result = open_members(db, urls, count, options, dbs);
    if (result == ROWLOCK_OK && !(db->quorum = rlk_quorum_new(dbs, count, rlk_db_free)))
        result = rlk_fail(db, ROWLOCK_ENOMEM, "out of memory, or no thread can be started");
    if (result != ROWLOCK_OK) {
        close_all(dbs, count < RLK_MEMBERS_MOST ? count + 1 : RLK_MEMBERS_MOST + 1);
        return result;
    }
    db->texts.shared = true;
    db->port = &rlk_quorum_port;
    return rlk_db_use(db, &rlk_quorum_driver);
}

int rowlock_db_open_quorum(const char *const *urls, size_t count, const rowlock_db_options *options,
                           rowlock_db **out, rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open");
    *out = NULL;
    rowlock_db *db = NULL;
    rowlock_db_options taken;
    int result = rlk_db_new(&db, options, &taken, err);
    if (result == ROWLOCK_OK && taken.pool)
        result = rlk_fail(db, ROWLOCK_EINVAL, "a quorum has no pool");
    if (result == ROWLOCK_OK)
        result = use_quorum(db, urls, count, options);
    if (result == ROWLOCK_OK)
        result = rlk_db_connect(db);
    return rlk_db_finish(out, db, result, err);
}

int rowlock_keeper_open_quorum(const char *const *urls, size_t count,
                               const rowlock_db_options *options, rowlock_keeper **out,
                               rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open keeper");
    *out = NULL;
    rowlock_db *db = NULL;
    int result = rowlock_db_open_quorum(urls, count, options, &db, err);
    return result == ROWLOCK_OK ? rlk_keeper_open_with(db, out, err) : result;
}
