/* SPDX-License-Identifier: MIT
 * One thread, one connection after another. */
#include "fake.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

_Atomic int64_t fake_attempt;

uint64_t fake_draw(struct fake_link *l, uint64_t below)
{
    l->state = l->state * 6364136223846793005u + 1442695040888963407u;
    return (l->state >> 33) % below;
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

static const char *cell_of(const struct fake_table *t, const char *said)
{
    return strcmp(said, "N") == 0   ? t->now
           : strcmp(said, "E") == 0 ? t->expires
           : strcmp(said, "A") == 0 ? t->attempt
           : strcmp(said, "~") == 0 ? NULL
                                    : said;
}

static void fill(struct fake_table *t, const struct fake_truth *truth)
{
    int64_t now = (int64_t)time(NULL) * 1000000;
    *t = (struct fake_table){.rows = truth->rows[0] != '\0', .columns = strlen(truth->types)};
    snprintf(t->now, sizeof t->now, "%lld", (long long)now);
    snprintf(t->expires, sizeof t->expires, "%lld", (long long)now + 30000000);
    snprintf(t->attempt, sizeof t->attempt, "%lld", (long long)fake_attempt);
    memset(t->far, 'x', sizeof t->far - 1);
    memset(t->types, 't', FAKE_COLUMNS);
    memcpy(t->types, truth->types, t->columns);
    snprintf(t->text, sizeof t->text, "%s", truth->rows);
    size_t column = 0;
    for (char *at = t->text, *end; at && t->rows > 0; at = end) {
        end = strpbrk(at, "|;");
        char stop = end ? *end : '\0';
        if (end)
            *end++ = '\0';
        t->cell[t->rows - 1][column++] = cell_of(t, at);
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

static const struct fake_truth *find_truth(struct fake_link *l, const struct fake_truth *truths)
{
    const struct fake_truth *found = NULL;
    for (; truths->step; truths++)
        if (strcmp(truths->step, l->step) == 0 && (!found || (l->seed && fake_draw(l, 2))))
            found = truths;
    return found;
}

bool fake_answer(struct fake_link *l, const struct fake_truth *truths, const char *letters,
                 bool lies, struct fake_table *out)
{
    const struct fake_truth *truth = find_truth(l, truths);
    if (!truth)
        return false;
    fill(out, truth);
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

static int listener;
static void (*serve_link)(struct fake_link *l);

static void *serve_all(void *context)
{
    static struct fake_link link;
    for (;;) {
        link.fd = accept(listener, NULL, NULL);
        link.length = 0;
        link.cut = false;
        serve_link(&link);
        close(link.fd);
    }
    return context;
}

int fake_start(void (*serve)(struct fake_link *l))
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    pthread_t thread;
    serve_link = serve;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        pthread_create(&thread, NULL, serve_all, NULL) != 0)
        return -1;
    pthread_detach(thread);
    return ntohs(address.sin_port);
}
