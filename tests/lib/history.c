/* SPDX-License-Identifier: MIT
 *
 * Writes and reads the history of a load; see history.h. */
#include "history.h"

static const char *folder;
static int file = -1;

/* ---- writing */

const char *history_path(const char *name)
{
    static _Thread_local char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void history_open(const char *name)
{
    folder = name ? name : test_folder();
    file = open(history_path("history"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0)
        abort();
}

void history_clear(void)
{
    if (ftruncate(file, 0) != 0)
        abort();
}

void tell(const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    if (write(file, line, (size_t)length) != length)
        abort();
}

void tell_grant(const char *name, rowlock_lock *lock, long long asked)
{
    long long answered = now_us();
    tell("G %s %lld %lld %lld %lld", name, (long long)rowlock_lock_token(lock), asked, answered,
         answered + rowlock_lock_remaining_ms(lock) * 1000);
}

/* The end of the lease is that of the last look, since LOST leaves none. */
bool tell_holding(const char *name, rowlock_lock *lock, int margin_ms, long long *until)
{
    long long at = now_us(), token = rowlock_lock_token(lock);
    rowlock_state state = rowlock_lock_state(lock);
    long long left_us = rowlock_lock_remaining_ms(lock) * 1000;
    if (state == ROWLOCK_STATE_HELD || state == ROWLOCK_STATE_JEOPARDY) {
        *until = at + left_us;
        tell("H %s %lld %lld %lld", name, token, at, *until);
        return true;
    }
    at = now_us(); /* It may have stood still meanwhile, until the lease was over. */
    if (state == ROWLOCK_STATE_LOST && *until - at > margin_ms * 1000LL)
        tell("L %s %lld %lld %lld", name, token, at, *until);
    return false;
}

void tell_odd(const char *call, int result)
{
    if (result < 0 && result != ROWLOCK_ECONN && result != ROWLOCK_EUNCERTAIN &&
        result != ROWLOCK_ESERVER && result != ROWLOCK_EREADONLY)
        tell("O %s %s", call, rowlock_result_name(result));
}

/* ---- reading */

/* What follows the letter: n a number, s the name, w another word. */
static const char *shape_of(char kind)
{
    static const char *const shapes[128] = {
        ['P'] = "n",    ['G'] = "snnnn", ['H'] = "snnn", ['E'] = "snn",    ['L'] = "snnn",
        ['S'] = "snn",  ['t'] = "snn",   ['C'] = "swnn", ['O'] = "sw",     ['T'] = "nnnnn",
        ['Y'] = "n",    ['U'] = "n",     ['F'] = "n",    ['W'] = "snwnn",  ['Q'] = "nnn",
        ['w'] = "nnwn", ['M'] = "ns",    ['b'] = "nn",   ['B'] = "nn",     ['J'] = "nnnnn",
        ['N'] = "sn",   ['R'] = "sn",    ['X'] = "sn",   ['g'] = "snnnnn", ['r'] = "snn",
        ['k'] = "snn",  ['e'] = "snn",   ['l'] = "sn",
    };
    return kind > 0 ? shapes[(int)kind] : NULL;
}

static bool parse(char *text, struct line *out)
{
    const char *shape = shape_of(text[0]);
    char *rest = NULL, *from = text + 1, *word;
    int numbers = 0;
    memset(out, 0, sizeof *out);
    out->kind = text[0];
    for (; shape && *shape; shape++) {
        word = strtok_r(from, " \n", &rest);
        from = NULL;
        if (!word)
            return false;
        if (*shape == 'n')
            out->n[numbers++] = strtoll(word, NULL, 10);
        else
            snprintf(*shape == 's' ? out->name : out->word, HISTORY_WORD, "%s", word);
    }
    return shape != NULL;
}

struct line *history_lines(const char *path, int *count)
{
    char text[400];
    int room = 0;
    struct line *lines = NULL;
    FILE *history = fopen(path, "r");
    *count = 0;
    while (history && fgets(text, sizeof text, history)) {
        if (*count == room) {
            room = 2 * room + 1000;
            lines = realloc(lines, (size_t)room * sizeof *lines);
            if (!lines)
                abort();
        }
        *count += parse(text, &lines[*count]);
    }
    if (history)
        fclose(history);
    return lines;
}

int history_count(const char *kinds)
{
    char text[400];
    int count = 0;
    FILE *history = fopen(history_path("history"), "r");
    while (history && fgets(text, sizeof text, history))
        count += strchr(kinds, text[0]) != NULL;
    if (history)
        fclose(history);
    return count;
}
