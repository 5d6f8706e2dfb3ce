/* SPDX-License-Identifier: MIT
 * One step of one handle on its way through the pool: copies of its values, and of the answer. */
#include "pool/pool.h"

#include <string.h>

struct rlk_parcel *rlk_parcel_new(void)
{
    struct rlk_parcel *parcel = rlk_alloc(sizeof *parcel);
    if (parcel)
        rlk_turn_init(&parcel->answered);
    return parcel;
}

void rlk_parcel_free(struct rlk_parcel *parcel)
{
    if (!parcel)
        return;
    rlk_turn_end(&parcel->answered);
    rlk_copies_clear(&parcel->row);
    rlk_free(parcel);
}

/* The parameters of a step for many handles, without those of its packing. */
static size_t count_parameters(enum rlk_step step)
{
    size_t count = 1;
    for (const char *at = rlk_steps[step].parameters; *at && *at != ';'; at++)
        count += *at == ' ' && at[1] != ';';
    return count;
}

bool rlk_parcel_fill(struct rlk_parcel *parcel, const struct rlk_call *call,
                     const struct rlk_ask *ask, enum rlk_step kind, const char *wakeup)
{
    char *at = parcel->texts;
    parcel->step = ask->step;
    parcel->kind = kind;
    parcel->deadline_us = parcel->worth_until_us = call->deadline_us;
    if (call->worth_until_us > parcel->deadline_us)
        parcel->worth_until_us = call->worth_until_us;
    parcel->again = false;
    parcel->wakes = ask->wakes != NULL;
    parcel->given_count = count_parameters(kind ? kind : ask->step);
    for (size_t i = 0; i < parcel->given_count; i++) {
        rowlock_value value = ask->in[i];
        if (value.kind == ROWLOCK_NULL && wakeup)
            value = rowlock_text(wakeup);
        if (rlk_has_bytes(&value)) {
            if (value.length >= (size_t)(parcel->texts + sizeof parcel->texts - at))
                return false;
            memcpy(at, value.text, value.length);
            at[value.length] = '\0';
            value.text = at;
            at += value.length + 1;
        }
        parcel->given[i] = value;
    }
    parcel->answered.alarm = -1;
    parcel->class = RLK_UNSENT;
    parcel->call = *call;
    parcel->changed = 0;
    parcel->counted = parcel->has_row = false;
    rlk_copies_clear(&parcel->row);
    return true;
}

int rlk_parcel_take_row(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_parcel *parcel = out;
    if (parcel->has_row || count > RLK_COPIES_MOST)
        return -1;
    parcel->has_row = rlk_copies_take(&parcel->row, cells, count);
    /* It is done, and its handle asks again what became of it. */
    if (!parcel->has_row)
        parcel->class = RLK_UNCERTAIN;
    return 0;
}

enum rlk_class rlk_parcel_answer(struct rlk_parcel *parcel, struct rlk_call *call,
                                 struct rlk_ask *ask)
{
    struct rlk_call asked = *call;
    *call = parcel->call;
    call->deadline_us = asked.deadline_us;
    call->where = asked.where;
    ask->changed = parcel->changed;
    if (parcel->class == RLK_DONE && parcel->has_row)
        rlk_query_row(ask, parcel->row.value, parcel->row.count);
    return parcel->class;
}
