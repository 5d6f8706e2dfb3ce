/* SPDX-License-Identifier: MIT
 * A server that speaks MySQL's protocol, as MariaDB does. It lies in well-formed packets: MariaDB's client library
 * itself reads beyond one that ends too early. */
#include "fake.h"

/* A letter for the type of each column: i an integer, u one without a sign, s a short one, r a double, d a decimal,
 * t a text, j JSON, y bytes, c a time, o NULL, q a type that there is not. */
static const char letters[] = "iusrdtjycoq";

enum { IN_TRANSACTION = 1, AUTOCOMMIT = 2, MORE_RESULTS = 8 };
static unsigned status;
static unsigned char sequence;

/* ---- packets */

static void put_number(struct fake_link *l, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        fake_put(l, &(unsigned char){(unsigned char)(number >> (8 * i))}, 1);
}

/* Returns where the packet began, for end(). */
static size_t begin(struct fake_link *l)
{
    put_number(l, 0, 3);
    put_number(l, sequence++, 1);
    return l->length;
}

static void end(struct fake_link *l, size_t from)
{
    size_t size = l->length - from;
    l->length = from - 4;
    put_number(l, size, 3);
    l->length = from + size;
}

static void put_length(struct fake_link *l, uint64_t length)
{
    if (length < 251) {
        put_number(l, length, 1);
    } else {
        put_number(l, 0xFE, 1);
        put_number(l, length, 8);
    }
}

static void put_text(struct fake_link *l, const char *text)
{
    put_length(l, strlen(text));
    fake_put(l, text, strlen(text));
}

static void put_ok(struct fake_link *l, uint64_t changed, const char *info)
{
    size_t from = begin(l);
    put_number(l, 0, 1);
    put_length(l, changed);
    put_length(l, 0);
    put_number(l, status, 2);
    put_number(l, 0, 2);
    fake_put(l, info, strlen(info));
    end(l, from);
}

static void put_end_of_rows(struct fake_link *l, unsigned more)
{
    size_t from = begin(l);
    put_number(l, 0xFE, 1);
    put_number(l, 0, 2);
    put_number(l, status | more, 2);
    end(l, from);
}

static void put_error(struct fake_link *l)
{
    static const uint16_t codes[] = {1213, 1205, 1146, 1317, 1045, 2013, 1615, 1243,
                                     1062, 1180, 1290, 3024, 1047, 1927, 1064, 0};
    enum { CODES = sizeof codes / sizeof codes[0] };
    uint64_t which = fake_draw(l, 2 * CODES);
    size_t from = begin(l);
    put_number(l, 0xFF, 1);
    put_number(l, which < CODES ? codes[which] : fake_draw(l, 6000), 2);
    fake_put(l, "#HY000no", 8);
    end(l, from);
    if (fake_draw(l, 2))
        status &= ~(unsigned)IN_TRANSACTION;
}

/* ---- rows */

/* One column, whose description ends within itself. */
static void put_garbled(struct fake_link *l)
{
    size_t from = begin(l);
    put_number(l, 1, 1);
    end(l, from);
    from = begin(l);
    put_number(l, 0xFAFAFA, 3);
    end(l, from);
}

static unsigned char type_of(char letter)
{
    static const unsigned char types[] = {8, 8, 2, 5, 246, 253, 245, 252, 12, 6, 200};
    const char *at = strchr(letters, letter);
    return types[at ? at - letters : 0];
}

static void put_column(struct fake_link *l, char letter)
{
    bool text = letter == 't' || letter == 'j';
    size_t from = begin(l);
    put_text(l, "def");
    for (int i = 0; i < 3; i++)
        put_text(l, "");
    put_text(l, "c");
    put_text(l, "");
    put_number(l, 12, 1);
    put_number(l, text ? 45 : 63, 2);
    put_number(l, letter == 'd' ? 20 : 255, 4);
    put_number(l, type_of(letter), 1);
    put_number(l, letter == 'u' ? 32 : text ? 0 : 128, 2);
    put_number(l, 0, 3);
    end(l, from);
}

static void put_columns(struct fake_link *l, const char *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_column(l, types[i]);
    put_end_of_rows(l, 0);
}

