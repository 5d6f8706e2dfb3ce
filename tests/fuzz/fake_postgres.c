/* SPDX-License-Identifier: MIT
 * A server that speaks PostgreSQL's protocol. */
#include "fake.h"

static char sql[200000], tx; /* tx: the state of the transaction */

static void put_number(struct fake_link *l, uint32_t number, size_t size)
{
    for (size_t i = size; i > 0; i--)
        fake_put(l, &(unsigned char){(unsigned char)(number >> (8 * (i - 1)))}, 1);
}

static void put_text(struct fake_link *l, const char *text)
{
    fake_put(l, text, strlen(text) + 1);
}

/* Returns where the message began, for end(). */
static size_t begin(struct fake_link *l, char type)
{
    fake_put(l, &type, 1);
    put_number(l, 0, 4);
    return l->length - 4;
}

static void end(struct fake_link *l, size_t from)
{
    size_t behind = l->length;
    l->length = from;
    put_number(l, (uint32_t)(behind - from), 4);
    l->length = behind;
}

static void say(struct fake_link *l, char type, const char *text)
{
    size_t from = begin(l, type);
    if (text)
        put_text(l, text);
    end(l, from);
}

static void ready(struct fake_link *l)
{
    size_t from = begin(l, 'Z');
    fake_put(l, &tx, 1);
    end(l, from);
}

static uint32_t oid_of(char type)
{
    switch (type) {
    case 'i':
    case 'm':
    case 'n':
        return 20;
    case 'b':
        return 16;
    case 'd':
        return 1700;
    case 'y':
        return 17;
    default:
        return 25;
    }
}

static void put_table(struct fake_link *l, const struct fake_table *t)
{
    size_t from = begin(l, 'T');
    char tag[40];
    put_number(l, (uint32_t)t->columns, 2);
    for (size_t i = 0; i < t->columns; i++) {
        put_text(l, "c");
        put_number(l, 0, 4);
        put_number(l, 0, 2);
        put_number(l, oid_of(t->types[i]), 4);
        put_number(l, UINT32_MAX, 2);
        put_number(l, UINT32_MAX, 4);
        put_number(l, 0, 2);
    }
    end(l, from);
    for (size_t row = 0; row < t->rows; row++) {
        from = begin(l, 'D');
        put_number(l, (uint32_t)t->columns, 2);
        for (size_t i = 0; i < t->columns; i++) {
            const char *cell = t->cell[row][i];
            put_number(l, cell ? (uint32_t)strlen(cell) : UINT32_MAX, 4);
            if (cell)
                fake_put(l, cell, strlen(cell));
        }
        end(l, from);
    }
    snprintf(tag, sizeof tag, "SELECT %zu", t->rows);
    say(l, 'C', tag);
}

static void put_error(struct fake_link *l)
{
    static const char *const states[] = {"40001", "42P01", "57P01", "XX000", "23505", ""};
    size_t from = begin(l, 'E');
    put_text(l, "SERROR");
    fake_put(l, "C", 1);
    put_text(l, states[fake_draw(l, sizeof states / sizeof states[0])]);
    put_text(l, "Mno");
    fake_put(l, "", 1);
    end(l, from);
    if (tx == 'T')
        tx = 'E';
}

static void put_garbled(struct fake_link *l, char how)
{
    size_t from = begin(l, how);
    put_number(l, 0, 3);
    end(l, from);
}

static bool begins(const char *word)
{
    return strncmp(sql, word, strlen(word)) == 0;
}

/* A step without an answer of its own is told the number of rows alone. */
static void execute(struct fake_link *l)
{
    static const char *const tags[] = {"INSERT 0 99999999999999999999", "UPDATE", "", "UPDATE -5"};
    struct fake_table t;
    fake_find_step(l, sql);
    bool lies = fake_lies(l);
    if (begins("BEGIN"))
        tx = 'T';
    if (begins("COMMIT") || (begins("ROLLBACK") && !begins("ROLLBACK TO")))
        tx = 'I';
    l->cut = l->cut || (l->seed && fake_draw(l, 100) == 0);
    if (fake_garbled(l))
        put_garbled(l, fake_garbled(l));
    else if (l->step[0] && l->seed && fake_draw(l, 40) == 0)
        put_error(l);
    else if (fake_answer(l, 'p', "tibdy", lies, &t))
        put_table(l, &t);
    else
        say(l, 'C', lies ? tags[fake_draw(l, 4)] : "INSERT 0 1");
}

/* A message without its type, terminated. */
static bool get_message(struct fake_link *l)
{
    unsigned char size[4];
    if (!fake_get(l, size, 4))
        return false;
    size_t length =
        ((size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3]);
    if (length < 4 || length - 4 >= sizeof l->in || !fake_get(l, l->in, length - 4))
        return false;
    l->in[length - 4] = '\0';
    return true;
}

static bool greet(struct fake_link *l)
{
    static const char *const settings[][2] = {{"server_version", "15.3"},
                                              {"client_encoding", "UTF8"},
                                              {"standard_conforming_strings", "on"},
                                              {"integer_datetimes", "on"}};
    if (!get_message(l))
        return false;
    const char *at = (const char *)l->in + 4;
    while (*at && strcmp(at, "database") != 0)
        at += strlen(at) + 1;
    l->seed = *at ? strtoull(at + sizeof "database", NULL, 10) : 0;
    l->state = l->seed;
    tx = 'I';
    size_t from = begin(l, 'R');
    put_number(l, 0, 4);
    end(l, from);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        from = begin(l, 'S');
        put_text(l, settings[i][0]);
        put_text(l, settings[i][1]);
        end(l, from);
    }
    from = begin(l, 'K');
    put_number(l, 4711, 4);
    put_number(l, 1, 4);
    end(l, from);
    ready(l);
    return fake_flush(l);
}

/* Statements are prepared under names; a few are enough. */
enum { NAMES = 200, NAME_ROOM = 40 };
static char names[NAMES][NAME_ROOM], *texts[NAMES];

static size_t place_of(const char *name)
{
    size_t i = 0;
    while (i < NAMES - 1 && texts[i] && strcmp(names[i], name) != 0)
        i++;
    snprintf(names[i], NAME_ROOM, "%s", name);
    return i;
}

static void prepare(struct fake_link *l)
{
    const char *name = (const char *)l->in;
    size_t place = place_of(name);
    free(texts[place]);
    texts[place] = strdup(name + strlen(name) + 1);
    say(l, '1', NULL);
}

static void bind_to(struct fake_link *l)
{
    const char *portal = (const char *)l->in;
    const char *text = texts[place_of(portal + strlen(portal) + 1)];
    snprintf(sql, sizeof sql, "%s", text ? text : "");
    say(l, '2', NULL);
}

static bool serve_message(struct fake_link *l, char type)
{
    switch (type) {
    case 'P':
        prepare(l);
        return true;
    case 'B':
        bind_to(l);
        return true;
    case 'E':
        execute(l);
        return true;
    case 'C':
        say(l, '3', NULL);
        return true;
    case 'Q':
        snprintf(sql, sizeof sql, "%s", (const char *)l->in);
        execute(l);
        ready(l);
        return fake_flush(l);
    case 'S':
        ready(l);
        return fake_flush(l);
    case 'X':
        return false;
    default:
        return true;
    }
}

static void serve(struct fake_link *l)
{
    char type;
    if (greet(l))
        while (fake_get(l, &type, 1) && get_message(l) && serve_message(l, type))
            ;
    for (size_t i = 0; i < NAMES; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

int fake_postgres_start(void)
{
    return fake_start(serve);
}
