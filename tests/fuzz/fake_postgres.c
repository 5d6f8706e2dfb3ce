/* SPDX-License-Identifier: MIT
 * One thread, one connection after another. */
#include "fake_postgres.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS_MAX = 48, ROWS_MAX = 8, BYTES_MAX = 1 << 20 };

/* ---- what a server that does not lie would say: | between cells, ; between rows, ~ for NULL, N for the time
 * now and E for the end of a lease. A letter for the type of each column, as in the driver; t, where there is none. */

#define GRANT "nightly|0|0|ownerx|7|1700000000000000|E|30000000|0|host|42|prog|note|N"
#define KIND(kind, type) ";~|" kind "|f|0|" type "|%|%|%|%|~|~|~"
#define COLUMN(name, kind, most, type, uniques) \
    name "|" kind "|t|" most "|" type "|%|%|%|%|" uniques "|public|# ~ %"

static const struct answer {
    const char *step, *types, *rows;
} answers[] = {
    {"hello", "tbbtt", "150000|t|f|123 1.5|x"},
    {"meta", "nti", "1|0123456789abcdef0123456789abcdef|0"},
    {"acquire", "ibbbtintimmmitittm", "8|~|~|f|~|~|~|~|~|~|~|~|~|~|~|~|~|N"},
    {"acquire_usual", "ibbbtintimmmitittm", "8|~|~|f|~|~|~|~|~|~|~|~|~|~|~|~|~|N"},
    {"acquire_all", "iimm", "1|8|E|N;2|9|E|N"},
    {"enqueue", "inb", "5|0|t"},
    {"leave", "b", "t"},
    {"release", "b", "t"},
    {"withdraw", "b", "t"},
    {"downgrade", "b", "t"},
    {"renew", "mmm", "E|0|N"},
    {"verify", "mm", "E|N"},
    {"renew_all", "im", "1|N"},
    {"list", "tintimmmitittm", GRANT},
    {"expired", "tintimmmitittm", GRANT},
    {"sweep", "tintimmmitittm", GRANT},
    {"break", "tintimmmitittm", GRANT},
    {"waiters", "tiintmmtittm", "nightly|5|77|0|o|1|E|h|1|p|n|N"},
    {"last", "im", "7|N"},
    {"fold", "n", "0"},
    {"guard", "ib", "8|t"},
    {"raise", "i", "1000000"},
    {"objects", "ttb", "table x|it has a trigger|f"},
    {"facts", "ttbmttbtbbitbb", "PostgreSQL 15|read committed|f|N|on|on|t|C|t|t|0|x|f|f"},
    {"table", "ttbitttttttt",
     COLUMN("id", "int", "9223372036854775807", "bigint", "1/1") ";" COLUMN(
         "price", "decimal", "0", "numeric", "~") ";" COLUMN("version", "int",
                                                             "9223372036854775807", "bigint", "~")
         KIND("int", "bigint") KIND("text", "text")},
    {"row_read", "idi", "1|19.90|3"},
    {"row_update", "i", "4"},
    {"row_insert", "i", "4"},
    {"row_remove", "i", "4"},
    {"rows_update", "ii", "1|4;2|4"},
    {"rows_insert", "ii", "1|4;2|4"},
    {"rows_remove", "ii", "1|4;2|4"},
    {"rows_find", "iibi", "1|3|f|0"},
    {"rows_page", "idi", "1|19.90|3;2|1.10|3"},
    {"rows_count", "i", "2"},
    {"once_look", "itby", "1|fp|f|~"},
};

/* What stands here for a cell instead. */
static const char *const odd[] = {"",
                                  "-1",
                                  "0",
                                  "1",
                                  "2",
                                  "t",
                                  "9223372036854775807",
                                  "-9223372036854775808",
                                  "99999999999999999999",
                                  "2147483648",
                                  "-2147483649",
                                  "4294967296",
                                  "\xFF\xFE",
                                  "NaN",
                                  "1e400",
                                  "\\x",
                                  "\\xzz",
                                  "{",
                                  "% % %",
                                  "'\"`\\",
                                  NULL};
enum { ODD = sizeof odd / sizeof odd[0] };

struct table {
    size_t rows, columns;
    const char *cell[ROWS_MAX][COLUMNS_MAX]; /* NULL: it is NULL */
    char types[COLUMNS_MAX + 1];
    char text[4000], now[24], expires[24], far[400]; /* what cells point to */
};

