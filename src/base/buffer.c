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
    char *text = rlk_grow(b->text, b->length, room);
    b->no_memory = !text;
    if (!text)
        return false;
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

void rlk_buffer_real(struct rlk_buffer *b, double real)
{
    char digits[RLK_REAL_TEXT];
    rlk_write_real(real, digits);
    rlk_buffer_text(b, digits);
}

void rlk_buffer_hex(struct rlk_buffer *b, const char *bytes, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    if (!make_room(b, 2 * length))
        return;
    for (size_t i = 0; i < length; i++) {
        b->text[b->length++] = digits[(unsigned char)bytes[i] >> 4];
        b->text[b->length++] = digits[(unsigned char)bytes[i] & 15];
    }
    b->text[b->length] = '\0';
}

void rlk_buffer_quoted(struct rlk_buffer *b, const char *text, size_t length)
{
    const char *end = text + length;
    rlk_buffer_text(b, "\"");
    for (const char *at = text; at < end;) {
        const char *special = at;
        while (special < end && *special != '"' && *special != '\\')
            special++;
        rlk_buffer_add(b, at, (size_t)(special - at));
        if (special < end) {
            rlk_buffer_text(b, "\\");
            rlk_buffer_add(b, special++, 1);
        }
        at = special;
    }
    rlk_buffer_text(b, "\"");
}

void rlk_buffer_value(struct rlk_buffer *b, const rowlock_value *value)
{
    switch (value->kind) {
    case ROWLOCK_NULL:
        return;
    case ROWLOCK_INT:
        rlk_buffer_number(b, value->number);
        return;
    case ROWLOCK_REAL:
        rlk_buffer_real(b, value->real);
        return;
    case ROWLOCK_BOOL:
        rlk_buffer_text(b, value->number ? "t" : "f");
        return;
    case ROWLOCK_BYTES:
        rlk_buffer_text(b, "\\x");
        rlk_buffer_hex(b, value->text, value->length);
        return;
    default:
        rlk_buffer_add(b, value->text, value->length);
    }
}

void rlk_buffer_clear(struct rlk_buffer *b)
{
    rlk_free(b->text);
    *b = (struct rlk_buffer){0};
}
