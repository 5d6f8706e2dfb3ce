/* SPDX-License-Identifier: MIT
 * A text that grows. It stays as it is once memory ran out. */
#ifndef RLK_BUFFER_H
#define RLK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_buffer {
    /* Terminated by a zero byte. NULL before the first addition. */
    char *text;
    size_t length, room;
    bool no_memory;
};
void rlk_buffer_add(struct rlk_buffer *b, const char *text, size_t length);
void rlk_buffer_text(struct rlk_buffer *b, const char *text);
void rlk_buffer_number(struct rlk_buffer *b, int64_t number);
void rlk_buffer_clear(struct rlk_buffer *b);

#endif
