/* SPDX-License-Identifier: MIT
 * Opens a handle over several databases. Its members are handles like any other. */
#include "base/error.h"
#include "api/api.h"
#include "quorum/quorum.h"
#include "core/ask.h"

#include <string.h>

/* None of them connects yet, since one may be away. The last one is for the queue. */
static int open_members(rowlock_db *db, const struct rlk_urls *urls,
                        const rowlock_db_options *options, rowlock_db **dbs)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = ROWLOCK_OK;
    for (size_t i = 0; i <= urls->count && result == ROWLOCK_OK; i++)
        result = rlk_db_open_later(urls->url[i < urls->count ? i : 0], options, &dbs[i], &err);
    return result == ROWLOCK_OK ? result : rlk_fail(db, result, "%s", err.text);
}

static int check_urls(rowlock_db *db, const struct rlk_urls *urls)
{
    if (urls->count != 3 && urls->count != RLK_MEMBERS_MOST)
        return rlk_fail(db, ROWLOCK_EINVAL, "a quorum has 3 or %d members, not %zu",
                        RLK_MEMBERS_MOST, urls->count);
    for (size_t i = 0; i < urls->count; i++)
        for (size_t other = 0; other < i; other++)
            if (strcmp(urls->url[i], urls->url[other]) == 0)
                return rlk_fail(db, ROWLOCK_EINVAL,
                                "members %zu and %zu of the quorum have the same URL", other + 1,
                                i + 1);
    return ROWLOCK_OK;
}

int rlk_db_use_quorum(rowlock_db *db, const struct rlk_urls *urls,
                      const rowlock_db_options *options)
{
    rowlock_db *dbs[RLK_MEMBERS_MOST + 1] = {NULL};
    int result = check_urls(db, urls);
    if (result == ROWLOCK_OK)
        result = open_members(db, urls, options, dbs);
    if (result == ROWLOCK_OK && !(db->quorum = rlk_quorum_new(dbs, urls->count, rlk_db_free)))
        result = rlk_fail(db, ROWLOCK_ENOMEM, "out of memory, or no thread can be started");
    if (result != ROWLOCK_OK) {
        rlk_db_free_all(dbs, RLK_MEMBERS_MOST + 1);
        return result;
    }
    db->texts.shared = true;
    db->port = &rlk_quorum_port;
    return rlk_db_use(db, &rlk_quorum_driver);
}
