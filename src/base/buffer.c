/* SPDX-License-Identifier: MIT
 * A text that grows, in the library's own memory. */
#include "base/buffer.h"
#include "base/base.h"

#include <string.h>

static bool make_room(struct rlk_buffer *b, size_t more)
{
    size_t need = b->length + more + 1;
    if (b->no_memory || need <= b->room)
        return !b->no_memory;
    size_t room = b->room ? 2 * b->room : 256;
    while (room < need)
        room *= 2;
    char *text = rlk_alloc(room);
    b->no_memory = !text;
    if (!text)
        return false;
    if (b->length > 0)
        memcpy(text, b->text, b->length);
    rlk_free(b->text);
    b->text = text;
    b->room = room;
    return true;
}

void rlk_buffer_add(struct rlk_buffer *b, const char *text, size_t length)
{
    if (!make_room(b, length))
        return;
    if (length > 0)
        memcpy(b->text + b->length, text, length);
    b->length += length;
    b->text[b->length] = '\0';
}

void rlk_buffer_text(struct rlk_buffer *b, const char *text)
{
    rlk_buffer_add(b, text, strlen(text));
}

void rlk_buffer_number(struct rlk_buffer *b, int64_t number)
{
    char digits[RLK_INT_TEXT];
    rlk_buffer_text(b, rlk_write_int(number, digits));
}

void rlk_buffer_clear(struct rlk_buffer *b)
{
    rlk_free(b->text);
    *b = (struct rlk_buffer){0};
}
