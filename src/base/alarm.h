/* SPDX-License-Identifier: MIT
 * A descriptor that becomes readable at a time. Systems other than Linux have none. */
#ifndef RLK_ALARM_H
#define RLK_ALARM_H

#include <stdint.h>

/* It runs while the machine is suspended. -1: there is none. */
int rlk_alarm_open(void);
/* Readable after so long. 0 and less: now. INT64_MAX: never. It is not readable until then. A
 * signal handler may call it. */
void rlk_alarm_set(int fd, int64_t after_us);

#endif
