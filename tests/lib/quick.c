/* SPDX-License-Identifier: MIT
 *
 * Short words for tests; see quick.h. Checks are not here. */
#include "quick.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void give_up(const char *what, const rowlock_error *err)
{
    printf("Bail out! %s: %s %s: %s\n", what, rowlock_result_name(err->code), err->action,
           err->text);
    fflush(stdout);
    _Exit(1); /* other threads still use what exit() would end */
}

/* These options, but connecting outlasts a machine that stands still for seconds. */
static rowlock_db_options patient(const rowlock_db_options *options)
{
    rowlock_db_options taken = options ? *options : (rowlock_db_options)ROWLOCK_DB_OPTIONS_INIT;
    if (taken.connect_timeout_ms == 0)
        taken.connect_timeout_ms = 60000;
    return taken;
}

/* With ROWLOCK_TEST_POOL the handles of a test have no connections of their own. There is a pool
 * for each URL, schema and prefix. A handle that must not reconnect has one of its own, since the
 * idle connections of another may be lost already. */
_Thread_local bool quick_pooled;
static struct pool_of {
    struct pool_of *next;
    rowlock_pool *pool;
    char key[600];
} * pools;
static pthread_mutex_t pools_mutex = PTHREAD_MUTEX_INITIALIZER;

static void close_pools(void)
{
    while (pools) {
        struct pool_of *first = pools;
        pools = first->next;
        rowlock_pool_close(first->pool);
        free(first);
    }
}

static rowlock_pool *pool_for(const char *url, const rowlock_db_options *options)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    static int alone;
    char key[600];
    rowlock_db_options names = *OPTIONS(db, .schema = options->schema, .prefix = options->prefix,
                                        .connect_timeout_ms = options->connect_timeout_ms,
                                        .statement_timeout_ms = options->statement_timeout_ms);
    snprintf(key, sizeof key, "%d %s %s %s %lld %d", (int)getpid(), url,
             names.schema ? names.schema : "", names.prefix ? names.prefix : "",
             (long long)names.statement_timeout_ms, options->reconnect_ms < 0 ? ++alone : 0);
    for (struct pool_of *p = pools; p; p = p->next)
        if (strcmp(p->key, key) == 0)
            return p->pool;
    if (!pools)
        atexit(close_pools);
    struct pool_of *p = calloc(1, sizeof *p);
    strcpy(p->key, key);
    if (rowlock_pool_open(url, OPTIONS(pool, .connections = 4, .db = &names), &p->pool, &err) !=
        ROWLOCK_OK)
        give_up("open a pool", &err);
    p->next = pools;
    pools = p;
    return p->pool;
}

static const char *use_pool(const char *url, rowlock_db_options *options)
{
    if (!quick_pooled && !getenv("ROWLOCK_TEST_POOL"))
        return url;
    pthread_mutex_lock(&pools_mutex);
    options->pool = pool_for(url, options);
    pthread_mutex_unlock(&pools_mutex);
    options->schema = options->prefix = NULL;
    return NULL;
}

/* With ROWLOCK_TEST_QUORUM the database of a test is the first of three members: two more files, or
 * tables with two other prefixes. "mixed": the others are databases of the two other kinds. */
enum { MEMBERS = 3 };

static const char *other_kind(const char *url, int number)
{
    static const char *const kinds[MEMBERS] = {"ROWLOCK_TEST_POSTGRES_URL",
                                               "ROWLOCK_TEST_MYSQL_URL", "ROWLOCK_TEST_SQLITE_URL"};
    if (number == 1 || strcmp(getenv("ROWLOCK_TEST_QUORUM"), "mixed") != 0)
        return url;
    int own = strncmp(url, "sqlite", 6) == 0 ? 2 : strncmp(url, "mysql", 5) == 0 ? 1 : 0;
    const char *other = getenv(kinds[(own + number - 1) % MEMBERS]);
    return other && *other ? other : url;
}

static char *member_of(const char *first, int number)
{
    char *whole = NULL, own[40];
    const char *url = other_kind(first, number);
    const char *end = strchr(url, '?');
    int length = end ? (int)(end - url) : (int)strlen(url);
    if (number == 1)
        return strdup(url);
    snprintf(own, sizeof own, "rowlock_prefix=member%d_", number);
    if (strncmp(url, "sqlite", 6) != 0)
        return url_with(url, own);
    if (asprintf(&whole, "%.*s.%d%s", length, url, number, end ? end : "") < 0)
        abort();
    return whole;
}

struct url_list url_list(const char *const *urls, size_t count)
{
    struct url_list list = {""};
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(list.text + length, sizeof list.text - length, "%s%s",
                                   i ? " " : "", urls[i]);
    return list;
}

int open_keeper_at(const char *url, const rowlock_db_options *options, rowlock_keeper **out,
                   rowlock_error *err)
{
    OWNED(db) rowlock_db *db = NULL;
    int result = rowlock_db_open(url, options, &db, err);
    if (result != ROWLOCK_OK)
        return result;
    result = rowlock_keeper_open(db, out);
    if (result != ROWLOCK_OK && err)
        *err = *rowlock_db_error(db);
    return result;
}

