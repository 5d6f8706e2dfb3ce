/* SPDX-License-Identifier: MIT
 *
 * Statements about the application's own tables, and the transactions around them, as a driver
 * carries them out. What the library makes of that for its users is not here. */
#include "scene.h"
#include "fail_alloc.h"
#include "core/core.h"

enum { MANY_TEXTS = 100, DEADLINE_MS = 10000 };

/* What is remembered of the last row that was given. */
struct answer {
    int rows;
    int wanted; /* rows, then it stops; 0: all */
    size_t count; /* of its cells */
    int64_t first; /* its first cell, INT64_MIN: which is no number */
    rowlock_kind last; /* the kind of its last cell */
};

struct desk {
    const struct contract *c;
    rowlock_db *db;
    void *session; /* the application's; NULL: the connection is the library's own */
    const char *whose;
    struct rlk_call call; /* what the last one said */
    struct answer answer;
    int64_t changed;
};

#define VALUES(...)                       \
    (const rowlock_value[]){__VA_ARGS__}, \
        sizeof((rowlock_value[]){__VA_ARGS__}) / sizeof(rowlock_value)
#define NOTHING NULL, 0

/* ---- asking */

static struct desk open_desk(const struct contract *c, bool adopted)
{
    struct desk d = {.c = c, .whose = adopted ? "adopted" : "own"};
    if (adopted)
        d.session = c->raw->open(c->url);
    d.db = adopted ? must_adopt(c->raw, d.session, NULL) : must_open(c->url);
    return d;
}

static void close_desk(struct desk *d)
{
    rowlock_db_close(d->db);
    if (d->session)
        d->c->raw->close(d->session);
}

static int take_row(void *context, const rowlock_value *cells, size_t count)
{
    struct answer *answer = context;
    answer->rows++;
    answer->count = count;
    answer->first = cells[0].kind == ROWLOCK_INT ? cells[0].number : INT64_MIN;
    answer->last = cells[count - 1].kind;
    return answer->rows == answer->wanted;
}

/* Tests mark each parameter with a question mark. */
static void write_markers(const struct desk *d, const char *sql, char *out, size_t cap)
{
    size_t length = 0;
    int number = 0;
    for (; *sql && length + 8 < cap; sql++) {
        if (*sql == '?' && d->db->driver->marker == '$')
            length += (size_t)snprintf(out + length, cap - length, "$%d", ++number);
        else
            out[length++] = *sql;
    }
    out[length] = '\0';
}

static struct rlk_call call_at(enum rlk_where where)
{
    return (struct rlk_call){.deadline_us = rlk_now_us() + slow_ms(DEADLINE_MS) * 1000,
                             .where = where};
}

/* Texts with the same id must be the same, in this process, for ever. */
static uint64_t new_id(void)
{
    static uint64_t last = (uint64_t)1 << 40;
    return ++last;
}

static enum rlk_class run(struct desk *d, struct rlk_query *query, enum rlk_where where)
{
    char sql[1000];
    write_markers(d, query->sql, sql, sizeof sql);
    query->sql = sql;
    d->answer = (struct answer){.wanted = d->answer.wanted};
    d->call = call_at(where);
    enum rlk_class class = rlk_send(d->db, &d->call, &(struct rlk_ask){.query = query});
    d->changed = query->changed;
    return class;
}

static enum rlk_class ask_at(struct desk *d, enum rlk_where where, uint64_t id, const char *sql,
                             const rowlock_value *values, size_t count)
{
    struct rlk_query query = {.id = id,
                              .sql = sql,
                              .values = values,
                              .count = count,
                              .each = take_row,
                              .context = &d->answer,
                              .changed = -1};
    return run(d, &query, where);
}

static enum rlk_class ask(struct desk *d, uint64_t id, const char *sql, const rowlock_value *values,
                          size_t count)
{
    return ask_at(d, RLK_EITHER, id, sql, values, count);
}

/* Where no rows are wanted. */
static enum rlk_class tell(struct desk *d, const char *sql, const rowlock_value *values,
                           size_t count)
{
    struct rlk_query query = {.sql = sql, .values = values, .count = count, .changed = -1};
    return run(d, &query, RLK_EITHER);
}

static enum rlk_class frame(struct desk *d, enum rlk_frame what)
{
    d->call = call_at(RLK_EITHER);
    return rlk_send(d->db, &d->call, &(struct rlk_ask){.frame = what});
}

