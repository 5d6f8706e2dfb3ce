/* Made by tools/make-cdef from the headers. `make python-cdef` makes it anew. */

/* rowlock.h */
static const int64_t ROWLOCK_FOREVER;
static const int64_t ROWLOCK_SHARED;
const char *rowlock_version(void);
typedef enum rowlock_result {
    ROWLOCK_OK = 0,
    ROWLOCK_BUSY = 1,
    ROWLOCK_TIMEOUT = 2,
    ROWLOCK_LOST = 3,
    ROWLOCK_LAPSED = 4,
    ROWLOCK_MISMATCH = 5,
    ROWLOCK_DEADLOCK = 6,
    ROWLOCK_CANCELLED = 7,
    ROWLOCK_PENDING = 8,
    ROWLOCK_NONE = 9,
    ROWLOCK_STALE = 20,
    ROWLOCK_CONFLICT = 21,
    ROWLOCK_GONE = 22,
    ROWLOCK_EXISTS = 23,
    ROWLOCK_UNDONE = 24,
    ROWLOCK_VIOLATION = 25,
    ROWLOCK_DONE = 26,
    ROWLOCK_EUNCERTAIN = -1,
    ROWLOCK_ECONN = -2,
    ROWLOCK_ESCHEMA = -3,
    ROWLOCK_EINVAL = -4,
    ROWLOCK_ENOMEM = -5,
    ROWLOCK_EREADONLY = -6,
    ROWLOCK_EDENIED = -7,
    ROWLOCK_EMISUSE = -8,
    ROWLOCK_EUNSUPPORTED = -9,
    ROWLOCK_ESERVER = -10
} rowlock_result;
const char *rowlock_result_name(int result);
typedef enum rowlock_constraint {
    ROWLOCK_CONSTRAINT_NONE = 0,
    ROWLOCK_CONSTRAINT_UNIQUE = 1,
    ROWLOCK_CONSTRAINT_FOREIGN_KEY = 2,
    ROWLOCK_CONSTRAINT_CHECK = 3,
    ROWLOCK_CONSTRAINT_NOT_NULL = 4,
    ROWLOCK_CONSTRAINT_VALUE = 5
} rowlock_constraint;
typedef struct rowlock_error {
    size_t size;
    int code;
    int native;
    char sqlstate[8];
    int retryable;
    char action[300];
    char text[700];
    int transaction_over;
    int constraint;
    int answer_lost;
    int64_t row;
    int64_t spare[2];
    ...;
} rowlock_error;
typedef struct rowlock_db rowlock_db;
typedef struct rowlock_pool rowlock_pool;
typedef struct rowlock_db_options {
    size_t size;
    const char *owner;
    const char *program;
    const char *schema;
    const char *prefix;
    int64_t connect_timeout_ms;
    int64_t statement_timeout_ms;
    int64_t reconnect_ms;
    rowlock_pool *pool;
    ...;
} rowlock_db_options;
int rowlock_db_open(const char *url, const rowlock_db_options *options, rowlock_db **out, rowlock_error *err);
void rowlock_db_close(rowlock_db *db);
const rowlock_error *rowlock_db_error(const rowlock_db *db);
void rowlock_cancel(rowlock_db *db);
typedef struct rowlock_lock rowlock_lock;
int rowlock_lock_open(rowlock_db *db, const char *name, rowlock_lock **out);
int rowlock_lock_attach(rowlock_db *db, const char *name, const char *owner, int64_t token, rowlock_lock **out);
void rowlock_lock_close(rowlock_lock *lock);
void rowlock_forget(rowlock_lock *lock);
typedef enum rowlock_state {
    ROWLOCK_STATE_NONE = 0,
    ROWLOCK_STATE_HELD = 1,
    ROWLOCK_STATE_JEOPARDY = 2,
    ROWLOCK_STATE_LOST = 3
} rowlock_state;
typedef struct rowlock_keeper rowlock_keeper;
typedef struct rowlock_acquire_options {
    size_t size;
    int64_t ttl_ms;
    int64_t wait_ms;
    const char *note;
    int keep;
    rowlock_keeper *keeper;
    int64_t max_hold_ms;
    int64_t progress_ms;
    int64_t margin_ms;
    void (*on_state)(void *context, rowlock_lock *lock, rowlock_state state);
    void *context;
    int permits;
    int unfair;
    int64_t ticket_ms;
    ...;
} rowlock_acquire_options;
int rowlock_acquire(rowlock_lock *lock, const rowlock_acquire_options *options);
int rowlock_acquire_all(rowlock_lock *const *locks, size_t count, const rowlock_acquire_options *options, size_t *which);
int rowlock_renew(rowlock_lock *lock, int64_t ttl_ms);
int rowlock_note(rowlock_lock *lock, const char *note);
int rowlock_verify(rowlock_lock *lock);
int rowlock_release(rowlock_lock *lock);
int64_t rowlock_lock_remaining_ms(const rowlock_lock *lock);
int64_t rowlock_lock_token(const rowlock_lock *lock);
rowlock_state rowlock_lock_state(rowlock_lock *lock);
int rowlock_lock_state_fd(rowlock_lock *lock);
int64_t rowlock_lock_expires_us(const rowlock_lock *lock);
const char *rowlock_lock_name(const rowlock_lock *lock);
const char *rowlock_lock_owner(const rowlock_lock *lock);
typedef struct rowlock_grant {
    size_t size;
    int64_t token;
    int64_t acquired_us;
    int64_t expires_us;
    int64_t remaining_ms;
    int64_t ttl_ms;
    int64_t renewals;
    int64_t pid;
    int permits;
    int reserved;
    char name[256];
    char owner[256];
    char host[256];
    char program[256];
    char note[256];
    ...;
} rowlock_grant;
int rowlock_lock_holder(const rowlock_lock *lock, rowlock_grant *out);
int rowlock_keeper_open(rowlock_db *db, rowlock_keeper **out);
void rowlock_keeper_close(rowlock_keeper *keeper);
void rowlock_progress(rowlock_lock *lock);
typedef struct rowlock_stats {
    size_t size;
    uint64_t tries;
    uint64_t granted;
    uint64_t busy;
    uint64_t waits;
    uint64_t waited_us;
    uint64_t renewals;
    uint64_t lapsed;
    uint64_t lost;
    uint64_t resent;
    uint64_t reconnects;
    uint64_t round_trips;
    ...;
} rowlock_stats;
int rowlock_db_stats(rowlock_db *db, rowlock_stats *out);
typedef enum rowlock_log_level {
    ROWLOCK_LOG_WARNING = 1,
    ROWLOCK_LOG_INFO = 2,
    ROWLOCK_LOG_DEBUG = 3
} rowlock_log_level;
void rowlock_log_set(void (*log)(void *context, rowlock_log_level level, const char *line), void *context, rowlock_log_level up_to);
rowlock_error rowlock_error_init(void);
rowlock_db_options rowlock_db_options_init(void);
rowlock_acquire_options rowlock_acquire_options_init(void);
rowlock_grant rowlock_grant_init(void);
rowlock_stats rowlock_stats_init(void);

