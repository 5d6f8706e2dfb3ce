/* SPDX-License-Identifier: MIT
 *
 * A simulation: many clients, their databases and the network between them, in one thread, with a
 * clock that jumps to the next event. The clients run the shipped library, and the databases the
 * shipped SQL of SQLite. All that is random comes from one seed, so a failure comes again.
 *
 *   fibers.c   what takes the place of the clock, of random numbers, of threads and of waiting
 *   network.c  what takes the place of SQLite's driver: the way to a server and back, with its faults
 *   judge.c    what must hold, and the story of the last events
 *   locking.c  what a thread of a client does with locks
 *   rows.c     what a thread of a client does with rows, keys and walks
 *   worlds.c   which clients and servers there are, and what happens to them */
#pragma once

#include "public.h"

enum { SECOND = 1000000, MILLISECOND = 1000 };

/* ---- fibers.c */

/* A process has a clock of its own, and threads, which are fibers. */
struct process {
    int number;
    /* Its clock is ahead by so much, and runs faster by so many millionths. */
    int64_t ahead_us;
    int64_t ppm;
    /* Its clock of the day was set forward by so much since it began. */
    int64_t set_us;
    /* It stands still until then. */
    int64_t stopped_until;
    /* Killed: its fibers do not run again. */
    bool dead;
};

/* The process whose fiber runs. */
extern struct process *sim_process;

/* The true time, in microseconds from 0. */
int64_t sim_now(void);
void sim_seed(uint64_t seed);
/* From 0 to bound - 1. */
int64_t sim_random(int64_t bound);
/* True once in so many. 0: never. */
bool sim_once_in(int64_t many);
/* From least to most. Each doubling of least is as likely as the next. */
int64_t sim_spread(int64_t least, int64_t most);

/* A thread of a process. It is not joined. */
void sim_start(struct process *process, void *(*run)(void *), void *context);
/* Calls act(context) at that time, outside of all fibers. */
void sim_at(int64_t time, void (*act)(void *context), void *context);
/* Waits until sim_wake(key) or the true time. Returns whether it was woken. */
bool sim_wait(const void *key, int64_t until);
void sim_wake(const void *key);
void sim_sleep(int64_t us);
/* The true time at which the running process's clock shows that. */
int64_t sim_true(int64_t local_us);
/* Lets things happen until the flag is set, or nothing more can. */
void sim_run(const bool *over);
/* A place for something of the fiber that runs. */
void **sim_mine(void);
/* What rlk_cancel_wait() wakes, for a descriptor of rlk_waiting_open(). Was it called? */
const void *sim_alarm(int wake, bool *rings);

/* ---- network.c */

/* Each is one in so many requests. 0: never. */
struct faults {
    /* It does not arrive. It arrives after the client has given up. Its answer does not. */
    int64_t lost, late, mute;
    /* It takes up to seconds. The connection is cut before it is sent. A wake-up is lost. */
    int64_t slow, cut, deaf;
    /* The client's next allocation fails: one in so many. */
    int64_t memory;
};
extern struct faults faults;
/* How many requests were sent. */
extern int64_t network_requests;

enum { SERVERS_MOST = 5 };
/* Makes the files that stand for databases in this folder. Each has rowlock's tables then. */
void network_open(const char *folder, int servers);
const char *network_url(int server);
/* Runs SQL on a server, outside of all faults, and returns the number that it gives. */
int64_t network_sql(int server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How a server is, and until when. */
extern struct server_state {
    int64_t down_until, frozen_until, full_until, ahead_us;
    /* Only operators, who are process 0, get connections. */
    bool closed;
} network_state[SERVERS_MOST];
/* The server stops until then, or loses its connections. */
void network_stop(int server, int64_t until);
void network_cut(int server);
/* Makes a backup of the server; false: not now. Puts it back, without its mark. */
bool network_save(int server);
void network_restore(int server);
bool network_upgrade(int server);

/* ---- judge.c */

/* A grant as its holder knows it. */
struct holding {
    struct holding *next;
    const struct process *process;
    rowlock_lock *lock;
    char name[40];
    /* When it was asked for. */
    int64_t asked;
    int64_t token;
    int64_t ttl_ms;
    int permits;
};
/* The next COMMIT of the session that this fiber has used last proves this grant. */
void network_guard(const struct holding *holding);

/* Something happened: a line of the story. who: a process, or -1 - server. name may be NULL. */
void tell(int who, const char *what, const char *name, int64_t a, int64_t b);
/* What must not be. Prints the last events and the command that repeats them, and exits. */
void violation(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* How the command is called that makes this run again. */
extern char judge_command[500];
extern int64_t judge_grants;
/* Before and after a call that acquires. Returns what the newest token must exceed. */
int64_t judge_asks(const char *name);
void judge_granted(struct holding *holding, int64_t above);
/* The holder is about to give it up, or was told that it is lost. */
void judge_ends(struct holding *holding);
/* At a server: a release has removed the row with this token. */
void judge_removes(const char *name, int64_t token);
/* The holder is told so by a call before which this rival was told. */
void judge_released(const struct holding *holding, int64_t rival);
/* An operator begins to break this grant. */
void judge_breaks(const char *name, int64_t token);
bool judge_broke(const struct holding *holding);
/* From now on the servers may have ended any grant that was asked for before: its lease, or its row.
 * Its token and what is written under it remain as they should be. */
void judge_excuses(void);
bool judge_excused(const struct holding *holding);
/* No token of any name is below this one from now on. */
void judge_raises(int64_t token);
/* The newest token that was told, of a grant that cannot stand beside this one. */
int64_t judge_rival(const struct holding *holding);
/* At the server: a transaction that proved this grant is committed. */
void judge_commits(const struct holding *holding);
/* All that was told, as one number. */
uint64_t judge_sum(void);

/* ---- worlds.c */

enum world { ONE, KEEPERS, POOL, QUORUM, ROWS, WORLDS };
extern enum world sim_world;
/* The faults are over: each thread has one more success, and ends. */
extern bool sim_calm;
/* The URL of all servers, and how many names or rows there are. */
extern char sim_url[1000];
extern int sim_servers, sim_names;

/* A program. */
struct client {
    struct process process;
    rowlock_pool *pool;
    rowlock_keeper *keeper;
    rowlock_db *keeper_db;
    /* Its threads that have not ended. */
    int threads;
};

/* True: the environment's WITHOUT has this word, which stands between spaces. */
bool sim_without(const char *name);
/* What clients may be told without a fault of the library. */
bool is_outage(int result);
/* Else the result of this call must be fine. */
void sim_expect(const struct client *client, const rowlock_db *db, const char *call,
                const char *name, int result, bool fine);
/* The thread ends. */
void sim_ends(struct client *client);

/* ---- locking.c, rows.c: a thread of the client */

void *locking_live(void *client);
void *rows_live(void *client);
void rows_install(void);
/* All is over: ends what a walk has begun, in a fiber. Sets its bool. */
void *rows_end_walk(void *ended);
/* What the tables say then. */
void rows_judge(void);