rowlock_db *must_quorum(const char *const *urls, size_t count, const rowlock_db_options *options)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options taken = patient(options);
    if (rowlock_db_open(url_list(urls, count).text, &taken, &db, &err) != ROWLOCK_OK)
        give_up("open a quorum", &err);
    return db;
}

static rowlock_db *open_quorum(const char *url, const rowlock_db_options *options, bool joins)
{
    const char *urls[MEMBERS];
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    for (int i = 0; i < MEMBERS; i++)
        urls[i] = member_of(url, i + 1);
    for (int i = 0; i < MEMBERS && joins; i++) {
        if (rowlock_db_open(urls[i], options, &db, &err) != ROWLOCK_OK ||
            rowlock_install(db) != ROWLOCK_OK)
            give_up("install a member", &err);
        rowlock_db_close(db);
        db = NULL;
    }
    if (joins && rowlock_quorum_join(url_list(urls, MEMBERS).text, 0, options, &err) != ROWLOCK_OK)
        give_up("join a quorum", &err);
    if (!joins)
        db = must_quorum(urls, MEMBERS, options);
    for (int i = 0; i < MEMBERS; i++)
        free((char *)urls[i]);
    return db;
}

rowlock_db *must_open_with(const char *url, const rowlock_db_options *options)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options taken = patient(options);
    if (getenv("ROWLOCK_TEST_QUORUM"))
        return open_quorum(url, &taken, false);
    url = use_pool(url, &taken);
    if (rowlock_db_open(url, &taken, &db, &err) != ROWLOCK_OK)
        give_up("open", &err);
    return db;
}

rowlock_db *must_open(const char *url)
{
    return must_open_with(url, NULL);
}

rowlock_db *must_open_as(const char *url, const char *owner)
{
    return must_open_with(url, OPTIONS(db, .owner = owner));
}

rowlock_error error_of(const rowlock_db *db)
{
    return *rowlock_db_error(db);
}

static void must(rowlock_db *db, int result, const char *what)
{
    rowlock_error err = error_of(db);
    if (result != ROWLOCK_OK)
        give_up(what, &err);
}

rowlock_lock *must_lock(rowlock_db *db, const char *name)
{
    rowlock_lock *lock = NULL;
    must(db, rowlock_lock_open(db, name, &lock), "open a lock");
    return lock;
}

int open_table(rowlock_db *db, const struct about *about, rowlock_table **out)
{
    if (!about)
        return rowlock_table_open(db, NULL, NULL, NULL, out);
    return rowlock_table_open(db, about->name, about->key,
                              OPTIONS(table, .schema = about->schema, .columns = about->columns,
                                      .version = about->version, .set = about->set,
                                      .first_version = about->first_version),
                              out);
}

int walk_table(rowlock_table *table, const struct walking *how, rowlock_walk_report *report)
{
    return rowlock_walk(table, how->name, how->each, how->context,
                        OPTIONS(walk, .progress = how->progress, .failed = how->failed,
                                .chunk = how->chunk, .restart = how->restart,
                                .wait_ms = how->wait_ms, .ttl_ms = how->ttl_ms),
                        report);
}

rowlock_table *must_prices(rowlock_db *db, const char *column)
{
    const char *const key[] = {"id", NULL}, *const columns[] = {column, NULL};
    rowlock_table *table = NULL;
    must(db, open_table(db, ABOUT(.name = "prices", .key = key, .columns = columns), &table),
         "open a table");
    return table;
}

int update_row(rowlock_table *table, int64_t id, rowlock_value value, int64_t version)
{
    rowlock_value key = rowlock_int(id);
    rowlock_change change = {.key = &key, .values = &value, .version = version};
    return rowlock_update(table, &change, 1, NULL);
}

int read_row(rowlock_table *table, int64_t id, int lock, rowlock_row *row)
{
    rowlock_value key = rowlock_int(id);
    return rowlock_read(table, &key, lock, row);
}

rowlock_lock *must_attach(rowlock_db *db, const char *name, const char *owner, int64_t token)
{
    rowlock_lock *lock = NULL;
    must(db, rowlock_lock_attach(db, name, owner, token, &lock), "attach a lock");
    return lock;
}

static int take_grant(void *context, const rowlock_grant *grant)
{
    *(rowlock_grant *)context = *grant;
    return 1;
}

rowlock_grant grant_of(rowlock_db *db, const char *name)
{
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    must(db, rowlock_list(db, name, take_grant, &grant), "list a lock");
    return grant;
}

rowlock_grant holder_of(const rowlock_lock *lock)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    (void)!rowlock_lock_holder(lock, &holder);
    return holder;
}

int join_members(const char *urls, rowlock_error *err)
{
    int result = ROWLOCK_ECONN;
    for (int64_t ms = 1000; ms == 1000 || (result != ROWLOCK_OK && err->retryable && ms < 100000);
         ms *= 4)
        result = rowlock_quorum_join(
            urls, 0, OPTIONS(db, .statement_timeout_ms = ms, .connect_timeout_ms = 60000), err);
    return result;
}

