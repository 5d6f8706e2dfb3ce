/* SPDX-License-Identifier: MIT
 *
 * A load on a database that has faults, and the judge of what it was granted. It works alike on
 * every kind of cluster. What the clients do is in clients.c and queue.c, what is judged in
 * judge.h.
 *
 * A fault script sources load.sh, which has a function for each of these commands:
 *
 *   load install           makes rowlock's tables, the accounts and the journal, at
 *                          LOAD_INSTALL_URL or the first of LOAD_URLS. A MySQL URL must have one
 *                          host here.
 *   load run FOLDER        runs until FOLDER/stop is there. Then reads the accounts and the
 *                          journal. Exits with 0 when the history is complete. FOLDER is there, and
 *                          is another one for each run.
 *   load mark FOLDER WHAT  writes down that the script did something. WHAT has no blanks. Two have
 *                          a meaning: no renewal reaches the database between `cut` and `back`.
 *   load grants FOLDER     prints how many grants there are so far
 *   load judge FOLDER [--may-lose | SENTENCE]
 *                          prints "ok - SENTENCE" or "not ok - SENTENCE" for each sentence of
 *                          judge.c, and figures after "# ". This sentence may be broken, or all
 *                          that an asynchronous failover may break: that is counted, and no fault.
 *
 *   LOAD_URLS              URLs, with blanks between them. Clients are shared out among them. One
 *                          URL may name several hosts. The scheme tells which database it is.
 *   LOAD_TICKET_MS         the lease of waiters' tickets: 40000
 *   ROWLOCK_TEST_POOL      1: all clients share a pool for each URL
 *   ROWLOCK_TEST_COMMAND   the command rowlock, for jobs
 *   ROWLOCK_TEST_SLOWDOWN  a call may end so many times 10 s after its deadline
 *
 * There are 20 clients, 5 waiters and a holder of the queue, each a thread: exclusive locks under
 * a keeper (lease 4 s), guarded transfers, a fenced register (lease 1 s), jobs of `rowlock run`, also
 * with --every, and of `rowlock lead`, Python. Some share a pool for each URL, and every second one
 * starts its acquires and polls. */
#include "load.h"

#include "judge.h"
#include "raw.h"

#include <sys/prctl.h>

enum { TICK_MS = 20, COLLECT_AT_ONCE = 500, SLACK_MS = 10000 };

static void die(const char *what, const char *why_so)
{
    fprintf(stderr, "load: %s: %s\n", what, why_so);
    exit(1);
}

/* ---- load install */

static const struct raw *raw_of(const char *url)
{
#if RLK_WITH_POSTGRES
    if (strncmp(url, "postgres", 8) == 0)
        return &raw_postgres;
#endif
#if RLK_WITH_MYSQL
    if (strncmp(url, "mysql", 5) == 0 || strncmp(url, "mariadb", 7) == 0)
        return &raw_mysql;
#endif
    die(url, "no such database is built in");
    return NULL;
}

static void install(const char *url)
{
    const struct raw *raw = raw_of(url);
    void *session = raw->open(url);
    must_install(url);
    raw_run(raw, session,
            "CREATE TABLE load_accounts (id BIGINT PRIMARY KEY, version BIGINT NOT NULL, "
            "cents BIGINT NOT NULL)");
    raw_run(raw, session,
            "CREATE TABLE load_journal (id BIGINT PRIMARY KEY, version BIGINT NOT NULL, "
            "source BIGINT, target BIGINT, cents BIGINT, token BIGINT)");
    for (int i = 0; i < ACCOUNTS; i++)
        raw_run(raw, session, "INSERT INTO load_accounts VALUES (%d, 1, %d)", i, FIRST_CENTS);
    raw_run(raw, session, "INSERT INTO load_accounts VALUES (%d, 1, 0)", REGISTER);
    raw->close(session);
}

/* ---- load run */

static void read_urls(struct load *load)
{
    static char text[2000];
    const char *urls = getenv("LOAD_URLS");
    snprintf(text, sizeof text, "%s", urls ? urls : "");
    for (char *url = strtok(text, " "); url && load->url_count < URLS_MAX; url = strtok(NULL, " "))
        load->urls[load->url_count++] = url;
    if (load->url_count == 0)
        die("LOAD_URLS", "is not set");
}

/* Called for one account or row of the journal. */
struct told {
    char kind;
    const long long *ids;
};

static int tell_row(void *context, size_t index, const rowlock_row *row)
{
    const struct told *told = context;
    if (!row)
        return 0;
    if (told->kind == 'J')
        tell("J %lld %lld %lld %lld %lld", told->ids[index], (long long)row->values[0].number,
             (long long)row->values[1].number, (long long)row->values[2].number,
             (long long)row->values[3].number);
    else
        tell("%c %lld %lld", told->kind, told->ids[index], (long long)row->values[0].number);
    return 0;
}

static bool tell_rows(rowlock_table *table, char kind, const long long *ids, size_t count)
{
    rowlock_value keys[COLLECT_AT_ONCE];
    for (size_t at = 0; at < count; at += COLLECT_AT_ONCE) {
        size_t some = count - at < COLLECT_AT_ONCE ? count - at : COLLECT_AT_ONCE;
        struct told told = {kind, ids + at};
        for (size_t i = 0; i < some; i++)
            keys[i] = rowlock_int(ids[at + i]);
        int result = rowlock_read_many(table, keys, some, 0, tell_row, &told);
        if (result != ROWLOCK_OK && result != ROWLOCK_GONE)
            return false;
    }
    return true;
}

