/* SPDX-License-Identifier: MIT
 * Makes the text that a connection sends from the files in sql/, which the build embeds:
 *   - Each name of ours gets its schema and prefix, quoted. In the body of a routine it gets only
 *     the prefix if the dialect has local_bodies, so that a copy of the schema uses its own tables.
 *   - A word in braces becomes the text of another file, or the marker of a parameter (steps.h).
 *   - In a routine it may be a step. The parameters of that step are variables of the routine:
 *     {limit} becomes v_limit.
 * Values never become a part of the text. */
#include "core/statements.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char OUR[] = "rowlock_";

/* name is the name of the file, of length bytes. It need not be terminated. */
static const char *find_text(const struct rlk_dialect *dialect, const char *name, size_t length)
{
    for (size_t i = 0; dialect && i < dialect->count; i++) {
        const struct rlk_statement *statement = &dialect->statements[i];
        if (strlen(statement->step) == length && memcmp(statement->step, name, length) == 0)
            return statement->text;
    }
    return NULL;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where the next of our names begins, or NULL. */
static const char *next_name(const char *text, const char *from)
{
    for (const char *at = strstr(from, OUR); at; at = strstr(at + 1, OUR))
        if (at == text || !in_word(at[-1]))
            return at;
    return NULL;
}

/* The first line of a routine's body ends with BEGIN. The lines that follow it are indented, except
 * the last. */
static bool in_body(const char *text, const char *at)
{
    const char *line = at;
    while (line > text && (line[-1] != '\n' || *line == ' '))
        line--;
    size_t length = strcspn(line, "\n");
    return line < at && length >= 5 && memcmp(line + length - 5, "BEGIN", 5) == 0;
}

static char *append(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}

static char *append_quoted(char *out, const char *text, size_t length, char quote)
{
    *out++ = quote;
    out = append(out, text, length);
    *out++ = quote;
    return out;
}

/* options.c refuses quotes in schema and prefix, so they need no escaping. */
static char *qualify(const char *text, const struct rlk_texts *texts, char quote, bool local_bodies)
{
    size_t names = 0;
    for (const char *at = next_name(text, text); at; at = next_name(text, at + 1))
        names++;
    size_t each = strlen(texts->schema) + strlen(texts->prefix) + 5;
    char *whole = rlk_alloc(strlen(text) + names * each + 1);
    if (!whole)
        return NULL;

    char *out = whole;
    const char *from = text;
    for (const char *at = next_name(text, text); at; at = next_name(text, from)) {
        const char *word = at + strlen(OUR);
        size_t length = 0;
        while (in_word(word[length]))
            length++;
        out = append(out, from, (size_t)(at - from));
        if (!local_bodies || !in_body(text, at)) {
            out = append_quoted(out, texts->schema, strlen(texts->schema), quote);
            *out++ = '.';
        }
        *out++ = quote;
        out = append(out, texts->prefix, strlen(texts->prefix));
        out = append(out, word, length);
        *out++ = quote;
        from = word + length;
    }
    append(out, from, strlen(from) + 1);
    return whole;
}

/* ---- words in braces */

/* The next word in braces, or NULL. */
static const char *next_word(const char *from, size_t *length)
{
    for (const char *at = strchr(from, '{'); at; at = strchr(at + 1, '{')) {
        for (*length = 0; in_word(at[1 + *length]); ++*length)
            ;
        if (*length > 0 && at[1 + *length] == '}')
            return at + 1;
    }
    return NULL;
}

/* The index of a parameter, and whether the driver gives its value. -1: there is no such one. */
static int find_parameter(const char *parameters, const char *word, size_t length, bool *own)
{
    int index = 0;
    for (const char *at = parameters; *at;) {
        size_t here = strcspn(at, " ");
        *own = *at == '!';
        if (here == length + *own && memcmp(at + *own, word, length) == 0)
            return index;
        index += *at != ';';
        at += here + (at[here] == ' ');
    }
    return -1;
}

static int find_common(const char *word, size_t length)
{
    if (length == 6 && memcmp(word, "schema", length) == 0)
        return RLK_OF_SCHEMA;
    if (length == 6 && memcmp(word, "prefix", length) == 0)
        return RLK_OF_PREFIX;
    return -1;
}

/* The text of another file. NULL: the word is a parameter, or unknown. */
static const char *find_piece(const struct rlk_dialect *dialect, const struct rlk_step_info *step,
                              const char *word, size_t length)
{
    bool own = false;
    bool given = find_parameter(step->parameters, word, length, &own) >= 0;
    return given || find_common(word, length) >= 0 ? NULL : find_text(dialect, word, length);
}

/* In a routine the piece is a step, which begins with its name in a comment. */
static bool is_step(const struct rlk_step_info *step, const char *piece)
{
    return step == &rlk_steps[RLK_STEP_SCHEMA] && strncmp(piece, "/*", 2) == 0;
}

/* Lines of a step in a routine stand further to the right. A line at the left edge would end it. */
enum { INDENT = 12 };

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
        lines++;
    return lines;
}

