/* SPDX-License-Identifier: MIT
 *
 * Listing grants: all of them, in the order of their names, over many pages. */
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
    for (int k = 0; k < COUNT(kinds); k++)
        exec_on(c,
                "INSERT INTO %slocks (name, slot, permits, owner, token, request, acquired, "
                "expires, ttl) SELECT %s, 0, 0, 'x', i + 1, 1, 1, CASE WHEN i %% 2 = 1 THEN 1 ELSE "
                "9000000000000000 END, 1 FROM " NUMBERS " WHERE i %% 8 = %d AND i < %d",
                PREFIX, numbered(c, kinds[k]), k, MANY);
}

void contract_list(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, PREFIX);
    OWNED(db) rowlock_db *db = must_open(url);
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
}
