/* SPDX-License-Identifier: MIT
 *
 * The operations of a driver: what core asks of a database, and what a driver answers.
 * Core decides when a step is sent and what its answer means.
 *
 * A driver performs ONE atomic step per call and reports facts. It decides, retries and logs
 * nothing, and it never sleeps. Of core it calls only base/ and the functions at the end of this
 * file. All calls of vendor libraries are in drivers. Drivers contain no SQL except BEGIN, COMMIT,
 * ROLLBACK and connection settings. All other SQL is in sql/<dialect>/, described in sql/README.md.
 *
 * A step ends in one of the classes below. Core acts on the class. These rules matter:
 *
 *   - RLK_DONE with "no row" is an answer, not a failure.
 *   - RLK_CONTENTION and RLK_UNSENT promise that the step changed nothing.
 *   - A step is RLK_UNCERTAIN if its first byte was sent and no answer came. That is so when the
 *     connection was lost, a deadline passed, or the driver has asked the server to cancel. The
 *     connection is dead then.
 *   - A driver that cannot tell UNSENT from UNCERTAIN says UNCERTAIN.
 *   - No step relies on what an earlier step has found.
 *
 * To add a database, see CONTRIBUTING.md. */
#ifndef RLK_DRIVER_H
#define RLK_DRIVER_H

#include <rowlock/rowlock.h>
#include <rowlock/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/wait.h"
#include "core/steps.h"

enum rlk_class {
    /* The step ran, and its facts are filled in. */
    RLK_DONE,
    /* Deadlock, serialization failure, lock timeout, busy file. Core retries with jitter. */
    RLK_CONTENTION,
    /* The connection is dead, and the step certainly did not run. */
    RLK_UNSENT,
    /* The connection is dead, and the step may have run. */
    RLK_UNCERTAIN,
    /* The server takes no writes, and the same address may lead to one that does: a replica, or a
     * server that was made read-only. Core connects again. */
    RLK_STANDBY,
    /* The database takes no writes, and connecting again does not help: a full disk, a setting of
     * this user. */
    RLK_READONLY,
    /* Our tables or routines are missing, or have another shape. */
    RLK_SCHEMA,
    /* The step ran, but its answer has another shape. So its effect is unknown. */
    RLK_MISFIT,
    /* Login or privilege. */
    RLK_DENIED,
    /* The database does not accept a value or setting. A retry is useless. */
    RLK_INVALID,
    /* The server or client library is too old, or a feature is not built in. */
    RLK_UNSUPPORTED,
    /* A transaction is open on an adopted connection. Nothing was sent. */
    RLK_IN_TX,
    /* No transaction is open, and the step needs one. Nothing was sent. */
    RLK_NO_TX,
    RLK_NOMEM,
    /* A row of the caller's own tables would break call->constraint. Nothing was changed. */
    RLK_VIOLATION,
    /* Any other error of the server. Its text is in the call. */
    RLK_REFUSED
};

/* One call of an operation: its deadline, and what the database said if it failed. A driver copies
 * the native error before it uses the connection again. Deadlines are times of rlk_now_us(). A
 * driver may overrun them by the granularity of its client library, and says so in its file. */
enum rlk_where { RLK_OUTSIDE, RLK_INSIDE, RLK_EITHER };
struct rlk_call {
    int64_t deadline_us;
    /* Is the step a part of an open transaction? It is one of the caller, or one that frame()
     * began.
     *
     *   INSIDE   it must be, else RLK_NO_TX
     *   OUTSIDE  it must not be, else RLK_IN_TX
     *   EITHER   it is if one is open
     *
     * Inside, the driver does not begin or commit, and changes no setting. A step that fails there
     * leaves no changes. */
    enum rlk_where where;
    /* The caller does not ask again. The step may be sent until then, also after the caller has
     * given up. 0: no later than the deadline. Only a pool makes use of it. */
    int64_t worth_until_us;
    /* out, for each class. All operations except open(), close() and tell() set these: */
    /* The step was a part of an open transaction, or should have been. */
    bool inside;
    /* The server ended the step by a time limit or a cancel. */
    bool late;
    /* The answer was none that such a server gives. The connection is of no more use. */
    bool garbled;
    /* A routine of ours was missing. An upgrade may be creating it at this moment. */
    bool no_routine;
    /* Only the driver had looked at the tables before they turned out to be wrong. Core sets it. */
    bool trusted;
    /* That transaction was rolled back, or can only be rolled back. */
    bool tx_over;
    /* When it was sent, by rlk_now_us(), if it stood in line before. 0: at once. */
    int64_t sent_us;
    /* out, unless the class is RLK_DONE. rlk_diag_set() and rlk_refuse() set the first three: */
    /* The database's own number of the error. 0: none. */
    int native;
    /* "": none. */
    char sqlstate[6];
    /* The text of the database, without the advice that core adds. */
    char text[512];
    /* Which kind of constraint a violation broke. */
    enum rowlock_constraint constraint;
};

