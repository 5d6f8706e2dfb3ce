/* SPDX-License-Identifier: MIT
 * What several calls of operators need: lists, and what all tokens are counted from. */
#ifndef RLK_ADMIN_H
#define RLK_ADMIN_H

#include "core/core.h"

/* A list that is read page by page. A callback is called when its page was read. */
struct rlk_list {
    enum rlk_step step;
    /* An item is as large, and has these cells. */
    size_t size;
    const struct rlk_field *fields;
    /* Makes an ask the step, for at most limit items after this one. after NULL: for the first. */
    void (*ask)(struct rlk_ask *ask, void *context, const void *after, int limit);
    /* before: the item before it, or NULL. Nonzero: the list ends. */
    int (*give)(void *context, const void *item, const void *before);
    /* Is the item behind the other one? */
    bool (*is_further)(const void *item, const void *than);
};
int rlk_list_pages(rowlock_db *db, const struct rlk_list *list, void *context);

/* For items that are struct rlk_row. */
bool rlk_row_is_further(const void *item, const void *than);

/* Raises the floor of all tokens. *highest: the new floor. */
int rlk_raise(rowlock_db *db, int64_t by, int64_t *highest);

#endif