rowlock_stats stats_of(rowlock_db *db)
{
    rowlock_stats stats = ROWLOCK_STATS_INIT;
    must(db, rowlock_db_stats(db, &stats), "read the counters");
    return stats;
}

void must_install(const char *url)
{
    if (getenv("ROWLOCK_TEST_QUORUM")) {
        open_quorum(url, OPTIONS(db, .connect_timeout_ms = 60000), true);
        return;
    }
    OWNED(db) rowlock_db *db = must_open(url);
    must(db, rowlock_install(db), "install");
}

int wait_lock(rowlock_lock *lock, int64_t ttl_ms, int64_t wait_ms)
{
    return rowlock_acquire(lock, OPTIONS(acquire, .ttl_ms = ttl_ms, .wait_ms = wait_ms));
}

void close_each_lock(rowlock_lock *const *locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rowlock_lock_close(locks[i]);
}

void close_each_db(rowlock_db *const *dbs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rowlock_db_close(dbs[i]);
}

int ignore_grant(void *context, const rowlock_grant *grant)
{
    return 0;
}

int count_grant(void *count, const rowlock_grant *grant)
{
    ++*(int *)count;
    return 0;
}

int ignore_waiter(void *context, const rowlock_waiter *waiter)
{
    return 0;
}

int try_lock(rowlock_lock *lock, int64_t ttl_ms)
{
    return wait_lock(lock, ttl_ms, 0);
}

bool renewed_by(rowlock_db *db, rowlock_lock *lock, rowlock_keeper *keeper)
{
    const char *name = rowlock_lock_name(lock);
    bool renewed = false;
    for (int64_t ttl_ms = 600; !renewed && ttl_ms < 60000; ttl_ms *= 5) {
        (void)!rowlock_release(lock);
        must(db,
             rowlock_acquire(lock, OPTIONS(acquire, .keeper = keeper, .ttl_ms = slow_ms(ttl_ms))),
             "keep a lock");
        renewed = EVENTUALLY(grant_of(db, name).renewals > 0 ||
                             rowlock_lock_state(lock) == ROWLOCK_STATE_LOST) &&
                  grant_of(db, name).renewals > 0;
    }
    return renewed;
}

const char *why(const rowlock_db *db)
{
    static _Thread_local char text[1200];
    rowlock_error err = error_of(db);
    snprintf(text, sizeof text, "%s: %s: %s (native %d, SQLSTATE '%s')",
             rowlock_result_name(err.code), err.action, err.text, err.native, err.sqlstate);
    return text;
}

int error_code(const rowlock_db *db)
{
    return error_of(db).code;
}

const char *textf(const char *format, ...)
{
    static _Thread_local char texts[4][700];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 4];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof texts[0], format, arguments);
    va_end(arguments);
    return text;
}

char *url_with(const char *url, const char *parameter)
{
    char *whole = NULL;
    if (asprintf(&whole, "%s%c%s", url, strchr(url, '?') ? '&' : '?', parameter) < 0)
        abort();
    return whole;
}

const char *test_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder ? folder : "/tmp";
}

char *file_url(const char *name)
{
    return strdup(textf("sqlite:%s/%s", test_folder(), name));
}

const char *path_of(const char *url)
{
    return url + strlen("sqlite:");
}

int listen_locally(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        abort();
    *port = ntohs(address.sin_port);
    return listener;
}

static long long read_clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

long long now_us(void)
{
    return read_clock_us(CLOCK_MONOTONIC);
}

long long unix_clock_us(void)
{
    return read_clock_us(CLOCK_REALTIME);
}

int64_t clock_ms(void)
{
    return now_us() / 1000;
}

void sleep_ms(int64_t ms)
{
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

int64_t slowdown(void)
{
    const char *text = getenv("ROWLOCK_TEST_SLOWDOWN");
    long factor = text ? strtol(text, NULL, 10) : 1;
    return factor > 1 ? factor : 1;
}

int64_t slow_ms(int64_t ms)
{
    return ms * slowdown();
}

struct helper {
    pthread_t thread;
    int (*work)(void *argument);
    void *argument;
    int result;
    atomic_bool ended;
};

static void *help(void *argument)
{
    struct helper *helper = argument;
    helper->result = helper->work(helper->argument);
    helper->ended = true;
    return NULL;
}

struct helper *helper_start(int (*work)(void *argument), void *argument)
{
    struct helper *helper = calloc(1, sizeof *helper);
    if (!helper)
        abort();
    helper->work = work;
    helper->argument = argument;
    if (pthread_create(&helper->thread, NULL, help, helper) != 0)
        abort();
    return helper;
}

bool helper_ended(const struct helper *helper)
{
    return helper->ended;
}

int helper_join(struct helper *helper)
{
    pthread_join(helper->thread, NULL);
    int result = helper->result;
    free(helper);
    return result;
}

pid_t child_start(int (*work)(void *argument), void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0)
        _exit(work(argument) & 0xFF);
    return child;
}

int child_join(pid_t child)
{
    return child_join_any(&child);
}

int child_join_any(pid_t *child)
{
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(*child, &status, 0)) < 0)
        if (errno != EINTR)
            return -1;
    *child = ended;
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}