struct link {
    int fd;
    uint64_t seed, state;
    char state_of_tx;
    char sql[200000];
    unsigned char in[200000], out[BYTES_MAX];
    size_t length; /* of out */
    bool cut;
};

static uint64_t draw(struct link *l, uint64_t below)
{
    l->state = l->state * 6364136223846793005u + 1442695040888963407u;
    return (l->state >> 33) % below;
}

/* ---- an answer */

static void fill(struct table *t, const struct answer *a)
{
    int64_t now = (int64_t)time(NULL) * 1000000;
    *t = (struct table){.rows = a && a->rows[0]};
    snprintf(t->now, sizeof t->now, "%lld", (long long)now);
    snprintf(t->expires, sizeof t->expires, "%lld", (long long)now + 30000000);
    memset(t->far, 'x', sizeof t->far - 1);
    memset(t->types, 't', COLUMNS_MAX);
    if (!a)
        return;
    memcpy(t->types, a->types, strlen(a->types));
    snprintf(t->text, sizeof t->text, "%s", a->rows);
    size_t column = 0;
    for (char *at = t->text, *end; at; at = end) {
        end = strpbrk(at, "|;");
        char stop = end ? *end : '\0';
        if (end)
            *end++ = '\0';
        const char *cell = strcmp(at, "N") == 0   ? t->now
                           : strcmp(at, "E") == 0 ? t->expires
                           : strcmp(at, "~") == 0 ? NULL
                                                  : at;
        t->cell[t->rows - 1][column++] = cell;
        t->columns = column > t->columns ? column : t->columns;
        if (stop == ';' && t->rows < ROWS_MAX) {
            t->rows++;
            column = 0;
        }
    }
}

static void widen(struct link *l, struct table *t)
{
    size_t more = 1 + draw(l, 20);
    for (; more > 0 && t->columns < COLUMNS_MAX; more--, t->columns++)
        for (size_t row = 0; row < t->rows; row++)
            t->cell[row][t->columns] = odd[draw(l, ODD)];
}

static void distort(struct link *l, struct table *t)
{
    size_t row = draw(l, t->rows + 1), column = draw(l, t->columns + 1);
    switch (draw(l, 8)) {
    case 0:
        t->rows = 0;
        break;
    case 1:
        t->columns = draw(l, t->columns + 1);
        break;
    case 2:
        widen(l, t);
        break;
    case 3: /* the same rows again */
        for (size_t i = t->rows; t->rows > 0 && i < ROWS_MAX; i++)
            memcpy(t->cell[i], t->cell[i - t->rows], sizeof t->cell[i]);
        t->rows = t->rows ? ROWS_MAX : 0;
        break;
    case 4:
        t->types[column % COLUMNS_MAX] = "tibdy"[draw(l, 5)];
        break;
    default:
        if (row < t->rows && column < t->columns)
            t->cell[row][column] = draw(l, 8) ? odd[draw(l, ODD)] : t->far;
    }
}

/* ---- the protocol */

static void put(struct link *l, const void *bytes, size_t size)
{
    if (l->length + size > sizeof l->out)
        return;
    memcpy(l->out + l->length, bytes, size);
    l->length += size;
}

static void put_number(struct link *l, uint32_t number, size_t size)
{
    for (size_t i = size; i > 0; i--)
        put(l, &(unsigned char){(unsigned char)(number >> (8 * (i - 1)))}, 1);
}

static void put_text(struct link *l, const char *text)
{
    put(l, text, strlen(text) + 1);
}

/* Returns where the message began, for end(). */
static size_t begin(struct link *l, char type)
{
    put(l, &type, 1);
    put_number(l, 0, 4);
    return l->length - 4;
}

static void end(struct link *l, size_t from)
{
    size_t behind = l->length;
    l->length = from;
    put_number(l, (uint32_t)(behind - from), 4);
    l->length = behind;
}

static void say(struct link *l, char type, const char *text)
{
    size_t from = begin(l, type);
    if (text)
        put_text(l, text);
    end(l, from);
}

static void ready(struct link *l)
{
    size_t from = begin(l, 'Z');
    put(l, &l->state_of_tx, 1);
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

static void put_table(struct link *l, const struct table *t)
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
                put(l, cell, strlen(cell));
        }
        end(l, from);
    }
    snprintf(tag, sizeof tag, "SELECT %zu", t->rows);
    say(l, 'C', tag);
}