/* value.h */
typedef enum rowlock_kind {
    ROWLOCK_NULL = 0,
    ROWLOCK_INT = 1,
    ROWLOCK_REAL = 2,
    ROWLOCK_DECIMAL = 3,
    ROWLOCK_TEXT = 4,
    ROWLOCK_BYTES = 5,
    ROWLOCK_BOOL = 6,
    ROWLOCK_TIME = 7
} rowlock_kind;
typedef struct rowlock_value {
    rowlock_kind kind;
    int reserved;
    int64_t number;
    double real;
    const char *text;
    size_t length;
} rowlock_value;

/* tx.h */
struct pg_conn;
struct st_mysql;
struct sqlite3;
int rowlock_db_adopt_postgres(struct pg_conn *conn, const rowlock_db_options *options, rowlock_db **out, rowlock_error *err);
int rowlock_db_adopt_mysql(struct st_mysql *conn, const rowlock_db_options *options, rowlock_db **out, rowlock_error *err);
int rowlock_db_adopt_sqlite(struct sqlite3 *conn, const rowlock_db_options *options, rowlock_db **out, rowlock_error *err);
int rowlock_guard(rowlock_lock *lock, rowlock_db *tx);
int rowlock_tx_acquire(rowlock_lock *lock, rowlock_db *tx, const rowlock_acquire_options *options);
int rowlock_tx_release(rowlock_lock *lock, rowlock_db *tx);
int rowlock_fence(rowlock_db *db, const char *resource, int64_t token);

/* async.h */
int rowlock_acquire_start(rowlock_lock *lock, const rowlock_acquire_options *options);
int rowlock_acquire_fd(const rowlock_lock *lock);
int rowlock_acquire_step(rowlock_lock *lock);

/* pool.h */
typedef struct rowlock_pool_options {
    size_t size;
    int connections;
    int batch;
    const rowlock_db_options *db;
    ...;
} rowlock_pool_options;
int rowlock_pool_open(const char *url, const rowlock_pool_options *options, rowlock_pool **out, rowlock_error *err);
void rowlock_pool_close(rowlock_pool *pool);
rowlock_pool_options rowlock_pool_options_init(void);

