/* SPDX-License-Identifier: MIT
 * The rows of a step for many locks, as arrays or as one JSON text (enum rlk_packing). */
#include "core/many.h"

#include <string.h>

static void add_hex(struct rlk_buffer *b, const rowlock_value *text)
{
    rlk_buffer_text(b, "\"");
    rlk_buffer_hex(b, text->text, text->length);
    rlk_buffer_text(b, "\"");
}

/* Arrays are {"a","b"} for each column. JSON is [["61",1],["62",2]] with hexadecimal texts. */
void rlk_many_add(struct rlk_many *m, const rowlock_value *row, enum rlk_packing packing)
{
    bool json = packing == RLK_JSON;
    bool first = m->count++ == 0;
    for (size_t i = 0; i < m->width; i++) {
        struct rlk_buffer *b = &m->part[json ? 0 : i];
        if (json)
            rlk_buffer_text(b, i > 0 ? "," : first ? "[[" : ",[");
        else
            rlk_buffer_text(b, first ? "{" : ",");
        if (row[i].kind != ROWLOCK_TEXT)
            rlk_buffer_number(b, row[i].number);
        else if (json)
            add_hex(b, &row[i]);
        else
            rlk_buffer_quoted(b, row[i].text, row[i].length);
    }
    if (json)
        rlk_buffer_text(&m->part[0], "]");
}

static bool end_rows(struct rlk_many *m, enum rlk_packing packing)
{
    bool written = true;
    size_t parts = packing == RLK_JSON ? 1 : m->width;
    for (size_t i = 0; i < parts; i++) {
        rlk_buffer_text(&m->part[i], packing == RLK_JSON ? "]" : "}");
        written = written && !m->part[i].no_memory;
        m->in[packing == RLK_JSON ? m->width + m->shared : i] =
            rowlock_textn(ROWLOCK_TEXT, m->part[i].text, m->part[i].length);
    }
    m->in[m->width + m->shared + 1] = rowlock_int((int64_t)m->count);
    return written;
}

enum rlk_class rlk_many_send(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                             struct rlk_many *m, rlk_cells_fn *read, void *out)
{
    struct rlk_ask ask = {.step = step, .read = read, .out = out};
    bool written = m->count == 0 || end_rows(m, db->driver->packing);
    memcpy(ask.in, m->in, sizeof ask.in);
    enum rlk_class class = written ? rlk_send(db, call, &ask) : RLK_NOMEM;
    m->changed = ask.changed;
    for (size_t i = 0; i < m->width; i++)
        rlk_buffer_clear(&m->part[i]);
    return class;
}