/* ---- checks */

static const char *class_name(enum rlk_class class)
{
    static const char *const names[] = {
        "DONE",   "CONTENTION", "UNSENT",    "UNCERTAIN", "STANDBY",     "READONLY",
        "SCHEMA", "MISFIT",     "DENIED",    "INVALID",   "UNSUPPORTED", "IN_TX",
        "NO_TX",  "NOMEM",      "VIOLATION", "REFUSED",
    };
    return names[class];
}

static bool is_class(const struct desk *d, enum rlk_class got, enum rlk_class want,
                     const char *what)
{
    bool passed = tap_is_str(class_name(got), class_name(want), "%s: %s", d->whose, what);
    if (!passed && got != RLK_DONE)
        tap_note("%s", d->call.text);
    return passed;
}

static void has_number(const struct desk *d, int64_t want, const char *what)
{
    tap_is_int(d->answer.first, want, "%s: %s", d->whose, what);
}

static void stand(const struct desk *d, int rows, int sum, const char *what)
{
    tap_is_int(int_on(d->c, "SELECT count(*) * 1000 + coalesce(sum(id), 0) FROM query_rules"),
               rows * 1000 + sum, "%s: %s", d->whose, what);
}

/* Its rules are there to be broken; rows from 1 to so many. */
static void make_rules(const struct contract *c, int rows)
{
    exec_on(c, "DROP TABLE IF EXISTS query_rules");
    exec_on(c,
            "CREATE TABLE query_rules (id INTEGER PRIMARY KEY, word VARCHAR(5) NOT NULL, "
            "n INTEGER, CHECK (n < 100))%s",
            is_mysql(c) ? " ENGINE = InnoDB" : "");
    for (int i = 1; i <= rows; i++)
        exec_on(c, "INSERT INTO query_rules VALUES (%d, 'w%d', 0)", i, i);
}

/* ---- statements that are kept prepared */

/* As core does it where nothing was begun. What was kept prepared may have to be forgotten first. */
static enum rlk_class ask_again(struct desk *d, uint64_t id, const char *sql,
                                const rowlock_value *values, size_t count)
{
    enum rlk_class class = RLK_CONTENTION;
    for (int i = 0; i < 3 && class == RLK_CONTENTION; i++)
        class = ask(d, id, sql, values, count);
    return class;
}

/* What a statement without values says; and that it is done. */
static void says(struct desk *d, uint64_t id, const char *sql, enum rlk_class want,
                 const char *what)
{
    is_class(d, ask_again(d, id, sql, NOTHING), want, what);
}

static void does(struct desk *d, uint64_t id, const char *sql, const char *what)
{
    says(d, id, sql, RLK_DONE, what);
}

static void prepared_again(struct desk *d)
{
    const struct contract *c = d->c;
    const char *nowhere = "SELECT n FROM query_nowhere";
    uint64_t id = new_id(), ids[MANY_TEXTS];
    int right = 0;
    for (int i = 0; i < MANY_TEXTS; i++)
        ids[i] = new_id();
    for (int i = 0; i < 3 * MANY_TEXTS; i++) {
        int which = i % MANY_TEXTS;
        enum rlk_class class =
            ask(d, ids[which], textf("SELECT %d + ?", 1000 * which), VALUES(rowlock_int(i)));
        right += class == RLK_DONE && d->answer.rows == 1 && d->answer.first == 1000 * which + i;
    }
    tap_is_int(right, 3 * MANY_TEXTS, "%s: each of %d texts has its own answer, again and again",
               d->whose, MANY_TEXTS);
    says(d, id, nowhere, RLK_INVALID, "a table that is not there");
    exec_on(c, "CREATE TABLE query_nowhere (n INTEGER)");
    exec_on(c, "INSERT INTO query_nowhere VALUES (7)");
    does(d, id, nowhere, "the same text once it is");
    has_number(d, 7, "the right answer");
    exec_on(c, "DROP TABLE query_nowhere");
    says(d, id, nowhere, RLK_INVALID, "and when it is gone again");
}

