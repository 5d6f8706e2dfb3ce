/* SPDX-License-Identifier: MIT
 * One thread, one connection after another. */
#include "fake.h"
#include "quick.h"

#include "core/steps.h"

#include <ctype.h>
#include <sys/socket.h>

/* What stands here for a cell instead. */
/* clang-format off */
static const char *const odd[] = {
    "", "-1", "0", "1", "2", "t", "9223372036854775807", "-9223372036854775808", "99999999999999999999",
    "2147483648", "-2147483649", "4294967296", "\xFF\xFE", "NaN", "1e400", "\\x", "\\xzz", "{", "% % %",
    "'\"`\\", NULL};
/* clang-format on */
enum { ODD = sizeof odd / sizeof odd[0] };

_Atomic int64_t fake_attempt;
_Atomic char fake_garbles;

/* What a server that does not lie would say: | between cells, ; between rows, ~ for NULL, N for the time now, E for
 * the end of a lease, A for fake_attempt, t and f for what is true or not. Of several truths of one step the first is
 * said by a server that never lies. */
#define ROW "nightly|0|0|ownerx|7|1700000000000000|E|30000000|0|host|42|prog|note"
#define GRANT ROW "|N"
#define COLUMN(name, kind, most, type, uniques) \
    name "|" kind "|t|" most "|" type "|%|%|%|%|" uniques "|home|# ~ %;"
#define LONG "9223372036854775807"
#define KIND(kind) "~|" kind "|f|0|text|%|%|%|%|~|~|~"

static const struct truth {
    const char *step, *rows;
    char only; /* as fake_answer() has them; 0: both databases say so */
    const char *types; /* NULL: as the list of steps has them */
} truths[] = {
    {"hello", "150000|t|f|f|123 1.5", 'p', "tbbbt"},
    {"SHOW", "wsrep_on|OFF", 'm', "tt"},
    {"SELECT", "127.0.0.1:1234", 'm', "t"},
    {"meta", "1|1|1|0123456789abcdef0123456789abcdef|0|0|0", 0, NULL},
    {"acquire", "8|~|~|f|N", 0, NULL},
    {"acquire", "~|t|~|f|N|" ROW, 0, NULL},
    {"acquire", "~|f|~|f|N|" ROW, 0, NULL},
    {"acquire_usual", "8|~|~|f|N", 'p', NULL},
    {"acquire_usual", "~|f|f|f|N|" ROW, 'p', NULL},
    {"acquire_met", "9|~|~|~|N", 'p', NULL},
    {"acquire_met", "8|E|30000000|2|N", 'p', NULL},
    {"still_held", "E|30000000|2|N", 'm', NULL},
    {"acquire_all", "1|8|N;2|9|N", 0, NULL},
    {"acquire_all", "2|~|N", 'm', NULL},
    {"enqueue", "5|0|t", 'p', NULL},
    {"enqueue", "5|0|77", 'm', NULL},
    {"leave", "t", 'p', NULL},
    {"await", "1|1", 'm', "ii"},
    {"wake", "1", 'm', NULL},
    {"release", "t", 'p', NULL},
    {"withdraw", "t", 0, NULL},
    {"renew", "E|0|N", 0, NULL},
    {"verify", "E|N", 0, NULL},
    {"renew_all", "0|N", 'm', NULL},
    {"renew_all", "1|N;2|N", 0, NULL},
    {"list", GRANT, 0, NULL},
    {"expired", GRANT, 0, NULL},
    {"sweep", GRANT, 'p', NULL},
    {"sweep_quiet", "2|nightly|0", 'p', NULL},
    {"break", GRANT, 0, NULL},
    {"waiters", "nightly|5|77|0|o|1|E|h|1|p|n|N", 0, NULL},
    {"cycle", "", 'm', NULL},
    {"last", "7|N", 0, NULL},
    {"fold", "0", 0, NULL},
    {"guard", "8|t", 0, NULL},
    {"fence", "t", 'm', NULL},
    {"raise", "1000000", 0, NULL},
    {"events", "", 'm', NULL},
    {"events", "sweep, every 1 hour|~", 'm', NULL},
    {"objects", "", 0, NULL},
    {"objects", "table x|it has a trigger|f", 0, NULL},
    {"facts", "PostgreSQL 15|N|f|read committed|f|logged|t|C|t|on|t|t|f|Neon|none|t|f|f|f|f", 'p',
     NULL},
    {"facts", "MariaDB 10.11.6|N|f|repeatable read|t|InnoDB|t|binary|t|flush 1|t|t|f|", 'm', NULL},
    {"table",
     COLUMN("id", "int", LONG, "bigint", "1/1") COLUMN("price", "decimal", "0", "numeric", "~")
         COLUMN("version", "int", LONG, "bigint", "~") KIND("int") ";" KIND("real") ";" KIND(
             "decimal") ";" KIND("text") ";" KIND("bytes") ";" KIND("bool") ";" KIND("time"),
     0, "ttbitttttttt"},
    {"row_read", "1|19.90|3", 0, "idi"},
    {"row_update", "4", 'p', "i"},
    {"row_insert", "4", 'p', "i"},
    {"row_remove", "4", 'p', "i"},
    {"rows_update", "1|4;2|4", 'p', "ii"},
    {"rows_insert", "0|2", 'p', "ii"},
    {"rows_insert", "0|1;1|4", 'p', "ii"},
    {"rows_remove", "1|4;2|4", 'p', "ii"},
    {"rows_find", "1|3|~|1;2|3|~|2", 0, "iiti"},
    {"rows_marked", "~", 'm', "y"},
    {"rows_marked", ",2", 'm', "y"},
    {"rows_page", "1|19.90|3;2|1.10|3", 0, "idi"},
    {"rows_page_after", "", 0, "idi"},
    {"rows_page_after", "3|19.90|3;4|1.10|3", 0, "idi"},
    {"rows_count", "2", 0, "i"},
    {"once_look", "A||f|~", 0, "iyby"},
    {"once_list", "key||0|t|N|N|N|r", 0, NULL},
    {"walk_load", "", 0, NULL},
    {"walk_load", "0|public.prices\n|i1\n|1|1|1|0|0", 'p', NULL},
    {"walk_load", "0|`home`.`prices`\n|i1\n|1|1|1|0|0", 'm', NULL},
};
enum { TRUTHS = sizeof truths / sizeof truths[0] };

