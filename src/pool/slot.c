/* SPDX-License-Identifier: MIT
 * One step of one handle on its way through the pool: copies of its values, and of the answer. */
#include "base/fiber.h"
#include "pool/pool.h"

#include <string.h>

struct rlk_slot *rlk_slot_new(void)
{
    struct rlk_slot *slot = rlk_alloc(sizeof *slot);
    if (slot)
        sem_init(&slot->answered.posted, 0, 0);
    return slot;
}

void rlk_slot_free(struct rlk_slot *slot)
{
    if (!slot)
        return;
    sem_destroy(&slot->answered.posted);
    rlk_copies_clear(&slot->row);
    rlk_free(slot);
}

/* The parameters of a step for many handles, without those of its packing. */
static size_t count_parameters(enum rlk_step step)
{
    size_t count = 1;
    for (const char *at = rlk_steps[step].parameters; *at && *at != ';'; at++)
        count += *at == ' ' && at[1] != ';';
    return count;
}

bool rlk_slot_fill(struct rlk_slot *slot, const struct rlk_call *call,
                   const struct rlk_query *query, enum rlk_step kind, const char *wakeup)
{
    char *at = slot->texts;
    slot->step = query->step;
    slot->kind = kind;
    slot->deadline_us = slot->worth_until_us = call->deadline_us;
    if (call->worth_until_us > slot->deadline_us)
        slot->worth_until_us = call->worth_until_us;
    slot->again = false;
    slot->wakes = query->wakes != NULL;
    slot->given_count = count_parameters(kind ? kind : query->step);
    for (size_t i = 0; i < slot->given_count; i++) {
        rowlock_value value = query->given[i];
        if (value.kind == ROWLOCK_NULL && wakeup)
            value = rowlock_text(wakeup);
        if (rlk_has_bytes(&value)) {
            if (value.length >= (size_t)(slot->texts + sizeof slot->texts - at))
                return false;
            memcpy(at, value.text, value.length);
            at[value.length] = '\0';
            value.text = at;
            at += value.length + 1;
        }
        slot->given[i] = value;
    }
    slot->answered.fiber = rlk_fiber_current();
    slot->class = RLK_UNSENT;
    slot->call = *call;
    slot->changed = 0;
    slot->counted = slot->has_row = false;
    rlk_copies_clear(&slot->row);
    return true;
}

int rlk_slot_take_row(struct rlk_slot *slot, const rowlock_value *cells, size_t count)
{
    if (slot->has_row || count > RLK_COPIES_MOST)
        return -1;
    slot->has_row = rlk_copies_take(&slot->row, cells, count);
    /* It is done, and its handle asks again what became of it. */
    if (!slot->has_row)
        slot->class = RLK_UNCERTAIN;
    return 0;
}

enum rlk_class rlk_slot_answer(struct rlk_slot *slot, struct rlk_call *call,
                               struct rlk_query *query)
{
    struct rlk_call asked = *call;
    *call = slot->call;
    call->deadline_us = asked.deadline_us;
    call->where = asked.where;
    query->changed = slot->changed;
    query->counted = slot->counted;
    if (slot->class == RLK_DONE && slot->has_row && query->each)
        query->each(query->context, slot->row.value, slot->row.count);
    return slot->class;
}