static void table_altered(struct desk *d)
{
    const struct contract *c = d->c;
    uint64_t read = new_id(), write = new_id();
    const char *select = "SELECT * FROM query_rules WHERE id = 2";
    const char *update = "UPDATE query_rules SET n = n + 1 WHERE id = 2";
    make_rules(c, 2);
    for (int i = 0; i < 2; i++) {
        does(d, read, select, "a row is read");
        does(d, write, update, "and changed");
    }
    tap_is_int((long long)d->answer.count, 0, "an update has no rows");
    exec_on(c, "ALTER TABLE query_rules ADD COLUMN more INTEGER");
    does(d, read, select, "a column was added: it is read all the same");
    tap_is_int((long long)d->answer.count, 4, "with the new column");
    tap_is_int(d->answer.last, ROWLOCK_NULL, "which is NULL");
    does(d, write, update, "and changed");
    make_rules(c, 2);
    does(d, read, select, "the table was made anew: it is read");
    tap_is_int((long long)d->answer.count, 3, "as it is now");
    does(d, write, update, "and changed");
    tap_is_int(d->changed, 1, "one row");
}

/* ---- rows and counts */

static void rows_stop(struct desk *d)
{
    const char *all = "SELECT id FROM query_rules ORDER BY id";
    uint64_t id = new_id();
    make_rules(d->c, 5);
    d->answer.wanted = 2;
    for (int i = 0; i < 2; i++) {
        does(d, id, all, "the reader of the rows has enough");
        tap_is_int(d->answer.rows, 2, "and is given no more");
        has_number(d, 2, "the last one");
    }
    if (!is_mysql(d->c)) {
        does(d, 0, "UPDATE query_rules SET n = n + 1 RETURNING id",
             "so it is with what an update returns");
        tap_is_int(d->answer.rows, 2, "no more rows than were wanted");
        tap_is_int(d->changed, 5, "yet all of it is done");
        tap_is_int(int_on(d->c, "SELECT sum(n) FROM query_rules"), 5, "and stays");
    }
    is_class(d, tell(d, all, NOTHING), RLK_DONE, "rows that no reader wants");
    d->answer.wanted = 0;
    does(d, id, all, "and all of them");
    tap_is_int(d->answer.rows, 5, "as many as there are");
    does(d, 0, "SELECT id FROM query_rules WHERE id > 5", "none");
    tap_is_int(d->answer.rows, 0, "no row is an answer");
}

static void counts(struct desk *d)
{
    static const struct {
        const char *sql;
        int changed;
    } steps[] = {
        {"INSERT INTO query_rules VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)", 3},
        {"UPDATE query_rules SET n = n + 1 WHERE id > 1", 2},
        {"DELETE FROM query_rules WHERE id = 2", 1},
        {"DELETE FROM query_rules WHERE id = 2", 0},
        {"INSERT INTO query_rules SELECT id + 10, word, n FROM query_rules", 2},
        {"CREATE TABLE query_more (n INTEGER)", 0},
        {"DROP TABLE query_more", 0},
    };
    make_rules(d->c, 0);
    for (size_t i = 0; i < COUNT(steps); i++) {
        does(d, 0, steps[i].sql, steps[i].sql);
        tap_is_int(d->changed, steps[i].changed, "changes so many rows");
    }
}

/* The caller's own SQL is a part of the text, and may hold a comment or an apostrophe too many. */
static void wrong_texts(struct desk *d)
{
    static const struct {
        const char *what, *sql;
    } all[] = {
        {"two statements", "UPDATE query_rules SET n = 1; UPDATE query_rules SET word = ?"},
        {"a comment in front of a condition", "UPDATE query_rules SET n = 1 -- WHERE word = ?"},
        {"a value too few", "INSERT INTO query_rules VALUES (7, ?, ?)"},
    };
    make_rules(d->c, 1);
    for (size_t i = 0; i < 2 * COUNT(all); i++) {
        is_class(d, ask(d, i % 2 ? new_id() : 0, all[i / 2].sql, VALUES(rowlock_text("w1"))),
                 RLK_INVALID, all[i / 2].what);
        tap_ok(d->call.text[0], "and told why: %s", d->call.text);
    }
    does(d, 0, "UPDATE query_rules SET n = n + 1", "the connection goes on");
    tap_is_int(int_on(d->c, "SELECT sum(n) FROM query_rules"), 1,
               "nothing else was done meanwhile");
}