/* Which parameter belongs to each marker of a step's text. */
enum { RLK_MARKERS = 16, RLK_OF_SCHEMA = 254, RLK_OF_PREFIX };
struct rlk_order {
    uint8_t count;
    /* The number of the marker whose value the driver gives, from 1. 0: there is none. */
    uint8_t own;
    /* The index in the step's list of parameters, or RLK_OF_SCHEMA, or RLK_OF_PREFIX. */
    uint8_t from[RLK_MARKERS];
};

/* The SQL of each step in a driver's dialect. Our identifiers are already quoted, qualified and
 * prefixed. A step that the dialect does not have is NULL. */
struct rlk_texts {
    char *sql[RLK_STEP_COUNT];
    struct rlk_order order[RLK_STEP_COUNT];
    /* Where our tables are, unquoted. The user has given it, or rlk_hello. */
    char schema[130];
    /* The names of our tables and routines begin with it. */
    char prefix[34];
    /* The installation that this handle first met. "": none yet. */
    char identity[64];
    /* Which member of a quorum the installation is, from 1. 0: none. */
    int64_t member;
    /* The texts are those for tables of the version before. */
    bool before;
    /* The texts are those of a pool, and do not change. */
    bool shared;
};

/* Where to connect. Core owns the strings. They outlive the call. */
struct rlk_target {
    /* As the user gave it, without our own rowlock_* parameters. */
    const char *url;
    /* A statement's time limit. Client libraries need it when they connect. */
    int64_t timeout_ms;
    int64_t connect_ms;
    /* For the server's process list. */
    const char *app_name;
    /* We were connected before, so an unknown host name is an outage and not a mistake. */
    bool known;
    /* No pooler lends our session of the server to other clients. */
    bool session_is_ours;
    /* An earlier session of ours, as in rlk_hello, in which a statement of ours may still run. The
     * driver ends it, so that the statement does not take effect later. "": none. */
    const char *lingering;
    /* Called with the text of each wake-up that await() takes. NULL: it is not needed. */
    void (*heard)(void *context, const char *text);
    void *heard_context;
};

/* What open() and adopt() learn about the connection, in one round trip. */
struct rlk_hello {
    /* Where our tables are if the user has not named a schema. Unquoted, not empty. */
    char schema[130];
    /* The server's name for this session. "" if other clients may get it too. */
    char session[64];
    /* The server is known to take writes. */
    bool takes_writes;
    /* The URL names several servers, so one of them should be a standby. */
    bool several;
    /* The driver looks at our tables before it uses them. So core need not, unless a step says that
     * they are wrong. */
    bool looked;
};

/* A request for a lock. Times are microseconds. */
struct rlk_request {
    const char *name;
    /* 0: exclusive; -1: shared; N: one of at most N. */
    int permits;
    /* The request may overtake the queue. */
    bool unfair;
    /* Our ticket in the queue. 0: none. */
    int64_t ticket;
    const char *owner;
    /* 63 random bits, the same when a step is sent again. So it finds its own grant. */
    int64_t number;
    int64_t ttl_us;
    const char *host;
    int64_t pid;
    const char *program;
    const char *note;
    /* Hints from the last try of this handle. They choose the cheapest first step, and decide
     * nothing. met is the grant that kept the try out, if that grant alone is enough to keep this
     * one out. NULL: none. */
    const struct rlk_row *met;
    /* The last two tries met it. */
    bool met_again;
    /* The last try was granted, so the lock is likely to be free. */
    bool granted;
};

