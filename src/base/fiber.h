/* SPDX-License-Identifier: MIT
 * A call that can pause in the middle: it has a stack of its own. A thread resumes it, and gets the
 * control back when the call waits for something, or has returned. So one thread has many waits
 * under way. */
#ifndef RLK_FIBER_H
#define RLK_FIBER_H

#include <stdbool.h>
#include <stdint.h>

struct rlk_fiber;

/* NULL: no memory, no descriptor, or not possible on this system. */
struct rlk_fiber *rlk_fiber_new(void);
/* The next rlk_fiber_resume() begins to run run(context). The one before has returned. */
void rlk_fiber_begin(struct rlk_fiber *fiber, void (*run)(void *context), void *context);
/* Runs it until it waits or has returned. Returns whether it has returned. */
bool rlk_fiber_resume(struct rlk_fiber *fiber);
/* Readable when the fiber should be resumed. */
int rlk_fiber_fd(const struct rlk_fiber *fiber);
/* What it ran has returned. */
void rlk_fiber_free(struct rlk_fiber *fiber);

/* The fiber that runs in this thread. NULL: none. */
struct rlk_fiber *rlk_fiber_current(void);
/* The current fiber is about to wait. The descriptor becomes readable after until_us, or after a
 * rlk_fiber_wake() from now on. */
void rlk_fiber_expect(struct rlk_fiber *fiber, int64_t until_us);
/* Gives the control back to the one who resumed the current fiber, until the next time. */
void rlk_fiber_pause(struct rlk_fiber *fiber);
/* Any thread may call it, and a signal handler. The fiber must not be freed meanwhile. */
void rlk_fiber_wake(struct rlk_fiber *fiber);

#endif