/* The same step with the first, the second, ... allocation failing, until none does. */
static void no_memory(struct desk *d)
{
    static const char *const texts[] = {"INSERT INTO query_rules VALUES (?, 'x', 0)",
                                        "SELECT id FROM query_rules WHERE id = ?"};
    make_rules(d->c, 0);
    for (int i = 0; i < 2; i++) {
        uint64_t id = new_id();
        enum rlk_class class = RLK_NOMEM;
        for (int nth = 1; nth < 20 && class == RLK_NOMEM; nth++) {
            fail_alloc_at(nth);
            class = ask(d, id, texts[i], VALUES(rowlock_int(1)));
            fail_alloc_at(0);
            bool there = i == 1 || class == RLK_DONE;
            stand(d, there, there, "a row is there if it was done");
        }
        is_class(d, class, RLK_DONE, "done once there is memory");
    }
    has_number(d, 1, "the row");
}

/* ---- transactions */

static enum rlk_class insert(struct desk *d, enum rlk_where where, int id)
{
    static uint64_t kept;
    if (!kept)
        kept = new_id();
    return ask_at(d, where, kept, "INSERT INTO query_rules VALUES (?, 'x', 0)",
                  VALUES(rowlock_int(id)));
}

/* What a word of play() does, or whether it is so. */
static enum rlk_class take_step(struct desk *d, const char *word)
{
    /* In the order of enum rlk_frame. */
    static const char *const frames[] = {"begin", "commit", "rollback", "save", "keep", "undo"};
    int id = 0, sum = 0;
    char where[10] = "";
    for (int i = 0; i < COUNT(frames); i++)
        if (strcmp(word, frames[i]) == 0)
            return frame(d, (enum rlk_frame)(i + RLK_BEGIN));
    if (sscanf(word, "add:%d@%9s", &id, where) >= 1)
        return insert(d,
                      where[0] == 'i'   ? RLK_INSIDE
                      : where[0] == 'o' ? RLK_OUTSIDE
                                        : RLK_EITHER,
                      id);
    if (sscanf(word, "rows:%d/%d", &id, &sum) == 2) {
        stand(d, id, sum, word);
        return RLK_DONE;
    }
    if (strcmp(word, "bad") == 0)
        return ask(d, 0, "SELECT colour FROM query_rules", NOTHING);
    if (strcmp(word, "over") == 0)
        return d->call.tx_over ? RLK_DONE : RLK_REFUSED;
    frame(d, RLK_LOOK); /* which says so also of a transaction that has failed */
    return d->call.inside == (strcmp(word, "open") == 0) ? RLK_DONE : RLK_REFUSED;
}

/* Steps in words, each of which is done, or is of the class behind its "=":
 *   begin commit rollback save keep undo   frames
 *   add:7  add:7@inside  add:7@outside     row 7 goes in: anywhere, or where it says
 *   bad                                    a statement with an error
 *   over                                   the last step ended the transaction
 *   open closed                            a transaction is open, or none is
 *   rows:3/8                               others see three rows, whose keys have the sum 8 */
static void play(struct desk *d, const char *what, const char *steps)
{
    char word[40];
    int length;
    for (; sscanf(steps, "%39s%n", word, &length) == 1; steps += length) {
        char *want = strchr(word, '=');
        if (want)
            *want++ = '\0';
        enum rlk_class got = take_step(d, word);
        if (!tap_is_str(class_name(got), want ? want : "DONE", "%s: %s: %s", d->whose, what, word))
            tap_note("%s", d->call.text);
    }
}

static void frames_and_places(struct desk *d)
{
    static const struct {
        const char *what, *steps;
    } plays[] = {
        {"outside of a transaction what is done stands at once",
         "closed commit=NO_TX rollback=NO_TX save=NO_TX keep=NO_TX undo=NO_TX "
         "add:1@inside=NO_TX add:2 closed add:3@outside closed rows:2/5"},
        {"inside of one nothing is seen before the end, and all of it after it",
         "begin open begin=IN_TX add:4@outside=IN_TX add:5@inside add:6 open "
         "rows:2/5 commit rows:4/16 closed commit=NO_TX"},
        {NULL, NULL},
        {"what is rolled back was not done",
         "begin add:1 rollback rows:0/0 begin add:1 rollback rows:0/0 begin commit"},
        {NULL, NULL},
        {"what was kept stands, and what was undone does not",
         "begin add:1 save add:2 add:1=VIOLATION undo open add:3 save add:4 keep save "
         "bad=INVALID undo commit rows:3/8"},
    };
    make_rules(d->c, 0);
    for (size_t i = 0; i < COUNT(plays); i++) {
        if (plays[i].steps)
            play(d, plays[i].what, plays[i].steps);
        else
            make_rules(d->c, 0);
    }
    play(d, "what was undone is no savepoint any more", "begin save undo");
    tap_ok(frame(d, RLK_KEEP) != RLK_DONE, "so it cannot be kept");
    play(d, "and all can be rolled back", "rollback");
}