size_t fake_draw(struct fake_link *l, size_t below)
{
    l->state = l->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(l->state >> 33) % below;
}

char fake_garbled(const struct fake_link *l)
{
    bool begins = !l->step[0] || strcmp(l->step, "hello") == 0 || strcmp(l->step, "meta") == 0;
    return begins ? 0 : fake_garbles;
}

void fake_find_step(struct fake_link *l, const char *sql)
{
    const char *comment = strstr(sql, "rowlock:");
    l->step[0] = '\0';
    if (comment)
        sscanf(comment, "rowlock:%39[a-z_]", l->step);
    if (strcmp(l->step, "rows_page") == 0 && strstr(sql, "WHERE"))
        strcpy(l->step, "rows_page_after");
}

bool fake_lies(struct fake_link *l)
{
    bool first = strcmp(l->step, "hello") == 0 || strcmp(l->step, "meta") == 0;
    return l->seed && fake_draw(l, first ? 40 : 2) == 0;
}

/* ---- an answer */

static const char *cell_of(const struct fake_table *t, const char *said, char database)
{
    bool number = database == 'm' && strlen(said) == 1;
    return strcmp(said, "N") == 0             ? t->now
           : strcmp(said, "E") == 0           ? t->expires
           : strcmp(said, "A") == 0           ? t->attempt
           : strcmp(said, "~") == 0           ? NULL
           : number && strcmp(said, "t") == 0 ? "1"
           : number && strcmp(said, "f") == 0 ? "0"
                                              : said;
}

/* Small letters of the list, and nothing between. MySQL has integers for all numbers. */
static void fill_types(struct fake_table *t, const struct truth *truth, char database)
{
    const char *letters = truth->types;
    for (size_t i = RLK_STEP_NONE + 1; i < RLK_STEP_COUNT && !letters; i++)
        if (strcmp(rlk_steps[i].name, truth->step) == 0)
            letters = rlk_steps[i].columns;
    memset(t->types, 't', FAKE_COLUMNS);
    for (const char *at = letters; *at; at++) {
        char type = *at == '.' ? 'b' : (char)tolower((unsigned char)*at);
        if (type != '|')
            t->types[t->columns++] = database == 'm' && strchr("bmn", type) ? 'i' : type;
    }
}

