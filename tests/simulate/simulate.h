/* SPDX-License-Identifier: MIT
 *
 * A simulation: many clients, their databases and the network between them, in one thread, with a
 * clock that jumps to the next event. The clients run the shipped library, and the databases the
 * shipped SQL of SQLite. All that is random comes from one seed, so a failure comes again.
 *
 *   fibers.c   what takes the place of the clock, of random numbers, of threads and of waiting
 *   network.c  what takes the place of SQLite's driver: the way to a server and back, with its faults
 *   judge.c    what must hold, and the story of the last events
 *   worlds.c   what the clients do, and what happens to them */
#ifndef SIMULATE_H
#define SIMULATE_H

#include <rowlock/rowlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECOND = 1000000, MILLISECOND = 1000 };

/* ---- fibers.c */

/* A process has a clock of its own, and threads, which are fibers. */
struct process {
    int number;
    /* Its clock is ahead by so much, and runs faster by so many millionths. */
    int64_t ahead_us;
    int64_t ppm;
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
/* What rlk_cancel_wait() wakes, for a descriptor of rlk_waiting_open(). Was it called? */
const void *sim_alarm(int wake, bool *rings);

/* ---- network.c */

/* Each is one in so many requests. 0: never. */
struct faults {
    /* It does not arrive. It arrives after the client has given up. Its answer does not. */
    int64_t lost, late, mute;
    /* It takes up to seconds. The connection is cut before it is sent. A wake-up is lost. */
    int64_t slow, cut, deaf;
};
extern struct faults faults;

enum { SERVERS_MOST = 5 };
/* Makes the files that stand for databases in this folder. Each has rowlock's tables then. */
void network_open(const char *folder, int servers);
const char *network_url(int server);
/* The server stops until then, or stands still, or loses its connections. */
void network_stop(int server, int64_t until);
void network_freeze(int server, int64_t until);
void network_cut(int server);
/* The next COMMIT on this handle's connection proves this grant. */
void network_guard(const rowlock_db *db, const char *name, int64_t token);

/* ---- judge.c */

/* A grant as its holder knows it. */
struct holding {
    struct holding *next;
    const struct process *process;
    rowlock_lock *lock;
    const char *name;
    int64_t token;
    int64_t ttl_ms;
};

/* Something happened: a line of the story. who: a process, or -1 - server. name may be NULL. */
void tell(int who, const char *what, const char *name, int64_t a, int64_t b);
/* What must not be. Prints the last events and the command that repeats them, and exits. */
void violation(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* How the command is called that makes this run again. */
extern char judge_command[200];
extern int64_t judge_grants;
/* Before and after a call that acquires. Returns what the newest token must exceed. */
int64_t judge_asks(const char *name);
void judge_granted(struct holding *holding, int64_t above);
/* The holder is about to give it up, or was told that it is lost. */
void judge_ends(struct holding *holding);
/* At the server: a transaction that proved this grant is committed. */
void judge_commits(const char *name, int64_t token);
/* All that was told, as one number. */
uint64_t judge_sum(void);

#endif