/* Either database may go on after an error, and must know whether it did. */
static void failed_inside(struct desk *d)
{
    make_rules(d->c, 0);
    play(d, "a row is made twice", "begin add:1 add:1=VIOLATION");
    play(d, "PostgreSQL's transaction is over then, but open; a commit that is done has been done",
         is_postgres(d->c) ? "over open commit=CONTENTION rows:0/0"
                           : "over=REFUSED open commit rows:1/1");
    play(d, "rolled back after an error, all is as ever",
         "closed begin bad=INVALID rollback add:9@outside");
}

static void stays_in_theirs(const struct contract *c)
{
    CLOSED_BY(close_desk) struct desk d = open_desk(c, true);
    for (int commits = 0; commits < 2; commits++) {
        make_rules(c, 0);
        raw_run(c->raw, d.session, "%s", c->begin);
        raw_run(c->raw, d.session, "INSERT INTO query_rules VALUES (1, 'ours', 0)");
        play(&d, "their transaction is open",
             "open add:2@outside=IN_TX add:2 open begin=IN_TX save add:3@inside "
             "add:3@inside=VIOLATION undo add:4@inside rows:0/0");
        raw_run(c->raw, d.session, "INSERT INTO query_rules VALUES (5, 'more', 0)");
        raw_run(c->raw, d.session, "%s", commits ? "COMMIT" : "ROLLBACK");
        play(&d, "the end of it is theirs", commits ? "rows:4/12" : "rows:0/0");
    }
}

static void left_as_it_was(const struct contract *c)
{
    char before[300], after[300];
    OWNED(session) void *session = c->raw->open(c->url);
    ask_any(c, session, c->settings, before, sizeof before);
    struct desk d = {.c = c, .whose = "adopted", .db = must_adopt(c->raw, session, NULL)};
    make_rules(c, 0);
    play(&d, "a row is made", "begin add:1");
    does(&d, 0, "SELECT id FROM query_rules", "read");
    play(&d, "for good", "commit");
    does(&d, new_id(), "SELECT n FROM query_rules", "read");
    close_desk(&d);
    tap_is_int(raw_int(c->raw, session, "SELECT count(*) FROM query_rules"), 1,
               "the application's connection is open");
    ask_any(c, session, c->settings, after, sizeof after);
    tap_is_str(after, before, "with all settings as they were, and nothing left prepared");
}

/* What a conflict clause of the table's does to the transaction. */
static void ended_by_a_rule(const struct contract *c)
{
    CLOSED_BY(close_desk) struct desk d = open_desk(c, false);
    make_rules(c, 1);
    play(&d, "a transaction", "begin add:2");
    says(&d, 0, "INSERT OR ROLLBACK INTO query_rules VALUES (1, 'x', 0)", RLK_VIOLATION,
         "breaks a rule that rolls back");
    play(&d, "a commit then is not done, and nothing stands", "over commit=NO_TX rows:1/1");
}

/* ---- SQLite's files */

static void no_file_yet(const struct contract *c)
{
    OWNED(text) char *url = file_url("query-nothing.db");
    CLOSED_BY(close_desk) struct desk d = {.c = c, .whose = "no file", .db = must_open(url)};
    play(&d, "nothing is there", "closed begin=INVALID commit=NO_TX bad=INVALID");
    tap_is_str(d.call.text, "there is no such file yet", "and told why");
    tap_ok(access(path_of(url), F_OK) != 0, "nor was one made");
}

