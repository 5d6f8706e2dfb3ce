/* SPDX-License-Identifier: MIT
 *
 * The seam between core and the databases: what a driver is asked, and what it answers. Nothing
 * here says when a step is taken or what its answer means; that is core's business.
 *
 * A driver performs ONE atomic step per call and reports facts. It decides nothing, retries
 * nothing, logs nothing, calls nothing of core but what stands at the foot of this file and in
 * base/, and never sleeps. Every vendor call of the library stands in a driver's file; every
 * word of SQL but BEGIN, COMMIT, ROLLBACK and connection settings stands in
 * sql/<dialect>/<step>.sql, whose contract is sql/README.md.
 *
 * A step ends in one of the classes below, and core acts on the class alone. The rules that
 * matter:
 *
 *   - RLK_DONE with "no row" is an answer, not a failure.
 *   - RLK_CONTENTION and RLK_UNSENT promise that the step changed nothing.
 *   - RLK_UNCERTAIN is the only honest class once the first byte was sent and no answer came: the
 *     connection was lost, a deadline passed, or the server was told to cancel. The connection is
 *     dead then.
 *   - Where a driver cannot tell UNSENT from UNCERTAIN, it is UNCERTAIN.
 *   - A new name, a new owner: no step trusts anything remembered from an earlier one.
 *
 * Adding a database: one folder in src/backend/, one folder under sql/, one line in
 * src/db/backends.c. */
#ifndef RLK_BACKEND_H
#define RLK_BACKEND_H

#include <rowlock/rowlock.h>
#include <rowlock/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "seam/steps.h"

enum rlk_class {
    RLK_DONE, /* the step ran, its facts are filled in */
    /* deadlock, serialization failure, lock timeout, busy file: again, with jitter */
    RLK_CONTENTION,
    RLK_UNSENT, /* the connection is dead and the step certainly did not run */
    RLK_UNCERTAIN, /* the connection is dead and the step may have run */
    RLK_READONLY, /* a replica, a read-only server, a full disk: takes no writes at present */
    RLK_SCHEMA, /* our tables or routines are missing or have another shape */
    RLK_MISFIT, /* the step ran, but its answer has another shape: nobody knows what it did */
    RLK_DENIED, /* login, privilege */
    RLK_INVALID, /* a value or setting this database cannot take; again makes no sense */
    RLK_UNSUPPORTED, /* server or client library too old, feature not built in */
    RLK_IN_TX, /* an adopted connection is inside a transaction; nothing was sent */
    RLK_NO_TX, /* it is not, and the step is only worth something inside one; nothing was sent */
    RLK_NOMEM,
    /* a row of the caller's own tables would break call->constraint; nothing was changed */
    RLK_VIOLATION,
    RLK_REFUSED /* anything else the server said; its text is in the diag */
};

/* One call across the seam: until when it may take, and what the database said if it failed. A
 * driver copies the native error in the statement after the failing call, before anything else
 * touches the connection. Deadlines are rlk_now_us() times; a driver may overrun by what its
 * client library's granularity costs, and says so in its file. */
enum rlk_where { RLK_OUTSIDE, RLK_INSIDE, RLK_EITHER };
struct rlk_call {
    int64_t deadline_us;
    /* Shall the step be a part of an open transaction, which is the caller's or one that frame()
     * began? INSIDE: it must, else RLK_NO_TX. OUTSIDE: it must not, else RLK_IN_TX. EITHER: if one
     * is open. Inside, the driver begins, commits and sets nothing, and a step that fails leaves
     * nothing of itself behind. */
    enum rlk_where where;
    /* out, whatever the class is. Each operation sets them but open(), close() and note(): */
    bool inside; /* the step was, or was to be, a part of an open transaction */
    bool late; /* the server ended it by a time limit, or because somebody cancelled it */
    /* a routine of ours was not there: an upgrade may be making it again at this moment */
    bool no_routine;
    bool tx_over; /* that transaction can only be rolled back, or has been */
    /* out, unless the class is RLK_DONE; rlk_diag_set() and rlk_refuse() set the first three: */
    int native; /* the database's own number of the error; 0: none */
    char sqlstate[6]; /* "": none */
    char text[512]; /* in the words of the database, without the advice that core adds */
    enum rowlock_constraint constraint; /* of a violation */
};