static void fill(struct fake_table *t, const struct truth *truth, char database)
{
    int64_t now = (int64_t)time(NULL) * 1000000;
    *t = (struct fake_table){.rows = truth->rows[0] != '\0'};
    snprintf(t->now, sizeof t->now, "%lld", (long long)now);
    snprintf(t->expires, sizeof t->expires, "%lld", (long long)now + 30000000);
    snprintf(t->attempt, sizeof t->attempt, "%lld", (long long)fake_attempt);
    memset(t->far, 'x', sizeof t->far - 1);
    fill_types(t, truth, database);
    snprintf(t->text, sizeof t->text, "%s", truth->rows);
    size_t column = 0;
    for (char *at = t->text, *end; at && t->rows > 0; at = end) {
        end = strpbrk(at, "|;");
        char stop = end ? *end : '\0';
        if (end)
            *end++ = '\0';
        t->cell[t->rows - 1][column++] = cell_of(t, at, database);
        if (stop != '|') /* an answer may be shorter than its step's columns */
            t->columns = column;
        if (stop == ';') {
            t->rows++;
            column = 0;
        }
    }
}

static void widen(struct fake_link *l, struct fake_table *t)
{
    size_t more = 1 + fake_draw(l, 20);
    for (; more > 0 && t->columns < FAKE_COLUMNS; more--, t->columns++)
        for (size_t row = 0; row < t->rows; row++)
            t->cell[row][t->columns] = odd[fake_draw(l, ODD)];
}

static void distort(struct fake_link *l, struct fake_table *t, const char *letters)
{
    size_t row = fake_draw(l, t->rows + 1), column = fake_draw(l, t->columns + 1);
    switch (fake_draw(l, 8)) {
    case 0:
        t->rows = 0;
        break;
    case 1:
        t->columns = fake_draw(l, t->columns + 1);
        break;
    case 2:
        widen(l, t);
        break;
    case 3: /* the same rows again */
        for (size_t i = t->rows; t->rows > 0 && i < FAKE_ROWS; i++)
            memcpy(t->cell[i], t->cell[i - t->rows], sizeof t->cell[i]);
        t->rows = t->rows ? FAKE_ROWS : 0;
        break;
    case 4:
        t->types[column % FAKE_COLUMNS] = letters[fake_draw(l, strlen(letters))];
        break;
    default:
        if (row < t->rows && column < t->columns)
            t->cell[row][column] = fake_draw(l, 8) ? odd[fake_draw(l, ODD)] : t->far;
    }
}

static const struct truth *find_truth(struct fake_link *l, char database)
{
    const struct truth *found = NULL;
    for (const struct truth *t = truths; t < truths + TRUTHS; t++)
        if (strcmp(t->step, l->step) == 0 && (!t->only || t->only == database) &&
            (!found || (l->seed && fake_draw(l, 2))))
            found = t;
    return found;
}

bool fake_answer(struct fake_link *l, char database, const char *letters, bool lies,
                 struct fake_table *out)
{
    const struct truth *truth = find_truth(l, database);
    if (!truth)
        return false;
    fill(out, truth, database);
    for (size_t changes = lies ? 1 + fake_draw(l, 3) : 0; changes > 0; changes--)
        distort(l, out, letters);
    return true;
}

/* ---- a connection */

void fake_put(struct fake_link *l, const void *bytes, size_t size)
{
    if (l->length + size > sizeof l->out)
        return;
    memcpy(l->out + l->length, bytes, size);
    l->length += size;
}

bool fake_get(struct fake_link *l, void *out, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = recv(l->fd, (char *)out + got, size - got, 0);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

bool fake_flush(struct fake_link *l)
{
    size_t size = l->cut ? fake_draw(l, l->length + 1) : l->length;
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(l->fd, l->out + sent, size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += (size_t)n;
    }
    l->length = 0;
    return !l->cut;
}

/* A program may have one for each database. */
struct server {
    int listener;
    void (*serve)(struct fake_link *l);
    struct fake_link link;
};

static void *serve_all(void *context)
{
    struct server *server = context;
    struct fake_link *link = &server->link;
    for (;;) {
        link->fd = accept(server->listener, NULL, NULL);
        link->length = 0;
        link->cut = false;
        server->serve(link);
        close(link->fd);
    }
    return context;
}

int fake_start(void (*serve)(struct fake_link *l))
{
    static struct server servers[2], *next = servers;
    struct server *server = next++;
    pthread_t thread;
    int port;
    server->serve = serve;
    server->listener = listen_locally(&port);
    if (pthread_create(&thread, NULL, serve_all, server) != 0)
        abort();
    pthread_detach(thread);
    return port;
}