static void tell_accounts(rowlock_db *db, char kind)
{
    long long ids[ACCOUNTS];
    OWNED(table) rowlock_table *accounts = open_accounts(db);
    for (int i = 0; i < ACCOUNTS; i++)
        ids[i] = i;
    if (!tell_rows(accounts, kind, ids, ACCOUNTS))
        die("the accounts", why(db));
}

/* The transfers that the history knows of. */
static long long *transfers_of(size_t *count)
{
    int lines;
    struct line *line = history_lines(history_path("history"), &lines);
    long long *ids = calloc((size_t)lines + 1, sizeof *ids);
    *count = 0;
    if (!ids)
        die("reading the history", "out of memory");
    for (int i = 0; i < lines; i++)
        if (line[i].kind == 'T')
            ids[(*count)++] = line[i].n[0];
    free(line);
    return ids;
}

static void tell_tokens(rowlock_db *db)
{
    for (const char *const *name = lock_names; *name; name++) {
        int64_t token = 0, when = 0;
        int result = rowlock_last_grant(db, *name, &token, &when);
        if (result != ROWLOCK_OK && result != ROWLOCK_NONE)
            die(*name, why(db));
        tell("N %s %lld", *name, (long long)token);
    }
}

/* The end of the history: what the database has. */
static void collect(const struct load *load)
{
    OWNED(db) rowlock_db *db = load_open(load->urls[0]);
    rowlock_row row = ROWLOCK_ROW_INIT;
    size_t count;
    tell_accounts(db, 'B');
    long long *ids = transfers_of(&count);
    OWNED(table) rowlock_table *journal = open_journal(db), *accounts = open_accounts(db);
    if (!tell_rows(journal, 'J', ids, count) || read_row(accounts, REGISTER, 0, &row) != ROWLOCK_OK)
        die("the journal", why(db));
    tell("R register %lld", (long long)row.values[0].number);
    tell_tokens(db);
    free(ids);
}

static void open_keepers(struct load *load)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    /* Below a third of the lease. */
    options.connect_timeout_ms = options.statement_timeout_ms = TTL_MS / 4;
    for (int i = 0; i < load->url_count; i++) {
        await_server(load->urls[i]);
        if (open_keeper_at(load->urls[i], &options, &load->keepers[i], &err) != ROWLOCK_OK)
            die("no keeper", err.text);
    }
}

static void run(const char *folder)
{
    static struct load load;
    load.folder = folder;
    /* The load ends with its script. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    read_urls(&load);
    tell("P %d", TTL_MS);
    rowlock_db *db = load_open(load.urls[0]);
    tell_accounts(db, 'b');
    rowlock_db_close(db);
    open_keepers(&load);
    clients_start(&load);
    queue_start(&load, 100);
    while (access(history_path("stop"), F_OK) != 0)
        sleep_ms(TICK_MS);
    load.over = true;
    clients_end();
    queue_end();
    for (int i = 0; i < load.url_count; i++)
        rowlock_keeper_close(load.keepers[i]);
    collect(&load);
}

/* ---- load child, of `rowlock run` */

static void child(char **argv)
{
    const char *token = getenv("ROWLOCK_TOKEN");
    if (strcmp(argv[2], "deaf") == 0)
        signal(SIGTERM, SIG_IGN);
    tell("S %s %s %lld", argv[0], token ? token : "0", now_us());
    for (int64_t end = clock_ms() + atoi(argv[1]); clock_ms() < end;) {
        sleep_ms(TICK_MS);
        tell("t %s %s %lld", argv[0], token ? token : "0", now_us());
    }
}

/* ---- load judge */

static void print_mark(void *context, const char *what, long long next_grant_ms)
{
    printf("# %s: next grant after %lld ms\n", what, next_grant_ms);
}

static void print_verdict(const char *may)
{
    static struct judgement j;
    judge(history_path("history"), (int)slow_ms(SLACK_MS), &j);
    print_sentences(&j, cluster_sentences, may);
    printf("# judged: %d grants, %d children, %d transfers, %d writes, %d waits in %d queues\n",
           j.grants, j.children, j.transfers, j.writes, j.waits, j.rounds);
    printf("# %d calls, %d of them errors; the longest took %lld ms\n", j.calls, j.errors,
           j.longest_call_ms);
    judge_marks(history_path("history"), print_mark, NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *folder = argc > 2 ? argv[2] : NULL;
    struct load load = {.url_count = 0};
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(what, "install") == 0) {
        read_urls(&load);
        install(getenv("LOAD_INSTALL_URL") ? getenv("LOAD_INSTALL_URL") : load.urls[0]);
        return 0;
    }
    if (!folder)
        die("usage", "load install|run|mark|grants|judge, see load.c");
    history_open(folder);
    if (strcmp(what, "run") == 0)
        run(folder);
    else if (strcmp(what, "child") == 0 && argc == 6)
        child(argv + 3);
    else if (strcmp(what, "mark") == 0 && argc == 4)
        tell("M %lld %s", now_us(), argv[3]);
    else if (strcmp(what, "grants") == 0)
        printf("%d\n", history_count("GS"));
    else if (strcmp(what, "judge") == 0)
        print_verdict(argc > 3 ? argv[3] : "");
    else
        die("usage", "load install|run|mark|grants|judge, see load.c");
    return 0;
}