/* How a wait for a wake-up ended. */
enum rlk_wakeup {
    /* Look now. */
    RLK_WAKEUP,
    /* The deadline has passed. */
    RLK_SILENT,
    /* The descriptor became readable. */
    RLK_INTERRUPTED,
    /* No wake-up can reach this connection at present. It is returned at once. */
    RLK_NO_WAKEUPS
};

/* May a read on one node miss an earlier commit on another node? PERHAPS: only if clients write to
 * more than one node. */
enum rlk_lag { RLK_NEVER, RLK_PERHAPS, RLK_SURELY };

enum { RLK_FACT_CAP = 128 };
/* Facts about the server for rowlock_check(). Core judges them. */
struct rlk_facts {
    /* "PostgreSQL 15.3" */
    char server[RLK_FACT_CAP];
    /* What a new transaction on this connection gets: "read committed". */
    char isolation[RLK_FACT_CAP];
    /* Storage of our tables: "InnoDB", "logged tables", "journal_mode wal". */
    char engine[RLK_FACT_CAP];
    /* The collation of rowlock_locks.name. */
    char collation[RLK_FACT_CAP];
    /* "synchronous_commit on" */
    char durability[RLK_FACT_CAP];
    /* Our tables are transactional and survive a crash of the server. */
    bool crash_safe;
    /* Names compare byte by byte. */
    bool bytewise;
    /* A commit that was answered survives a crash. */
    bool durable;
    bool read_only;
    /* The file system of a file has no room for another change. */
    bool disk_full;
    /* Our routines are there, and this user has the privileges for locking. */
    bool may_lock;
    /* This user has no privilege to write, like the role reader. */
    bool reads_only;
    /* The hosted service that the server belongs to. It has copies that no server shows. */
    char service[RLK_FACT_CAP];
    /* A pooler may lend our session to other clients after each transaction. */
    bool pooled;
    /* The isolation makes no difference to our steps on this connection. */
    bool any_isolation;
    /* The server knows its replicas, as far as a server can. */
    bool replication_known;
    /* A commit is answered before a replica that may be promoted has it. */
    bool replicates_late;
    /* That will become so if the replicas do not answer for a time. */
    bool may_turn_late;
    /* No commit is answered at present, since the replicas that it waits for are missing. */
    bool cut_off;
    /* No replica is connected. */
    bool no_standby;
    /* The server was made for one, or has been one. */
    bool expects_standby;
    /* "1 standby, asynchronous" */
    char replication[RLK_FACT_CAP];
    /* If several nodes may take writes: their names, and what their reads wait for. */
    char nodes[96];
    enum rlk_lag nodes_lag;
    /* The modes of a file: "file 0600, folder 0755". "": the database is not a file. */
    char access[64];
    /* Any user of the machine may read the file. */
    bool others_read;
    /* Any user of the machine may write or replace the file. */
    bool others_write;
    /* Any user of the machine may make a file beside it. */
    bool others_beside;
    /* The server's clock. */
    int64_t now_us;
    /* The clock of this machine, halfway through the question. Core sets it. */
    int64_t asked_us;
};

/* A function of core, called with each row of query(). The cells are valid until it returns. It
 * does not call the driver.
 *
 * Returns
 *    0   continue
 *   >0   core wants no more rows; the step is RLK_DONE
 *   <0   core does not understand the row; the driver undoes the step if it can, and core makes the
 *        class RLK_MISFIT or RLK_SCHEMA */
typedef int rlk_cells_fn(void *context, const rowlock_value *cells, size_t count);

/* One statement: a step of ours, or a statement about the caller's own tables. Core composes the
 * latter from templates in sql/ and quoted names. */