/* admin.h */
int rowlock_list_drivers(int (*each)(void *context, const char *driver, const char *client), void *context);
int rowlock_install(rowlock_db *db);
int rowlock_install_script(rowlock_db *db, const char *role, const char *user, int (*write)(void *context, const char *sql, size_t length), void *context);
typedef struct rowlock_upgrade_step {
    const char *what;
    const char *sql;
    int done;
    int retries;
    const char *blocker;
} rowlock_upgrade_step;
typedef struct rowlock_upgrade_options {
    size_t size;
    int dry_run;
    int reserved;
    int64_t deadline_ms;
    int (*each)(void *context, const rowlock_upgrade_step *step);
    void *context;
    ...;
} rowlock_upgrade_options;
int rowlock_upgrade(rowlock_db *db, const rowlock_upgrade_options *options);
typedef enum rowlock_verdict {
    ROWLOCK_FINE = 0,
    ROWLOCK_WARNING = 1,
    ROWLOCK_BAD = 2
} rowlock_verdict;
typedef struct rowlock_finding {
    const char *item;
    const char *value;
    const char *advice;
    rowlock_verdict verdict;
} rowlock_finding;
int rowlock_check(rowlock_db *db, int (*each)(void *context, const rowlock_finding *finding), void *context, rowlock_verdict *worst);
int rowlock_list(rowlock_db *db, const char *name, int (*each)(void *context, const rowlock_grant *grant), void *context);
int rowlock_last_grant(rowlock_db *db, const char *name, int64_t *token, int64_t *granted_us);
typedef struct rowlock_waiter {
    size_t size;
    int64_t ticket;
    int64_t since_us;
    int64_t waited_ms;
    int64_t remaining_ms;
    int64_t pid;
    int permits;
    int position;
    char name[256];
    char owner[256];
    char host[256];
    char program[256];
    char note[256];
    ...;
} rowlock_waiter;
int rowlock_list_waiters(rowlock_db *db, const char *name, int (*each)(void *context, const rowlock_waiter *waiter), void *context);
int rowlock_break(rowlock_db *db, const char *name, int64_t if_token, rowlock_grant *broken);
typedef struct rowlock_figures {
    size_t size;
    int64_t now_us;
    int64_t exclusive;
    int64_t shared;
    int64_t counted;
    int64_t expired_exclusive;
    int64_t expired_shared;
    int64_t expired_counted;
    int64_t longest_hold_ms;
    int64_t waiters;
    int64_t longest_wait_ms;
    int64_t expired_tickets;
    int64_t names;
    int64_t once_claimed;
    int64_t once_expired;
    int64_t once_done;
    int64_t token_floor;
    int64_t swept_us;
    int64_t version;
    ...;
} rowlock_figures;
int rowlock_measure(rowlock_db *db, rowlock_figures *out);
typedef struct rowlock_name_figures {
    size_t size;
    int64_t token;
    int64_t holders;
    int64_t held_ms;
    int64_t remaining_ms;
    int64_t lapsed_ms;
    int64_t waiters;
    int64_t waited_ms;
    char name[256];
    ...;
} rowlock_name_figures;
int rowlock_measure_names(rowlock_db *db, const char *glob, int (*each)(void *context, const rowlock_name_figures *figures), void *context);
typedef struct rowlock_sweep_options {
    size_t size;
    int64_t older_than_ms;
    int64_t idle_ms;
    int batch;
    int dry_run;
    int (*each)(void *context, const rowlock_grant *grant);
    void *context;
    ...;
} rowlock_sweep_options;
typedef struct rowlock_sweep_report {
    size_t size;
    int64_t locks;
    int64_t counters;
    int64_t batches;
    int64_t waiters;
    ...;
} rowlock_sweep_report;
int rowlock_sweep(rowlock_db *db, const rowlock_sweep_options *options, rowlock_sweep_report *report);
int rowlock_raise_tokens(rowlock_db *db, int64_t by, int64_t *highest);
int rowlock_new_identity(rowlock_db *db);
rowlock_upgrade_options rowlock_upgrade_options_init(void);
rowlock_figures rowlock_figures_init(void);
rowlock_sweep_options rowlock_sweep_options_init(void);
rowlock_sweep_report rowlock_sweep_report_init(void);

/* quorum.h */
int rowlock_quorum_join(const char *urls, int replaced, const rowlock_db_options *options, rowlock_error *err);
int rowlock_quorum_check(const char *urls, const rowlock_db_options *options, int (*each)(void *context, const rowlock_finding *finding), void *context, rowlock_error *err);

