/* SPDX-License-Identifier: MIT
 * Checkpoints: how far a walk has come. rowlock_walks has them. */
#include "core/step_cells.h"
#include "rows/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys as text
 *
 * A key is one line, with a blank between its columns. Each column is a letter for its kind, and
 * then a number or hexadecimal digits. */

static void write_keys(struct rlk_buffer *out, const struct rlk_page *keys, size_t width)
{
    /* In the order of rowlock_kind. */
    static const char letters[] = "nirdtxbm";
    for (size_t row = 0; row < keys->rows; row++)
        for (size_t i = 0; i < width; i++) {
            const rowlock_value *key = &keys->cells[row * keys->width + i];
            rlk_buffer_add(out, &letters[key->kind], 1);
            if (key->kind == ROWLOCK_INT || key->kind == ROWLOCK_BOOL)
                rlk_buffer_number(out, key->number);
            for (size_t k = 0; k < key->length; k++) {
                char digits[3];
                snprintf(digits, sizeof digits, "%02x", (unsigned char)key->text[k]);
                rlk_buffer_add(out, digits, 2);
            }
            rlk_buffer_text(out, i + 1 < width ? " " : "\n");
        }
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t read_hex(const char **at, char *out)
{
    size_t length = 0;
    while (digit_of((*at)[0]) >= 0 && digit_of((*at)[1]) >= 0) {
        out[length++] = (char)(digit_of((*at)[0]) << 4 | digit_of((*at)[1]));
        *at += 2;
    }
    return length;
}

/* Reads the next column of a key. Its bytes go to out. False: rowlock did not write this text. */
static bool read_key(const char **at, char end_of_part, rowlock_value *key, char *out)
{
    static const rowlock_kind kinds[] = {
        ['i'] = ROWLOCK_INT,   ['d'] = ROWLOCK_DECIMAL, ['t'] = ROWLOCK_TEXT,
        ['x'] = ROWLOCK_BYTES, ['b'] = ROWLOCK_BOOL,    ['m'] = ROWLOCK_TIME};
    unsigned letter = (unsigned char)**at;
    *at += letter != '\0';
    rowlock_kind kind = letter < sizeof kinds / sizeof *kinds ? kinds[letter] : ROWLOCK_NULL;
    if (kind == ROWLOCK_INT || kind == ROWLOCK_BOOL) {
        char *end;
        *key = (rowlock_value){.kind = kind, .number = strtoll(*at, &end, 10)};
        if (end == *at)
            return false;
        *at = end;
    } else {
        *key = rowlock_textn(kind, out, read_hex(at, out));
    }
    bool whole = **at == end_of_part;
    *at += whole;
    return kind != ROWLOCK_NULL && whole;
}

static int read_keys(struct walk *w, const char *from, size_t length, struct rlk_page *out)
{
    size_t keys = w->t->keys;
    char *text = rlk_alloc(length + 1), *room = rlk_alloc(length + 1);
    rowlock_value *cells = rlk_alloc((keys + 1) * sizeof *cells);
    rlk_page_begin(out, keys);
    bool readable = text && room && cells;
    if (readable && length > 0)
        memcpy(text, from, length);
    for (const char *at = text; readable && *at;) {
        char *to = room;
        for (size_t i = 0; i < keys && readable; i++) {
            readable = read_key(&at, i + 1 < keys ? ' ' : '\n', &cells[i], to) &&
                       rlk_check_value(w->db, &w->t->all[i], &cells[i], -1) == ROWLOCK_OK;
            to += cells[i].length;
        }
        cells[keys] = rowlock_int(0);
        readable = readable && rlk_page_add(out, cells, keys + 1) == 0;
    }
    bool no_memory = !text || !room || !cells;
    rlk_free(text);
    rlk_free(room);
    rlk_free(cells);
    if (no_memory)
        return rlk_fail(w->db, ROWLOCK_ENOMEM, "out of memory");
    if (!readable && out->failed == ROWLOCK_OK)
        return rlk_fail(w->db, ROWLOCK_EINVAL,
                        "the checkpoint of the walk '%s' has a key of other types; use another "
                        "name, or restart",
                        w->name);
    return rlk_page_end(w->t, out);
}

/* ---- the position: a line that identifies the table, and the last key */

static void write_position(struct rlk_buffer *out, const struct walk *w,
                           const struct rlk_page *position)
{
    rlk_buffer_text(out, w->t->identity);
    rlk_buffer_text(out, "\n");
    write_keys(out, position, w->t->keys);
}

/* The names in an identity are quoted. So a line that begins with our identity is of our table. */
static int read_position(struct walk *w, const rowlock_value *cell)
{
    const char *ours = w->t->identity;
    size_t length = strlen(ours);
    if (cell->length > length && memcmp(cell->text, ours, length) == 0 &&
        cell->text[length] == '\n')
        return read_keys(w, cell->text + length + 1, cell->length - length - 1, &w->position);
    char theirs[200];
    const char *end = cell->length ? memchr(cell->text, '\n', cell->length) : NULL;
    rlk_copy_text(theirs, sizeof theirs, cell->text, end ? (size_t)(end - cell->text) : 0);
    return rlk_fail(w->db, ROWLOCK_EINVAL,
                    "the checkpoint of the walk '%s' belongs to another table or key, %s instead "
                    "of %s; use another name, or restart",
                    w->name, theirs, ours);
}

/* ---- the checkpoint */

enum { STEP, POSITION, PENDING, WALKED, WRITTEN, LEFT, CONFLICTS, FAILED };

struct loading {
    struct walk *w;
    bool found;
    int result;
};

static int take_checkpoint(void *context, const rowlock_value *cells, size_t count)
{
    struct loading *l = context;
    struct walk *w = l->w;
    (void)count;
    l->found = true;
    w->step = cells[STEP].number;
    w->report.rows = cells[WALKED].number;
    w->report.written = cells[WRITTEN].number;
    w->report.left = cells[LEFT].number;
    w->report.conflicts = cells[CONFLICTS].number;
    w->report.failed = cells[FAILED].number;
    l->result = read_position(w, &cells[POSITION]);
    if (l->result == ROWLOCK_OK)
        l->result = read_keys(w, cells[PENDING].text, cells[PENDING].length, &w->pending);
    return 0;
}

/* Runs in a transaction that locks the row. So an earlier transaction of ours, whose commit got no
 * answer, has ended before we read. */
static int load_here(void *context)
{
    struct loading *l = context;
    struct rlk_ask ask = {.read = take_checkpoint, .out = l};
    l->found = false;
    l->result = ROWLOCK_OK;
    ASK(&ask, WALK_LOAD, rowlock_text(l->w->name));
    int result = rlk_ask_ours(l->w->db, &ask);
    return result == ROWLOCK_OK ? l->result : result;
}

int rlk_checkpoint_load(struct walk *w, bool *found)
{
    struct loading l = {.w = w};
    int result = rlk_framed(w->db, load_here, &l);
    /* The transaction only reads, so it may be repeated. */
    if (result == ROWLOCK_EUNCERTAIN)
        result = rlk_framed(w->db, load_here, &l);
    *found = l.found;
    return result;
}

int rlk_checkpoint_check(struct walk *w)
{
    static const struct rlk_field fields[FAILED + 1] = {[STEP] = {.size = sizeof(int64_t)}};
    int64_t step = 0;
    struct rlk_ask ask = {.fields = fields, .out = &step};
    ASK(&ask, WALK_LOAD, rowlock_text(w->name));
    int result = rlk_ask_ours(w->db, &ask);
    if (result == ROWLOCK_OK && step != w->step)
        return rlk_fail(w->db, ROWLOCK_LOST, "another client has continued the walk '%s'", w->name);
    return result;
}

int rlk_checkpoint_save(struct walk *w, const struct rlk_page *position,
                        const struct rlk_page *pending)
{
    struct rlk_buffer here = {0}, later = {0};
    write_position(&here, w, position);
    write_keys(&later, pending, w->t->keys);
    int result = here.no_memory || later.no_memory
                     ? rlk_fail(w->db, ROWLOCK_ENOMEM, "out of memory")
                     : ROWLOCK_OK;
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    ASK(&ask, WALK_SAVE, rowlock_text(w->name), rowlock_int(w->step + 1),
        rowlock_textn(ROWLOCK_TEXT, here.text ? here.text : "", here.length),
        rowlock_textn(ROWLOCK_TEXT, later.text ? later.text : "", later.length),
        rowlock_int(w->report.rows), rowlock_int(w->report.written), rowlock_int(w->report.left),
        rowlock_int(w->report.conflicts), rowlock_int(w->report.failed));
    if (result == ROWLOCK_OK)
        result = rlk_ask_ours(w->db, &ask);
    rlk_buffer_clear(&here);
    rlk_buffer_clear(&later);
    return result;
}

int rlk_checkpoint_forget(struct walk *w)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    ASK(&ask, WALK_END, rowlock_text(w->name));
    return rlk_ask_ours(w->db, &ask);
}