/* Which parameter stands for each marker of a step's text. */
enum { RLK_MARKERS = 16, RLK_OF_SCHEMA = 254, RLK_OF_PREFIX };
struct rlk_order {
    uint8_t count;
    uint8_t own; /* the marker, counted from 1, whose value the driver gives; 0: none */
    uint8_t from[RLK_MARKERS]; /* by its place in the step's list, or one of the two above */
};

/* The SQL of each step, in a driver's dialect, with our identifiers already quoted, qualified and
 * prefixed. Indexed by enum rlk_step; a step that the dialect does not have is NULL. */
struct rlk_texts {
    char *sql[RLK_STEP_COUNT];
    struct rlk_order order[RLK_STEP_COUNT];
    char schema[130]; /* where our tables are, unquoted: given by the user or learnt in rlk_hello */
    char prefix[34]; /* what their names begin with */
    char identity[64]; /* of the installation first met; "": none yet */
    bool before; /* steps are written for tables of the version before ours */
};

/* Where to connect. Strings are core's and outlive the call. */
struct rlk_target {
    const char *url; /* as the user gave it, our own rowlock_* parameters taken out */
    int64_t timeout_ms; /* of a statement: what client libraries want to know when they connect */
    int64_t connect_ms;
    const char *app_name; /* for the server's process list */
    bool known; /* we were connected before, so a host name that is not found now was no mistake */
    /* whatever stands in between lends a session of the server to nobody else */
    bool session_is_ours;
    /* An earlier session of ours, as rlk_hello named it, that may still have a statement of ours
     * before it: end it, so that nothing is done later that nobody waits for any more. "": none */
    const char *lingering;
};

/* What open() and adopt() learn about the connection, in one round trip. */
struct rlk_hello {
    char schema[130]; /* where our tables are looked for if nobody said; unquoted, not empty */
    char session[64]; /* what the server knows this session by; "" if it is not ours alone */
    bool several; /* the URL names other servers too: one that takes no writes is the wrong one */
};

/* Who asks for which lock. Times are microseconds. */
struct rlk_request {
    const char *name;
    int permits; /* 0: exclusive; -1: shared; N: one of at most N */
    bool unfair; /* those who stand in the queue are no obstacle */
    int64_t ticket; /* ours in the queue; 0: none */
    const char *owner;
    int64_t number; /* 63 random bits, one for each acquire: a repeated step finds its own grant */
    int64_t ttl_us;
    const char *host;
    int64_t pid;
    const char *program;
    const char *note;
    /* What the last try of this handle found. It says what to ask first, where one question is
     * cheaper than another; never what is so. met_slot: of the grant that kept it out, and is
     * reason enough to keep this one out; -1: none. granted: it was granted, so the lock is
     * likely to be free. */
    int64_t met_slot;
    bool granted;
};

/* How a wait for a wakeup ended. */
enum rlk_wakeup {
    RLK_WAKEUP, /* look now */
    RLK_SILENT, /* the time is over */
    RLK_INTERRUPTED, /* the descriptor became readable */
    RLK_NO_WAKEUPS /* at present nobody wakes here: look from time to time; returned at once */
};

/* May a read on one node miss what was committed on another before? PERHAPS: if more than one is
 * written to. */
enum rlk_lag { RLK_NEVER, RLK_PERHAPS, RLK_SURELY };

