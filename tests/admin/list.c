/* SPDX-License-Identifier: MIT
 *
 * Listing grants: all of them, in the order of their names, over many pages.
 */
#include "admin.h"

enum { MANY = 1201 };

static const char PREFIX[] = "listing_";

int see_grant(void *context, const rowlock_grant *grant)
{
    struct seen *seen = context;
    seen->count++;
    seen->over += grant->remaining_ms < 0;
    seen->in_order = seen->in_order && strcmp(seen->last, grant->name) < 0;
    snprintf(seen->last, sizeof seen->last, "%s", grant->name);
    return seen->count == seen->stop_after;
}

/* Names that sort by bytes and not by any dictionary. */
static void fill(const struct contract *c)
{
    static const char *const kinds[] = {"A", "Z", "a", "z", "ä", "_", "-", " "};
    void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "%s", c->begin);
    for (int i = 0; i < MANY; i++)
        raw_run(c->raw, session,
                "INSERT INTO %slocks (name, slot, permits, owner, token, request, acquired, "
                "expires, ttl) "
                "VALUES ('%s%d', 0, 0, 'x', %d, 1, 1, %s, 1)",
                PREFIX, kinds[i % 8], i, i + 1, i % 2 ? "1" : "9000000000000000");
    raw_run(c->raw, session, "COMMIT");
    c->raw->close(session);
}

void contract_list(const struct contract *c)
{
    char *url = fresh_tables(c, PREFIX);
    rowlock_db *db = must_open(url);
    struct seen seen = {.in_order = true};
    is_result(db, rowlock_list(db, NULL, see_grant, &seen), ROWLOCK_OK, "list an empty table");
    tap_is_int(seen.count, 0, "there is nothing");
    fill(c);
    is_result(db, rowlock_list(db, NULL, see_grant, &seen), ROWLOCK_OK, "list over several pages");
    tap_is_int(seen.count, MANY, "gives every grant");
    tap_ok(seen.in_order, "each once, in the order of their names' bytes");
    tap_is_int(seen.over, MANY / 2, "expired ones among them, with a negative time remaining");

    seen = (struct seen){.in_order = true};
    is_result(db, rowlock_list(db, "ä1204", see_grant, &seen), ROWLOCK_OK,
              "list a name without grant");
    tap_is_int(seen.count, 0, "gives nothing");
    is_result(db, rowlock_list(db, "a10", see_grant, &seen), ROWLOCK_OK, "list one name");
    tap_is_int(seen.count, 1, "gives one grant");
    tap_is_str(seen.last, "a10", "of that name");
    is_result(db, rowlock_list(db, "%", see_grant, &seen), ROWLOCK_OK, "list the name '%%'");
    tap_is_int(seen.count, 1, "which is no pattern");

    seen = (struct seen){.in_order = true, .stop_after = 3};
    is_result(db, rowlock_list(db, NULL, see_grant, &seen), ROWLOCK_OK,
              "a callback may stop the list");
    tap_is_int(seen.count, 3, "then no more is given");
    is_result(db, rowlock_list(db, NULL, NULL, NULL), ROWLOCK_EINVAL, "a list needs a callback");
    is_result(db, rowlock_list(db, "", see_grant, &seen), ROWLOCK_EINVAL,
              "an empty name is refused");
    rowlock_db_close(db);
    drop_tables(c, PREFIX, url);
}
