/* SPDX-License-Identifier: MIT
 * A text that grows. It stays as it is once memory ran out. */
#ifndef RLK_BUFFER_H
#define RLK_BUFFER_H

#include <rowlock/value.h>
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
void rlk_buffer_real(struct rlk_buffer *b, double real);
/* Two digits for each byte. */
void rlk_buffer_hex(struct rlk_buffer *b, const char *bytes, size_t length);
/* Between quotes, with a backslash before each quote and backslash. */
void rlk_buffer_quoted(struct rlk_buffer *b, const char *text, size_t length);
/* As PostgreSQL reads it: t and f, bytes as \x with digits. Nothing for NULL. */
void rlk_buffer_value(struct rlk_buffer *b, const rowlock_value *value);
void rlk_buffer_clear(struct rlk_buffer *b);

#endif