/* versions.h */
typedef struct rowlock_table rowlock_table;
typedef struct rowlock_table_options {
    size_t size;
    const char *schema;
    const char *const *columns;
    const char *version;
    const char *set;
    int64_t first_version;
    ...;
} rowlock_table_options;
int rowlock_table_open(rowlock_db *db, const char *name, const char *const *key, const rowlock_table_options *options, rowlock_table **out);
void rowlock_table_close(rowlock_table *table);
typedef struct rowlock_row {
    size_t size;
    const rowlock_value *key;
    const rowlock_value *values;
    int64_t version;
    ...;
} rowlock_row;
int rowlock_read(rowlock_table *table, const rowlock_value *key, int lock, rowlock_row *out);
int rowlock_read_many(rowlock_table *table, const rowlock_value *keys, size_t count, int lock, int (*each)(void *context, size_t index, const rowlock_row *row), void *context);
typedef struct rowlock_change {
    const rowlock_value *key;
    const rowlock_value *values;
    int64_t version;
    int result;
    int reserved;
    int64_t current;
} rowlock_change;
typedef struct rowlock_change_options {
    size_t size;
    int all_or_nothing;
    int chunk;
    int (*progress)(void *context, size_t done, size_t total);
    void *context;
    ...;
} rowlock_change_options;
typedef enum rowlock_op {
    ROWLOCK_UPDATE = 1,
    ROWLOCK_TOUCH = 2,
    ROWLOCK_EXPECT = 3,
    ROWLOCK_INSERT = 4,
    ROWLOCK_REMOVE = 5
} rowlock_op;
int rowlock_apply(rowlock_table *table, rowlock_op op, rowlock_change *changes, size_t count, size_t change_size, const rowlock_change_options *options);
typedef struct rowlock_attempt {
    int number;
    int lock;
} rowlock_attempt;
enum {
    ROWLOCK_CLOSED = -100
};
typedef struct rowlock_retry_options {
    size_t size;
    int attempts;
    int lock_after;
    int64_t deadline_ms;
    int64_t base_ms;
    int64_t cap_ms;
    ...;
} rowlock_retry_options;
typedef struct rowlock_retry_report {
    size_t size;
    int attempts;
    int conflicts;
    int64_t lost_us;
    ...;
} rowlock_retry_report;
int rowlock_retry(rowlock_db *db, int (*attempt)(void *context, const rowlock_attempt *attempt), void *context, const rowlock_retry_options *options, rowlock_retry_report *report);
rowlock_table_options rowlock_table_options_init(void);
rowlock_row rowlock_row_init(void);
rowlock_change_options rowlock_change_options_init(void);
rowlock_retry_options rowlock_retry_options_init(void);
rowlock_retry_report rowlock_retry_report_init(void);

/* walk.h */
typedef struct rowlock_walk_report {
    size_t size;
    int64_t rows;
    int64_t written;
    int64_t left;
    int64_t conflicts;
    int64_t failed;
    int64_t total;
    int64_t elapsed_ms;
    int64_t left_ms;
    double rate;
    int resumed;
    int reserved;
    ...;
} rowlock_walk_report;
typedef struct rowlock_walk_options {
    size_t size;
    void (*progress)(void *context, const rowlock_walk_report *so_far);
    void (*failed)(void *context, const rowlock_row *row, int result, const char *text);
    int chunk;
    int restart;
    int64_t wait_ms;
    int64_t ttl_ms;
    ...;
} rowlock_walk_options;
int rowlock_walk(rowlock_table *table, const char *name, int (*each)(void *context, const rowlock_row *row, rowlock_value *values), void *context, const rowlock_walk_options *options, rowlock_walk_report *report);
rowlock_walk_report rowlock_walk_report_init(void);
rowlock_walk_options rowlock_walk_options_init(void);

/* once.h */
typedef struct rowlock_once rowlock_once;
typedef struct rowlock_once_options {
    size_t size;
    const char *fingerprint;
    int64_t ttl_ms;
    int64_t token;
    ...;
} rowlock_once_options;
int rowlock_once_claim(rowlock_db *db, const char *key, const rowlock_once_options *options, rowlock_once **out);
int rowlock_once_complete(rowlock_once *once, rowlock_db *tx, const void *result, size_t length);
int rowlock_once_abandon(rowlock_once *once, int64_t pause_ms, const void *why, size_t length);
const void *rowlock_once_result(const rowlock_once *once, size_t *length);
void rowlock_once_close(rowlock_once *once);
typedef struct rowlock_once_record {
    size_t size;
    int64_t token;
    int64_t changed_us;
    int64_t age_ms;
    int64_t remaining_ms;
    int done;
    int result_length;
    char key[256];
    char fingerprint[256];
    char result[512];
    ...;
} rowlock_once_record;
int rowlock_once_list(rowlock_db *db, const char *prefix, int (*each)(void *context, const rowlock_once_record *record), void *context);
int rowlock_once_forget(rowlock_db *db, const char *key, int64_t token);
int rowlock_once_sweep(rowlock_db *db, int64_t older_ms, int batch, int64_t *removed);
rowlock_once_options rowlock_once_options_init(void);
