/* SPDX-License-Identifier: MIT
 *
 * The table of peers: what each promises, and how to lock with it. */
#include "peers.h"

/* Idle sessions of PostgreSQL tell what they did ten seconds later. */
#define STATISTICS_S 11
#define LEASE "yes"
#define NO_LEASE "no: the lock ends with its connection"
#define QUEUE "queue"
#define POLLING "none: clients poll"
#define REDIS_HOW "SET NX PX; compare and delete by a script; waiters poll at 100 ms"
#define ROWLOCK_TOKEN "grows with each grant; guards a transaction"
#define PG_DISK "fsync, synchronous_commit on"
#define MY_DISK "innodb_flush_log_at_trx_commit 1"
#define EACH "a connection for each client"
#define ONE_POOL "one pool with two connections for all clients"
#define BARE "prepared; no waiting, no verdict: what two commits cost"
#define OWN "in a session's memory, prepared"
#define LEASE_S (LEASE_MS / 1000.0)

/* id, label, server, how | lease, token, order, on the disk | locking, settle_s, beat_s */
/* clang-format off */
#define PEER(id, label, server, how, lease, token, order, disk, locking, settle, beat) \
    {id, label, server, how, {lease, token, order, disk}, &locking, settle, beat, {"", NULL, NULL}, ""}

struct peer peers[] = {
    PEER("rowlock-postgres", "rowlock, PostgreSQL", "postgres", EACH,
         LEASE, ROWLOCK_TOKEN, QUEUE, PG_DISK, rowlock_locking, STATISTICS_S, 0),
    PEER("rowlock-mysql", "rowlock, MariaDB", "mysql", EACH,
         LEASE, ROWLOCK_TOKEN, QUEUE, MY_DISK, rowlock_locking, 0, 0),
    PEER("pool-postgres", "rowlock's pool, PostgreSQL", "postgres", ONE_POOL,
         LEASE, ROWLOCK_TOKEN, QUEUE, PG_DISK, pool_locking, STATISTICS_S, 0),
    PEER("pool-mysql", "rowlock's pool, MariaDB", "mysql", ONE_POOL,
         LEASE, ROWLOCK_TOKEN, QUEUE, MY_DISK, pool_locking, 0, 0),
    PEER("rowlock-sqlite", "rowlock, SQLite", NULL, EACH ", on one machine",
         LEASE, ROWLOCK_TOKEN, QUEUE, "WAL, synchronous full", rowlock_locking, 0, 0),
    PEER("bare-postgres", "bare INSERT + DELETE", "postgres", BARE,
         "a column that is not looked at", "no", POLLING, PG_DISK, bare_locking, STATISTICS_S, 0),
    PEER("advisory-postgres", "pg_advisory_lock", "postgres", OWN,
         NO_LEASE, "no", QUEUE, "nothing", own_locking, STATISTICS_S, 0),
    PEER("getlock-mysql", "GET_LOCK", "mysql", OWN,
         NO_LEASE, "no", QUEUE, "nothing", own_locking, 0, 0),
    PEER("redis-none", "Redis, no persistence", "redis-none", REDIS_HOW,
         LEASE, "no", POLLING, "nothing", redis_locking, 0, 0),
    PEER("redis-everysec", "Redis, everysec", "redis-everysec", REDIS_HOW,
         LEASE, "no", POLLING, "written, not flushed: a power cut takes the last second", redis_locking, 0, 0),
    PEER("redis-always", "Redis, always", "redis-always", REDIS_HOW,
         LEASE, "no", POLLING, "fsync; one for all that came together", redis_locking, 0, 0),
    PEER("etcd", "etcd", "etcd", "its lock service through the HTTP gateway; one lease for each client, kept alive",
         LEASE, "the revision of its key", QUEUE, "fsync", etcd_locking, 0, LEASE_S / 3),
    PEER("zookeeper", "ZooKeeper", "zookeeper", "the documented recipe: ephemeral sequential nodes; a session for each client",
         "yes: the session's", "the zxid of its node", QUEUE, "fsync, forceSync yes", zookeeper_locking, 0, LEASE_S / 3),
    PEER("memcached", "memcached add", "memcached", "add with expiry; delete, which asks not whose it is; waiters poll at 100 ms",
         "yes", "no", POLLING, "nothing", memcached_locking, 0, 0),
};
/* clang-format on */

const int peer_count = sizeof peers / sizeof *peers;