struct rlk_query {
    /* RLK_STEP_NONE: a statement about the caller's own tables. */
    enum rlk_step step;
    /* The name of a lock whose first waiter may get its turn by this step. The driver wakes it when
     * the step is committed. NULL: none. */
    const char *wakes;
    /* The one of the values that the driver gives. NULL: none. */
    rowlock_value *own;
    /* Identifies the text within this process, so that a driver may keep the statement prepared. 0:
     * preparing is not worthwhile. A step is identified by `step` instead. */
    uint64_t id;
    const char *sql;
    /* One value for each marker, in the order of the markers. If markers have numbers, one for each
     * number. They are valid until query() returns. */
    const rowlock_value *values;
    size_t count;
    /* A step's values in the order of its parameters. They are valid as long. */
    const rowlock_value *given;
    /* NULL: core does not need the rows. The driver reads them all the same. */
    rlk_cells_fn *each;
    void *context;
    /* Set to false where a row lock does not wait for all transactions, since another server may
     * commit one that this one does not know yet. Rows may be missing then. NULL: not asked. */
    bool *waits_for_all;
    /* out */
    /* Rows inserted, updated or deleted. 0 for other statements. */
    int64_t changed;
    /* The statement has no columns, so `changed` is its whole answer. */
    bool counted;
};

/* What became of a request. A driver may need it to wake the next in the queue. */
enum rlk_news {
    /* The request has this ticket, new or renewed. number is the third cell of the answer. */
    RLK_ENQUEUED,
    /* The request was granted. number is its token. */
    RLK_TAKEN,
    /* The ticket was given back. */
    RLK_LEFT,
    /* The request has no grant, or has none any more. */
    RLK_WITHDRAWN,
    /* The grant of this name is gone, or is not exclusive any more. number is its token. */
    RLK_GONE_GRANT
};

/* BEGIN, COMMIT and ROLLBACK are for transactions of ours. */
enum rlk_frame {
    RLK_BEGIN = 1,
    RLK_COMMIT,
    RLK_ROLLBACK,
    /* Sets a savepoint, in a transaction of ours or of the caller. */
    RLK_SAVE,
    /* Releases the savepoint. Its changes stay. */
    RLK_KEEP,
    /* Rolls back to the savepoint, and releases it. */
    RLK_UNDO,
    /* Is a transaction open? call->inside says it, for each class. Nothing is sent. */
    RLK_LOOK
};

/* How a driver sends many rows.
 *
 *   ARRAYS  a text like {"1",NULL} for each column
 *   JSON    one text: an array of arrays, whose bytes are hexadecimal
 *   SINGLY  one row in each statement */
enum rlk_packing { RLK_ARRAYS, RLK_JSON, RLK_SINGLY };

/* A driver. Its const struct is in its driver.c.
 *
 *   - conn is the driver's state for one connection: conn_size bytes that core owns. They are zero
 *     before open() and adopt().
 *   - The order of calls is: open() or adopt(), any others, close(). After RLK_UNSENT and
 *     RLK_UNCERTAIN core calls close() first, then open() again with the same conn, zeroed. Core
 *     does not replace an adopted connection.
 *   - One thread at a time uses a conn. Different threads may use different ones.
 *   - conn keeps only three things from one call to the next: a transaction that frame() began,
 *     the wake-up of a ticket, and what makes the next step faster. So a driver may send each step
 *     over another connection, except during such a transaction.
 *   - An operation is not NULL, takes one round trip, and blocks no longer than call->deadline_us.
 *     Exceptions are named below. */
struct rlk_driver {
    /* "postgres": also the name of the folder under sql/. */
    const char *name;
    /* The URL schemes. The last is followed by NULL. */
    const char *const *schemes;
    size_t conn_size;
    /* The quote around identifiers, doubled inside them. Names of ours never contain it. */
    char quote;
    /* The marker of a parameter: '?' or '$'. */
    char marker;
    /* The marker has a number after it. */
    bool numbered;
    /* A statement costs no round trip, so core looks before it tries. */
    bool local;
    /* A backslash is an escape character inside '…'. */
    bool backslash_escapes;
    /* A statement may see rows that it may not lock. */
    bool has_policies;
    /* In the caller's transaction core locks the rows of a pack before it changes them, so that
     * they are locked in order. */
    bool locks_rows_first;
    /* A change of a pack answers only how many rows it has changed, and not which. */
    bool tells_no_rows;
    enum rlk_packing packing;
    /* A call ends by target->timeout_ms, and not by an earlier deadline of its own. */
    bool overruns;

