/* SPDX-License-Identifier: MIT
 * The list of steps (steps.h) as a table. */
#include "seam/steps.h"

#define STEP_INFO(id, name, parameters, rows, columns, is) \
    [RLK_STEP_##id] = {name, parameters, columns, rows, is},
const struct rlk_step_info rlk_steps[RLK_STEP_COUNT] = {RLK_STEPS(STEP_INFO)};