/* An upper bound for the text with the texts of other files. */
static size_t room_for(const struct rlk_dialect *dialect, const struct rlk_step_info *step,
                       const char *text)
{
    size_t room = strlen(text) + 1, length = 0;
    for (const char *word = next_word(text, &length); word; word = next_word(word, &length)) {
        const char *piece = find_piece(dialect, step, word, length);
        room += piece ? room_for(dialect, step, piece) : 0;
        room += piece && is_step(step, piece) ? count_lines(piece) * INDENT : 0;
    }
    return room;
}

/* Fits the text of a step into a routine, in place. Returns the end. */
static char *fit(char *text, char *end)
{
    size_t length = 0;
    *end = '\0';
    for (const char *word = next_word(text, &length); word; word = next_word(word, &length)) {
        char *brace = text + (word - 1 - text);
        memmove(brace + 2, word, length);
        brace[0] = 'v';
        brace[1] = '_';
    }
    for (char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
        memmove(line + 1 + INDENT, line + 1, (size_t)(end - line));
        memset(line + 1, ' ', INDENT);
        end += INDENT;
    }
    return end;
}

/* Inserts the texts of other files, without their last newline. Returns the end. */
static char *include(const struct rlk_dialect *dialect, const struct rlk_step_info *step,
                     const char *text, char *out)
{
    const char *from = text;
    size_t length = 0;
    for (const char *word = next_word(text, &length); word; word = next_word(word, &length)) {
        const char *piece = find_piece(dialect, step, word, length);
        if (!piece)
            continue;
        out = append(out, from, (size_t)(word - 1 - from));
        char *begin = out;
        bool fits = is_step(step, piece);
        out = include(dialect, step, fits ? strchr(piece, '\n') + 1 : piece, out);
        while (out[-1] == '\n')
            out--;
        if (fits)
            out = fit(begin, out);
        from = word + length + 1;
    }
    out = append(out, from, strlen(from));
    *out = '\0';
    return out;
}

/* If markers have numbers, a parameter that occurs again gets the same number. */
static size_t number_of(struct rlk_order *order, uint8_t from, bool numbered)
{
    for (size_t i = 0; numbered && i < order->count; i++)
        if (order->from[i] == from)
            return i + 1;
    order->from[order->count] = from;
    return ++order->count;
}

/* Replaces each parameter by a marker, in place: a marker is never longer. */
static void mark(char *text, const struct rlk_step_info *step, const struct rlk_driver *driver,
                 struct rlk_order *order)
{
    char *out = text;
    const char *from = text;
    size_t length = 0;
    for (const char *word = next_word(text, &length); word; word = next_word(word, &length)) {
        bool own = false;
        int index = find_parameter(step->parameters, word, length, &own);
        if (index < 0)
            index = find_common(word, length);
        if (index < 0 || order->count == RLK_MARKERS)
            continue;
        size_t before = (size_t)(word - 1 - from);
        memmove(out, from, before);
        out += before;
        size_t number = number_of(order, (uint8_t)index, driver->numbered);
        if (own)
            order->own = (uint8_t)number;
        *out++ = driver->marker;
        if (driver->numbered && number > 9)
            *out++ = (char)('0' + number / 10);
        if (driver->numbered)
            *out++ = (char)('0' + number % 10);
        from = word + length + 1;
    }
    memmove(out, from, strlen(from) + 1);
}