/* The server, as rowlock_check() wants to know it: plain facts, judged by core. */
struct rlk_facts {
    char server[128]; /* "PostgreSQL 15.3" */
    char isolation[32]; /* of a new transaction on this connection: "read committed" */
    char engine[64]; /* storage of our tables: "InnoDB", "logged tables", "journal_mode wal" */
    char collation[64]; /* of rowlock_locks.name */
    char durability[96]; /* "synchronous_commit on" */
    bool crash_safe; /* our tables are transactional and survive a crash of the server */
    bool bytewise; /* names compare byte by byte */
    bool durable; /* a commit that was answered survives a crash */
    bool read_only;
    bool may_lock; /* our routines are there, and this user has the privileges that locking takes */
    bool reads_only; /* it has not one that writes, as a reader of grants.sql */
    bool pooled; /* something stands between that may lend a session for a transaction */
    bool any_isolation; /* the isolation makes no difference to our steps on this connection */
    bool replication_known; /* as far as a server can know who copies it */
    bool replicates_late; /* a commit is answered before a replica that may be promoted has it */
    bool may_turn_late; /* it will be, when the replicas have been silent for a time */
    bool cut_off; /* no commit is answered at present: those that it waits for are missing */
    char replication[128]; /* "1 standby, asynchronous" */
    char nodes[96]; /* where several nodes may take writes: which, and what their reads wait for */
    enum rlk_lag nodes_lag;
    char access[64]; /* of a file: "file 0600, folder 0755"; "": the database is not one */
    bool others_read; /* any user of the machine may read the file, */
    bool others_write; /* and write or replace it */
    int64_t now_us; /* the server's clock */
    int64_t asked_us; /* core's: the clock of this machine, halfway through the question */
};

/* Core's, given each row of query(). The cells are valid until it returns. It does not call the
 * driver. 0: go on. Above 0: core wants no more rows, and the step is RLK_DONE. Below 0: core does
 * not understand the row. The driver undoes the step if it can; core makes it a misfit. */
typedef int rlk_cells_fn(void *context, const rowlock_value *cells, size_t count);

/* One statement: a step of ours, or one about the caller's own tables, composed by core of
 * templates in sql/ and quoted names. */
struct rlk_query {
    enum rlk_step step; /* of ours; RLK_STEP_NONE: about the caller's own tables */
    /* A lock: what is changed may be what the first in its queue waits for, who is to be woken
     * when that is committed. NULL: none. */
    const char *wakes;
    rowlock_value *own; /* of the values, the one that the driver gives; NULL: none */
    /* Of this very text, in this process, for ever: a driver may keep the statement prepared by
     * it. 0: it is not worth keeping. Steps have their own. */
    uint64_t id;
    const char *sql;
    /* One for each marker, in the order of the markers; of numbered markers, of their numbers.
     * They are good until query() returns. */
    const rowlock_value *values;
    size_t count;
    rlk_cells_fn *each; /* NULL: nobody wants the rows, which are read all the same */
    void *context;
    int64_t changed; /* out: rows inserted, updated, deleted, if it is such a statement; else 0 */
    bool counted; /* out: it has no columns, so that changed is all of its answer */
};

/* What became of a request, so that the driver keeps or ends what wakes the next in the queue. */
enum rlk_news {
    RLK_ENQUEUED, /* a ticket was taken or kept; number is the third cell of the answer */
    RLK_TAKEN, /* the request was granted; number is its token */
    RLK_LEFT, /* the ticket was given back */
    RLK_WITHDRAWN, /* there is no grant of the request, or not any more */
    /* the grant of this name and token (number) is not exclusive any more, or is gone */
    RLK_GONE_GRANT
};

/* BEGIN, COMMIT, ROLLBACK are of a transaction of ours; the others of a savepoint inside of one,
 * ours or the caller's. */
enum rlk_frame {
    RLK_BEGIN,
    RLK_COMMIT,
    RLK_ROLLBACK,
    RLK_SAVE,
    RLK_KEEP,
    RLK_UNDO,
    /* nothing is sent: is one open? call->inside says, also where the answer is not DONE */
    RLK_LOOK
};

/* How many rows go into one statement: as arrays, a text like {"1",NULL} for each column; as one
 * JSON text, an array of arrays whose bytes are hexadecimal; or one row at a time. */
enum rlk_packing { RLK_ARRAYS, RLK_JSON, RLK_SINGLY };