    /* Names the client library that runs, with its version: "libpq 15.3". Needs no connection. */
    void (*client)(char *out, size_t cap);

    /* Connects. Any number of round trips. close() is called once, for each class. texts outlives
     * the connection. hello->schema is a part of texts, so core fills texts after the first open()
     * or adopt(). So these two send no step. RLK_UNCERTAIN means the same as RLK_UNSENT here. */
    enum rlk_class (*open)(void *conn, struct rlk_call *call, const struct rlk_target *target,
                           const struct rlk_texts *texts, struct rlk_hello *hello);
    /* Borrows the caller's connection. Each call finds out anew whether a transaction of the
     * caller is open. If one is, the class is RLK_IN_TX, unless call->where allows it. On an
     * adopted connection the driver changes no setting, and leaves no prepared statement on the
     * server and no open transaction. */
    enum rlk_class (*adopt)(void *conn, struct rlk_call *call, void *vendor,
                            const struct rlk_texts *texts, struct rlk_hello *hello);
    /* A thread of ours calls it before and after its use of a connection that another thread has
     * opened. May be NULL. */
    void (*use_in_thread)(bool begins);
    /* Closes the connection without blocking for long. Core also calls it after an open() that
     * failed half-way, and when the connection is lost. An open transaction is rolled back. An
     * adopted connection stays open. in_child: after fork, free memory only, and leave the shared
     * socket alone. */
    void (*close)(void *conn, bool in_child);

    /* Runs a text of several statements, such as that of SCHEMA. The text itself begins and ends
     * transactions. If a failure leaves one open, the driver rolls it back. Any number of round
     * trips. */
    enum rlk_class (*script)(void *conn, struct rlk_call *call, const char *sql);
    /* *out has the answer of the step `facts`. The driver adds the facts that the step cannot tell.
     * Any number of round trips. */
    enum rlk_class (*facts)(void *conn, struct rlk_call *call, struct rlk_facts *out);

    /* Tells the driver what became of a request, so that it can wake the next in the queue. Core
     * calls it after the step, with another call. It never fails, and may cost a round trip. For
     * ENQUEUED it returns whether a wake-up for this request can end await(). For others the
     * answer is not used. NULL: there are no wake-ups. */
    bool (*tell)(void *conn, struct rlk_call *call, enum rlk_news news,
                 const struct rlk_request *request, int64_t number);
    /* Waits until it may be our turn. No transaction is open during the wait. *out says how it
     * ended:
     *
     *   RLK_WAKEUP       a wake-up came; it may come without reason
     *   RLK_SILENT       call->deadline_us has passed
     *   RLK_INTERRUPTED  the descriptor wake is readable; the driver does not read it
     *   RLK_NO_WAKEUPS   no wake-up can reach this request; it returns at once, and core waits
     *
     * If an interruption has cost the connection, *out is RLK_INTERRUPTED too. The class is
     * RLK_UNCERTAIN if a statement may still wait at the server, else RLK_UNSENT. */
    enum rlk_class (*await)(void *conn, struct rlk_call *call, const struct rlk_request *request,
                            int wake, enum rlk_wakeup *out);