static void put_error(struct link *l)
{
    static const char *const states[] = {"40001", "42P01", "57P01", "XX000", "23505", ""};
    size_t from = begin(l, 'E');
    put_text(l, "SERROR");
    put(l, "C", 1);
    put_text(l, states[draw(l, sizeof states / sizeof states[0])]);
    put_text(l, "Mno");
    put(l, "", 1);
    end(l, from);
    if (l->state_of_tx == 'T')
        l->state_of_tx = 'E';
}

static const struct answer *answer_to(const char *step)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (strcmp(answers[i].step, step) == 0)
            return &answers[i];
    return NULL;
}

static bool begins(const char *sql, const char *word)
{
    return strncmp(sql, word, strlen(word)) == 0;
}

/* Of steps without an answer of their own only the number of rows is told. */
static void execute(struct link *l)
{
    static const char *const tags[] = {"INSERT 0 99999999999999999999", "UPDATE", "", "UPDATE -5"};
    char step[40] = "";
    struct table t;
    const char *comment = strstr(l->sql, "rowlock:");
    if (comment)
        sscanf(comment, "rowlock:%39[a-z_]", step);
    const struct answer *a = answer_to(step);
    bool first = strcmp(step, "hello") == 0 || strcmp(step, "meta") == 0;
    bool lies = l->seed && draw(l, first ? 40 : 2) == 0;
    if (begins(l->sql, "BEGIN"))
        l->state_of_tx = 'T';
    if (begins(l->sql, "COMMIT") || (begins(l->sql, "ROLLBACK") && !begins(l->sql, "ROLLBACK TO")))
        l->state_of_tx = 'I';
    fill(&t, strcmp(step, "objects") == 0 && !lies ? NULL : a);
    for (size_t changes = lies ? 1 + draw(l, 3) : 0; changes > 0; changes--)
        distort(l, &t);
    l->cut = l->cut || (l->seed && draw(l, 100) == 0);
    if (comment && l->seed && draw(l, 40) == 0)
        put_error(l);
    else if (a)
        put_table(l, &t);
    else
        say(l, 'C', lies ? tags[draw(l, 4)] : "INSERT 0 1");
}

static bool get(struct link *l, void *out, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = recv(l->fd, (char *)out + got, size - got, 0);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

/* A message without its type, terminated. */
static bool get_message(struct link *l)
{
    unsigned char size[4];
    if (!get(l, size, 4))
        return false;
    size_t length =
        ((size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3]);
    if (length < 4 || length - 4 >= sizeof l->in || !get(l, l->in, length - 4))
        return false;
    l->in[length - 4] = '\0';
    return true;
}

static bool flush_out(struct link *l)
{
    size_t size = l->cut ? draw(l, l->length + 1) : l->length;
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(l->fd, l->out + sent, size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += (size_t)n;
    }
    l->length = 0;
    return !l->cut;
}

static bool greet(struct link *l)
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
    l->state_of_tx = 'I';
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
    return flush_out(l);
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

static void prepare(struct link *l)
{
    const char *name = (const char *)l->in;
    size_t place = place_of(name);
    free(texts[place]);
    texts[place] = strdup(name + strlen(name) + 1);
    say(l, '1', NULL);
}

static void bind_to(struct link *l)
{
    const char *portal = (const char *)l->in;
    const char *text = texts[place_of(portal + strlen(portal) + 1)];
    snprintf(l->sql, sizeof l->sql, "%s", text ? text : "");
    say(l, '2', NULL);
}

static bool serve_message(struct link *l, char type)
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
        snprintf(l->sql, sizeof l->sql, "%s", (const char *)l->in);
        execute(l);
        ready(l);
        return flush_out(l);
    case 'S':
        ready(l);
        return flush_out(l);
    case 'X':
        return false;
    default:
        return true;
    }
}

static void *serve(void *context)
{
    int listener = *(int *)context;
    static struct link link;
    char type;
    for (;;) {
        link.fd = accept(listener, NULL, NULL);
        link.length = 0;
        link.cut = false;
        if (greet(&link))
            while (get(&link, &type, 1) && get_message(&link) && serve_message(&link, type))
                ;
        close(link.fd);
        for (size_t i = 0; i < NAMES; i++) {
            free(texts[i]);
            texts[i] = NULL;
        }
    }
    return NULL;
}

int fake_postgres_start(void)
{
    static int listener;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    pthread_t thread;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        pthread_create(&thread, NULL, serve, &listener) != 0)
        return -1;
    pthread_detach(thread);
    return ntohs(address.sin_port);
}