static void put_cell(struct fake_link *l, char letter, const char *cell)
{
    double real = strtod(cell, NULL);
    if (letter == 'i' || letter == 'u')
        put_number(l, (uint64_t)strtoll(cell, NULL, 10), 8);
    else if (letter == 's')
        put_number(l, (uint64_t)strtoll(cell, NULL, 10), 2);
    else if (letter == 'r')
        fake_put(l, &real, sizeof real);
    else if (letter == 'c')
        put_number(l, 0, 1);
    else
        put_text(l, cell);
}

static void put_row(struct fake_link *l, const struct fake_table *t, size_t row)
{
    unsigned char nulls[(FAKE_COLUMNS + 9) / 8] = {0};
    size_t from = begin(l);
    for (size_t i = 0; i < t->columns; i++)
        if (!t->cell[row][i] || t->types[i] == 'o')
            nulls[(i + 2) / 8] |= (unsigned char)(1 << (i + 2) % 8);
    put_number(l, 0, 1);
    fake_put(l, nulls, (t->columns + 9) / 8);
    for (size_t i = 0; i < t->columns; i++)
        if (t->cell[row][i] && t->types[i] != 'o')
            put_cell(l, t->types[i], t->cell[row][i]);
    end(l, from);
}

static void put_text_row(struct fake_link *l, const struct fake_table *t, size_t row)
{
    size_t from = begin(l);
    for (size_t i = 0; i < t->columns; i++) {
        if (t->cell[row][i])
            put_text(l, t->cell[row][i]);
        else
            put_number(l, 0xFB, 1);
    }
    end(l, from);
}

static void put_table(struct fake_link *l, const struct fake_table *t, bool text, unsigned more)
{
    size_t from = begin(l);
    put_length(l, t->columns);
    end(l, from);
    put_columns(l, t->types, t->columns);
    for (size_t row = 0; row < t->rows; row++)
        (text ? put_text_row : put_row)(l, t, row);
    put_end_of_rows(l, more);
}

/* ---- statements */

/* They are prepared under numbers; that many are enough. */
enum { NUMBERS = 200 };
static char *texts[NUMBERS];
static uint32_t prepared;

static bool is_call(const char *sql)
{
    return strstr(sql, "CALL ") != NULL;
}

static size_t count_parameters(const char *sql)
{
    size_t count = 0;
    bool quoted = false;
    for (; *sql; sql++) {
        quoted = quoted != (*sql == '\'');
        count += *sql == '?' && !quoted;
    }
    return count;
}

/* What it says of columns here must be so when the statement is executed. A procedure's are not told. */
static void prepare(struct fake_link *l, const char *sql)
{
    struct fake_table t = {.columns = 0};
    uint32_t number = ++prepared;
    size_t parameters = count_parameters(sql);
    free(texts[number % NUMBERS]);
    texts[number % NUMBERS] = strdup(sql);
    fake_find_step(l, sql);
    if (is_call(sql) || !fake_answer(l, 'm', letters, l->seed && !fake_draw(l, 8), &t))
        t.columns = 0;
    size_t from = begin(l);
    put_number(l, 0, 1);
    put_number(l, number, 4);
    put_number(l, t.columns, 2);
    put_number(l, parameters, 2);
    put_number(l, 0, 3);
    end(l, from);
    if (parameters > 0) {
        char types[parameters];
        memset(types, 't', parameters);
        put_columns(l, types, parameters);
    }
    if (t.columns > 0)
        put_columns(l, t.types, t.columns);
}

/* A procedure answers with its rows, and that it has ended; one that lies with more of either, or without end. */
static void put_call(struct fake_link *l, const struct fake_table *t, bool lies)
{
    for (bool endless = lies && fake_draw(l, 50) == 0; endless; endless = fake_flush(l))
        put_table(l, t, false, MORE_RESULTS);
    for (uint64_t more = lies ? fake_draw(l, 3) : 1; more > 0; more--)
        put_table(l, t, false, MORE_RESULTS);
    put_ok(l, 0, "");
}

static void put_changed(struct fake_link *l, bool lies)
{
    static const char *const infos[] = {"", "Rows matched: 2  Changed: 1  Warnings: 0",
                                        "Changed: -5", "Changed: 99999999999999999999"};
    static const uint64_t changed[] = {0, 1, 2, UINT64_MAX, INT64_MAX};
    bool many = strncmp(l->step, "rows_", 5) == 0;
    if (lies)
        put_ok(l, changed[fake_draw(l, 5)], infos[fake_draw(l, 4)]);
    else
        put_ok(l, many ? 2 : 1, "");
}