/* ---- all texts */

/* The text for tables of the version before. NULL: the step has one text for both. */
static const char *find_before(const struct rlk_dialect *dialect, enum rlk_step step)
{
    char name[64];
    int length = snprintf(name, sizeof name, "%s_before", rlk_steps[step].name);
    return find_text(dialect, name, (size_t)length);
}

static char *text_of(const struct rlk_dialect *dialect, enum rlk_step step, const char *source,
                     struct rlk_texts *texts, const struct rlk_driver *driver)
{
    /* The braces of a template mean other things. */
    if (rlk_steps[step].is & RLK_TEMPLATE)
        return qualify(source, texts, driver->quote, dialect->local_bodies);
    char *whole = rlk_alloc(room_for(dialect, &rlk_steps[step], source));
    if (!whole)
        return NULL;
    include(dialect, &rlk_steps[step], source, whole);
    char *text = qualify(whole, texts, driver->quote, dialect->local_bodies);
    rlk_free(whole);
    texts->order[step] = (struct rlk_order){0};
    if (text)
        mark(text, &rlk_steps[step], driver, &texts->order[step]);
    return text;
}

void rlk_texts_clear(struct rlk_texts *texts)
{
    for (int step = 0; step < RLK_STEP_COUNT; step++) {
        if (!texts->shared)
            rlk_free(texts->sql[step]);
        texts->sql[step] = NULL;
    }
}

int rlk_texts_fill(struct rlk_texts *texts, const struct rlk_driver *driver)
{
    const struct rlk_dialect *dialect = rlk_dialect_find(driver->name);
    for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT; step++) {
        const char *source = find_text(dialect, rlk_steps[step].name, strlen(rlk_steps[step].name));
        if (!source)
            continue;
        texts->sql[step] = text_of(dialect, (enum rlk_step)step, source, texts, driver);
        if (!texts->sql[step]) {
            /* The next call makes all of them. */
            rlk_texts_clear(texts);
            return -1;
        }
    }
    return 0;
}

int rlk_texts_choose(struct rlk_texts *texts, const struct rlk_driver *driver, bool before)
{
    const struct rlk_dialect *dialect = rlk_dialect_find(driver->name);
    for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT; step++) {
        const char *source = find_before(dialect, (enum rlk_step)step);
        if (!source)
            continue;
        if (!before)
            source = find_text(dialect, rlk_steps[step].name, strlen(rlk_steps[step].name));
        char *text = text_of(dialect, (enum rlk_step)step, source, texts, driver);
        if (!text)
            return -1;
        rlk_free(texts->sql[step]);
        texts->sql[step] = text;
    }
    texts->before = before;
    return 0;
}

/* ---- for the database's own shell */

size_t rlk_statement_length(const char *text)
{
    size_t length = 0;
    for (const char *line = text; *line; line += length) {
        length = strcspn(line, "\n");
        bool last = length > 0 && line[0] != ' ' && line[length - 1] == ';';
        length += line[length] == '\n';
        if (last)
            return (size_t)(line + length - text);
    }
    return strlen(text);
}

/* The blank separates the delimiter from the end of a comment. */
void rlk_write_script(const struct rlk_driver *driver, const char *sql,
                      int (*write)(void *context, const char *sql, size_t length), void *context)
{
    static const char begin[] = "DELIMITER //\n", over[] = " //\n", end[] = "DELIMITER ;\n";
    const bool delimiters = rlk_dialect_find(driver->name)->delimiters;
    bool stopped = delimiters && write(context, begin, sizeof begin - 1) != 0;
    size_t length = 0;
    for (; *sql && !stopped; sql += length) {
        length = rlk_statement_length(sql);
        bool ends = delimiters && length > 1 && memcmp(sql + length - 2, ";\n", 2) == 0;
        stopped = write(context, sql, ends ? length - 2 : length) != 0 ||
                  (ends && write(context, over, sizeof over - 1) != 0);
    }
    if (delimiters && !stopped)
        write(context, end, sizeof end - 1);
}