    /* Sends one statement: by itself, or as a part of the transaction if call->where allows it.
     *
     *   - A step whose text has several statements is a transaction of its own, or a part of the
     *     open one. After one of them has answered a row, the driver does not run the others.
     *   - Core checks the number of rows and columns, and the cells.
     *   - A cell is INT, REAL, DECIMAL, BYTES, BOOL or TIME where the database has such a type,
     *     else TEXT. An integer that does not fit into 64 bits with a sign is DECIMAL.
     *   - In the caller's own tables, a broken constraint and a value that does not fit its column
     *     are RLK_VIOLATION. A broken unique key is one too: our texts never break one by
     *     themselves.
     *   - A name that does not exist is RLK_INVALID there. In a step of ours it is RLK_SCHEMA. */
    enum rlk_class (*query)(void *conn, struct rlk_call *call, struct rlk_query *query);
    /* Begins and ends transactions and savepoints. call->where has no effect here.
     *
     *   - BEGIN is RLK_IN_TX inside a transaction. The others except LOOK are RLK_NO_TX outside.
     *   - After BEGIN steps with RLK_INSIDE and RLK_EITHER are a part of the transaction, also on a
     *     connection of our own.
     *   - Savepoints may be nested. KEEP and UNDO end the innermost.
     *   - COMMIT and ROLLBACK are only for a transaction that BEGIN has begun here.
     *   - A COMMIT that the server turned into a rollback is RLK_CONTENTION.
     *   - A driver without transactions answers RLK_DONE to LOOK, and RLK_UNSUPPORTED to others. */
    enum rlk_class (*frame)(void *conn, struct rlk_call *call, enum rlk_frame what);
};

/* Those that may be built in. Only api/drivers.c names them. */
extern const struct rlk_driver rlk_driver_postgres, rlk_driver_mysql, rlk_driver_sqlite;

/* ---- what a driver may call, beside base/ */

/* Copies the database's error into the call. The text becomes one line: control characters become
 * blanks, and a long text is cut between two characters. */
void rlk_diag_set(struct rlk_call *call, int native, const char *sqlstate, const char *text);

/* Sets an error of the driver itself. Returns the class. */
enum rlk_class rlk_refuse(struct rlk_call *call, enum rlk_class class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names a lost or hanging server, if the client library's text does not. host may be NULL, port may
 * be 0. Returns the class. */
enum rlk_class rlk_name_server(struct rlk_call *call, enum rlk_class class, const char *host,
                               unsigned port);

/* Tries the servers of a URL in their order. They share the time that is left. It skips a server
 * that cannot be reached or takes no writes. Any other failure ends the search, so that the user
 * sees its reason. */
enum rlk_class rlk_try_servers(struct rlk_call *call, size_t count,
                               enum rlk_class (*try)(void *context, size_t number), void *context);

/* Where a connection keeps its prepared statements. Each step has a place. Statements about the
 * caller's own tables share those after the steps, and the newest replace the others. The place of
 * RLK_STEP_NONE is for a statement that is not kept. */
enum { RLK_PREPARED_MAX = 32, RLK_PLACES = RLK_STEP_COUNT + RLK_PREPARED_MAX };
struct rlk_places {
    /* 0: no statement had this place yet. */
    uint64_t id[RLK_PREPARED_MAX];
    unsigned next;
};
/* Gives the statement a place. *same: it had the place already. */
unsigned rlk_find_place(struct rlk_places *places, const struct rlk_query *query, bool *same);

/* Memory that a connection keeps for its next statements. Zeros are an empty one. */
struct rlk_room {
    void *memory;
    size_t size;
};
/* Returns room for this many bytes. Their content is undefined. NULL: out of memory. */
void *rlk_room_for(struct rlk_room *room, size_t size);
void rlk_room_free(struct rlk_room *room);

/* The shape of an answer is a letter for each column:
 *
 *   i  an integer of 64 bits         m  one that a time, a duration or a count can be: not negative
 *   n  a number of permits, or a small count: -1 to 2^31 - 1
 *   b  true or false, or an integer that stands for it
 *   t  text or bytes                 .  anything
 *
 * A capital letter allows NULL too. Core checks the answers of steps. A driver checks the answers
 * to its own questions. rlk_cells_fit() also knows the bar of steps.h. */
bool rlk_cell_fits(char letter, const rowlock_value *cell);
bool rlk_cells_fit(const char *letters, const rowlock_value *cells, size_t count);

/* The length of the first statement of a text for script(). A statement ends with a semicolon at
 * the end of a line that is not indented. Lines inside routines are indented. */
size_t rlk_statement_length(const char *text);

/* Sets the error for an answer that does not fit. Returns RLK_MISFIT, or RLK_SCHEMA for a step that
 * only reads. */
enum rlk_class rlk_diag_misfit(struct rlk_call *call, enum rlk_step step);

#endif