/* Without WAL a reader is in the way of a commit. */
static void reader_in_the_way(const struct contract *c)
{
    OWNED(text) char *url = file_url("query-reader.db");
    struct contract here = *c;
    here.url = url;
    make_rules(&here, 1);
    CLOSED_BY(close_desk) struct desk d = open_desk(&here, false);
    OWNED(session) void *reader = c->raw->open(url);
    const char *update = "UPDATE query_rules SET n = 1 RETURNING n";
    raw_run(c->raw, reader, "BEGIN");
    raw_int(c->raw, reader, "SELECT n FROM query_rules");
    play(&d, "a transaction", "begin");
    does(&d, 0, update, "changes");
    play(&d, "its commit while somebody reads ends it", "commit=CONTENTION over closed");
    says(&d, 0, update, RLK_CONTENTION, "a change by itself");
    tap_is_int(d.changed, 0, "has changed nothing");
    raw_run(c->raw, reader, "COMMIT");
    tap_is_int(raw_int(c->raw, reader, "SELECT n FROM query_rules"), 0, "nothing of it stands");
    does(&d, 0, update, "then no session is in the way");
    tap_is_int(raw_int(c->raw, reader, "SELECT n FROM query_rules"), 1, "and it is done");
}

/* Rows cannot be given for want of memory: alone the change is undone, in a transaction all of it is. */
static void no_memory_for_rows(const struct contract *c)
{
    const char *update = "UPDATE query_rules SET n = 1 RETURNING n";
    /* A connection of a pool has room from earlier rows. */
    if (getenv("ROWLOCK_TEST_POOL"))
        return;
    CLOSED_BY(close_desk) struct desk d = open_desk(c, false);
    make_rules(c, 1);
    for (int inside = 0; inside < 2; inside++) {
        play(&d, "in a transaction", inside ? "begin" : "");
        fail_alloc_at(1);
        is_class(&d, ask(&d, 0, update, NOTHING), RLK_NOMEM,
                 "no memory for what an update returns");
        fail_alloc_at(0);
        if (!inside)
            tap_is_int(int_on(c, "SELECT n FROM query_rules"), 0, "it is not done");
    }
    play(&d, "which can only be rolled back, and is", "over rollback");
}

static void one_kind_of_connection(const struct contract *c, bool adopted)
{
    static void (*const parts[])(struct desk * d) = {
        prepared_again, table_altered, rows_stop,         counts,
        wrong_texts,    no_memory,     frames_and_places, failed_inside,
    };
    for (size_t i = 0; i < COUNT(parts); i++) {
        CLOSED_BY(close_desk) struct desk d = open_desk(c, adopted);
        parts[i](&d);
    }
}

/* A connection is not slower than others because it once met no tables, as the one that makes them does. */
static void prepared_after_install(const struct contract *c)
{
    OWNED(text) char *url = no_tables(c, "planned_");
    CLOSED_BY(close_desk) struct desk d = {.c = c, .whose = "own", .db = must_open(url)};
    OWNED(lock) rowlock_lock *lock = must_lock(d.db, "planned");
    is_result(d.db, try_lock(lock, TTL_MS), ROWLOCK_ESCHEMA, "a try without tables");
    is_result(d.db, rowlock_install(d.db), ROWLOCK_OK, "the same connection makes them");
    is_result(d.db, try_lock(lock, TTL_MS), ROWLOCK_OK, "then the lock is granted");
    is_result(d.db, rowlock_release(lock), ROWLOCK_OK, "and released");
    is_result(d.db, try_lock(lock, TTL_MS), ROWLOCK_OK,
              "and granted again, by what usually suffices");
    is_class(&d,
             ask(&d, 0,
                 "SELECT count(*) FROM pg_prepared_statements WHERE name IN "
                 "('rowlock_acquire', 'rowlock_acquire_usual', 'rowlock_release')",
                 NOTHING),
             RLK_DONE, "which of our statements does the session keep?");
    tap_is_int(d.answer.first, c->pooled ? 0 : 3, "all three, or none behind a pooler");
}

void contract_query(const struct contract *c)
{
    if (is_postgres(c))
        prepared_after_install(c);
    one_kind_of_connection(c, false);
    one_kind_of_connection(c, true);
    stays_in_theirs(c);
    left_as_it_was(c);
    if (is_sqlite(c)) {
        ended_by_a_rule(c);
        no_file_yet(c);
        reader_in_the_way(c);
        no_memory_for_rows(c);
    }
    exec_on(c, "DROP TABLE IF EXISTS query_rules");
}