/* A driver. Its const struct stands in its driver.c, as the table of contents.
 *
 *   - conn is its state for one connection: conn_size bytes, owned by core. They are zero before
 *     open() and adopt().
 *   - The order of calls is: open() or adopt(), any others, close(). After RLK_UNSENT and
 *     RLK_UNCERTAIN core calls close() before anything else; then open() again with the same
 *     conn, zeroed. An adopted connection is not replaced.
 *   - One thread at a time uses a conn. Several threads may use several.
 *   - Nothing but a transaction that frame() began, a ticket's wakeup and what makes the next step
 *     faster may stay in conn from one call to the next. So a driver may send each step over
 *     another connection, except between BEGIN and the end of that transaction.
 *   - An operation must be there unless it says that it may be NULL. It takes one round trip and
 *     blocks no longer than call->deadline_us, unless it says otherwise. */
struct rlk_backend {
    const char *name; /* "postgres": the folder under sql/ */
    const char *const *schemes; /* URL schemes, NULL-terminated */
    size_t conn_size;
    char quote; /* around identifiers, doubled inside them; names of ours never have one */
    char marker; /* of a parameter: '?' or '$' */
    bool numbered; /* with its number after it */
    bool local; /* a statement costs no round trip, so that core looks before it tries */
    bool backslash_escapes; /* within the quotes of a text */
    bool has_policies; /* rows can be seen that cannot be locked */
    /* the rows of a pack, in the caller's transaction, to lock them in order */
    bool locks_rows_first;
    bool tells_no_rows; /* a change of a pack says how many rows it was done to, and not which */
    enum rlk_packing packing;

    /* Connect, in as many round trips as it takes. Whatever it returns, close() is called once.
     * texts outlives the connection. Core fills it when the first open() or adopt() is done, since
     * hello->schema is a part of it: these two operations send no step. RLK_UNCERTAIN means as much
     * as RLK_UNSENT here. */
    enum rlk_class (*open)(void *conn, struct rlk_call *call, const struct rlk_target *target,
                           const struct rlk_texts *texts, struct rlk_hello *hello);
    /* Borrow the caller's connection. The driver then changes no setting, prepares nothing that
     * stays behind on the server, opens no transaction that is visible to the caller after the
     * call, and answers RLK_IN_TX while the caller's transaction is open, unless call->where
     * allows it. What the caller has open is seen anew in each call. */
    enum rlk_class (*adopt)(void *conn, struct rlk_call *call, void *vendor,
                            const struct rlk_texts *texts, struct rlk_hello *hello);
    /* Called by a thread of ours before and after its use of a connection that another has
     * opened; may be NULL. */
    void (*enter_thread)(void);
    void (*leave_thread)(void);
    /* May not block for long. Also after an open() that failed half-way, with a conn whose
     * connection is lost, and in a transaction, which ends as a rollback. in_child: after fork;
     * leave the shared socket alone, free memory only. An adopted connection stays open. */
    void (*close)(void *conn, bool in_child);

    /* Run a text of several statements, such as the one of SCHEMA. It says itself where it begins
     * and ends a transaction; one that is left open by a failure is rolled back. Any number of
     * round trips. */
    enum rlk_class (*script)(void *conn, struct rlk_call *call, const char *sql);
    /* Add what the step `facts` cannot tell, whose answer is in *out. Any number of round trips. */
    enum rlk_class (*facts)(void *conn, struct rlk_call *call, struct rlk_facts *out);

    /* What became of a request, so that its wakeup is kept or woken: never fails. It comes after
     * the step, with another call, and may cost a round trip. Of ENQUEUED the answer is whether
     * await() will be woken for this request; of the others it is not used. NULL: await() is never
     * woken. */
    bool (*note)(void *conn, struct rlk_call *call, enum rlk_news news,
                 const struct rlk_request *request, int64_t number);
    /* Wait until it may be our turn. *out says how it ended: by call->deadline_us, because wake
     * (a descriptor, which the driver does not read) is readable, or by a wakeup, which may wake
     * without reason. Where this request cannot be woken, RLK_NO_WAKEUPS at once: core waits then.
     * No transaction is open meanwhile. If the connection is useless after an interruption, *out is
     * RLK_INTERRUPTED all the same, and the class RLK_UNCERTAIN (a statement may still wait at
     * the server) or RLK_UNSENT. */
    enum rlk_class (*await)(void *conn, struct rlk_call *call, const struct rlk_request *request,
                            int wake, enum rlk_wakeup *out);

