/* SPDX-License-Identifier: MIT
 * The rows of an answer, and the steps that list grants. */
#include "core/ask.h"
#include "core/step_cells.h"

#include <string.h>

static bool grow(struct rlk_items *page)
{
    size_t room = page->room ? 2 * page->room : 8;
    char *items = rlk_grow(page->items, page->count * page->size, room * page->size);
    page->no_memory = !items;
    if (!items)
        return false;
    page->items = items;
    page->room = room;
    return true;
}

static int read_item(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_items *page = out;
    if (page->count == page->room && !grow(page))
        return RLK_ENOUGH;
    rlk_put_cells(rlk_item(page, page->count), page->fields, cells, count);
    page->count++;
    return 0;
}

static void forget_items(void *out)
{
    struct rlk_items *page = out;
    page->count = 0;
    page->no_memory = false;
}

void rlk_read_items(struct rlk_ask *ask, struct rlk_items *items, size_t size,
                    const struct rlk_field *fields)
{
    items->size = size;
    items->fields = fields;
    reads(ask, read_item, items);
    ask->restart = forget_items;
}

int rlk_ask_items(rowlock_db *db, struct rlk_ask *ask, struct rlk_items *items)
{
    int result = rlk_ask(db, ask);
    if (result == ROWLOCK_OK && items->no_memory)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    return result;
}

void rlk_step_list(struct rlk_ask *ask, struct rlk_items *out, const char *name,
                   const char *after_name, int64_t after_slot, int limit)
{
    ASK(ask, LIST, name ? rowlock_text(name) : rowlock_null(), rowlock_text(after_name),
        rowlock_int(after_slot), rowlock_int(limit));
    rlk_read_items(ask, out, sizeof(struct rlk_row), rlk_row_fields);
}
