/* SPDX-License-Identifier: MIT
 * The list of steps (steps.h) as a table. */
#include "core/steps.h"

#include <string.h>

#define STEP_INFO(id, name, parameters, rows, columns, is) \
    [RLK_STEP_##id] = {name, parameters, columns, rows, is},
const struct rlk_step_info rlk_steps[RLK_STEP_COUNT] = {RLK_STEPS(STEP_INFO)};

bool rlk_has_own(enum rlk_step step)
{
    return strchr(rlk_steps[step].parameters, '!');
}

size_t rlk_count_values(enum rlk_step step)
{
    size_t count = 0;
    char before = ' ';
    for (const char *at = rlk_steps[step].parameters; *at; before = *at++)
        count += before == ' ' && *at != ';';
    return count;
}

enum rlk_step rlk_many_of(enum rlk_step step)
{
#define MANY(id) [RLK_STEP_##id] = RLK_STEP_##id##_MANY
    static const enum rlk_step many[RLK_STEP_COUNT] = {MANY(STILL_HELD), MANY(ACQUIRE_USUAL),
                                                       MANY(ACQUIRE),    MANY(RENEW),
                                                       MANY(RELEASE),    MANY(ENQUEUE)};
    return many[step];
}