    /* One statement: by itself, or where it may be inside, a part of the transaction. A step
     * whose text has several statements is a transaction of its own, or a part of the caller's;
     * once one of them has answered a row, those behind it are not run. Core checks how many rows
     * and columns there are and what is in them. A cell is INT, REAL,
     * DECIMAL, BYTES, BOOL, TIME where the database has such a type, else TEXT; an integer that
     * is not one of 64 bits with a sign is DECIMAL. What contradicts a constraint (also a unique
     * key: such a text never makes that happen by itself), and a value that does not fit its
     * column, is RLK_VIOLATION. A name that is not there is RLK_INVALID. These two are for the
     * caller's own tables; in a step of ours a name that is not there is RLK_SCHEMA. */
    enum rlk_class (*query)(void *conn, struct rlk_call *call, struct rlk_query *query);
    /* BEGIN only outside of a transaction (RLK_IN_TX), the others only inside (RLK_NO_TX),
     * whatever call->where. After BEGIN steps with RLK_INSIDE and RLK_EITHER are a part of it,
     * on a connection of our own too. Savepoints may be within each other; KEEP and UNDO end the
     * innermost. COMMIT and ROLLBACK are for a transaction that BEGIN has begun here. A COMMIT
     * that the server turned into a rollback is RLK_CONTENTION. A driver without transactions
     * answers RLK_DONE to LOOK and RLK_UNSUPPORTED to the others. */
    enum rlk_class (*frame)(void *conn, struct rlk_call *call, enum rlk_frame what);
};

/* ---- what a driver may call, beside base/
 *
 * Copy text into a call's diag, cut at a character, control characters made blank, so that a
 * server's many-line message is one line. */
void rlk_diag_set(struct rlk_call *call, int native, const char *sqlstate, const char *text);

/* What the driver itself has to say. Returns the class. */
enum rlk_class rlk_refuse(struct rlk_call *call, enum rlk_class class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Try the servers of a URL in their order. The time that is left is shared out among them. One that
 * cannot be reached, or takes no writes, is passed over. Any other failure ends the search, so that
 * its reason is seen. */
enum rlk_class rlk_try_servers(struct rlk_call *call, size_t count,
                               enum rlk_class (*try)(void *context, size_t number), void *context);

/* Which statements about the caller's own tables a connection keeps prepared. The place of a
 * statement is where its id is. If its id is not there, it may be put there, in the place of the
 * one that is: id 0 is none. */
enum { RLK_PREPARED_MAX = 32 };
struct rlk_prepared {
    uint64_t id[RLK_PREPARED_MAX];
    unsigned next; /* to make room when all places are in use */
};
unsigned rlk_find_prepared(struct rlk_prepared *kept, uint64_t id);

/* The length of the first statement in one of our texts of several: it ends with a semicolon at
 * the end of a line that is not indented, as the lines inside of a routine are. */
size_t rlk_statement_length(const char *text);

/* The shape of an answer is a letter for each column:
 *
 *   i  an integer of 64 bits         m  one that a time, a duration or a count can be: not negative
 *   n  a number of permits, or a small count: -1 to 2^31 - 1
 *   b  true or false, or an integer that stands for it
 *   t  text or bytes                 .  anything
 *
 * A capital letter allows NULL too. How many rows there are is a character of its own: 1 exactly
 * one, ? at most one, * any number. Core looks at the answers of steps; a
 * driver looks at what it asks itself. */
bool rlk_cell_fits(char letter, const rowlock_value *cell);
bool rlk_cells_fit(const char *letters, const rowlock_value *cells, size_t count);

/* The length of the first statement of a text for script(). It ends with a semicolon at the end of
 * a line that is not indented, which lines inside of routines are. */
size_t rlk_statement_length(const char *text);

/* An answer that does not fit: the class of that, RLK_SCHEMA for a step that only reads. */
enum rlk_class rlk_diag_misfit(struct rlk_call *call, enum rlk_step step);

#endif