static void execute(struct fake_link *l, const char *sql)
{
    struct fake_table t;
    fake_find_step(l, sql);
    bool lies = fake_lies(l);
    if (fake_garbled(l))
        put_garbled(l);
    else if (l->seed && fake_draw(l, 40) == 0)
        put_error(l);
    else if (!fake_answer(l, 'm', letters, lies, &t))
        put_changed(l, lies);
    else if (is_call(sql))
        put_call(l, &t, lies);
    else if (t.columns == 0)
        put_ok(l, 0, "");
    else
        put_table(l, &t, false, 0);
}

/* What a connection asks about itself. */
static void tell(struct fake_link *l, const char *sql)
{
    struct fake_table t;
    strcpy(l->step, strncmp(sql, "SHOW", 4) == 0 ? "SHOW" : "SELECT");
    fake_answer(l, 'm', "t", l->seed && fake_draw(l, 8) == 0, &t);
    if (t.columns > 0)
        put_table(l, &t, true, 0);
    else
        put_ok(l, 0, "");
}

static void query(struct fake_link *l, const char *sql)
{
    struct fake_table t;
    fake_find_step(l, sql);
    if (strncmp(sql, "START", 5) == 0)
        status |= IN_TRANSACTION;
    if (strncmp(sql, "COMMIT", 6) == 0 ||
        (strncmp(sql, "ROLLBACK", 8) == 0 && !strstr(sql, " TO ")))
        status &= ~(unsigned)IN_TRANSACTION;
    if (l->seed && fake_draw(l, 100) == 0)
        put_error(l);
    else if (fake_answer(l, 'm', letters, fake_lies(l), &t) && t.columns > 0)
        put_table(l, &t, true, 0);
    else if (strncmp(sql, "SHOW", 4) == 0 || strncmp(sql, "SELECT", 6) == 0)
        tell(l, sql);
    else
        put_ok(l, 0, "");
}

/* ---- the connection */

static bool get_packet(struct fake_link *l)
{
    unsigned char head[4];
    if (!fake_get(l, head, 4))
        return false;
    size_t size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    sequence = (unsigned char)(head[3] + 1);
    if (size >= sizeof l->in || !fake_get(l, l->in, size))
        return false;
    l->in[size] = '\0';
    return true;
}

static bool greet(struct fake_link *l)
{
    enum { CAPABLE = 0xFA20B };
    static const char version[] = "5.5.5-10.11.6-MariaDB";
    sequence = 0;
    status = AUTOCOMMIT;
    size_t from = begin(l);
    put_number(l, 10, 1);
    fake_put(l, version, sizeof version);
    put_number(l, 99, 4);
    fake_put(l, "12345678", 9);
    put_number(l, CAPABLE & 0xFFFF, 2);
    put_number(l, 45, 1);
    put_number(l, status, 2);
    put_number(l, CAPABLE >> 16, 2);
    put_number(l, 21, 1);
    fake_put(l, (const char[10]){0}, 10);
    fake_put(l, "123456789012", 13);
    fake_put(l, "mysql_native_password", 22);
    end(l, from);
    if (!fake_flush(l) || !get_packet(l))
        return false;
    const char *user = (const char *)l->in + 32, *password = user + strlen(user) + 1;
    l->seed = strtoull(password + 1 + (unsigned char)*password, NULL, 10);
    l->state = l->seed;
    put_ok(l, 0, "");
    return fake_flush(l);
}

static bool serve_command(struct fake_link *l)
{
    enum { QUIT = 1, QUERY = 3, PREPARE = 22, EXECUTE = 23, LONG_DATA = 24, CLOSE = 25 };
    const char *text = (const char *)l->in + 1;
    const char *sql = texts[(l->in[1] | (uint32_t)l->in[2] << 8) % NUMBERS];
    l->cut = l->seed && fake_draw(l, 100) == 0;
    switch (l->in[0]) {
    case QUIT:
        return false;
    case QUERY:
        query(l, text);
        break;
    case PREPARE:
        prepare(l, text);
        break;
    case EXECUTE:
        execute(l, sql ? sql : "");
        break;
    case LONG_DATA:
    case CLOSE:
        return true;
    default:
        put_ok(l, 0, "");
    }
    return fake_flush(l);
}

static void serve(struct fake_link *l)
{
    prepared = 0;
    if (greet(l))
        while (get_packet(l) && serve_command(l))
            ;
    for (size_t i = 0; i < NUMBERS; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

int fake_mysql_start(void)
{
    return fake_start(serve);
}
