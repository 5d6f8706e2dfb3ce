/* SPDX-License-Identifier: MIT
 * One step of one handle on its way through the pool: copies of its values, and of the answer. */
#include "pool/pool.h"

#include <string.h>

struct rlk_slot *rlk_slot_new(void)
{
    struct rlk_slot *slot = rlk_alloc(sizeof *slot);
    if (slot)
        rlk_turn_init(&slot->answered);
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

bool rlk_slot_fill(struct rlk_slot *slot, const struct rlk_call *call, const struct rlk_ask *ask,
                   enum rlk_step kind, const char *wakeup)
{
    char *at = slot->texts;
    slot->step = ask->step;
    slot->kind = kind;
    slot->deadline_us = slot->worth_until_us = call->deadline_us;
    if (call->worth_until_us > slot->deadline_us)
        slot->worth_until_us = call->worth_until_us;
    slot->again = false;
    slot->wakes = ask->wakes != NULL;
    slot->given_count = count_parameters(kind ? kind : ask->step);
    for (size_t i = 0; i < slot->given_count; i++) {
        rowlock_value value = ask->in[i];
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
    slot->answered.alarm = -1;
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

enum rlk_class rlk_slot_answer(struct rlk_slot *slot, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_call asked = *call;
    *call = slot->call;
    call->deadline_us = asked.deadline_us;
    call->where = asked.where;
    ask->changed = slot->changed;
    if (slot->class == RLK_DONE && slot->has_row)
        rlk_ask_take(ask, slot->row.value, slot->row.count);
    return slot->class;
}
