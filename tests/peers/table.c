/* SPDX-License-Identifier: MIT
 *
 * The table of peers: what each promises, and how to lock with it.
 */
#include "peers.h"

/* Idle sessions of PostgreSQL tell what they did ten seconds later. */
#define STATISTICS_S 11
#define LEASE "yes"
#define NO_LEASE "no: the lock ends with its connection"
#define QUEUE "queue"
#define POLLING "none: clients poll"
#define REDIS_HOW "SET NX PX; compare and delete by a script; waiters poll at 100 ms"
#define ROWLOCK_PROMISE(durable_)                                             \
    {                                                                         \
        LEASE, "grows with each grant; guards a transaction", QUEUE, durable_ \
    }

struct peer peers[] = {
    {.id = "rowlock-postgres",
     .label = "rowlock, PostgreSQL",
     .server = "postgres",
     .settle_s = STATISTICS_S,
     .how = "a connection for each client",
     .promise = ROWLOCK_PROMISE("fsync, synchronous_commit on"),
     .locking = &rowlock_locking,
     .observe = observe_database},
    {.id = "rowlock-mysql",
     .label = "rowlock, MariaDB",
     .server = "mysql",
     .how = "a connection for each client",
     .promise = ROWLOCK_PROMISE("innodb_flush_log_at_trx_commit 1"),
     .locking = &rowlock_locking,
     .observe = observe_database},
    {.id = "rowlock-sqlite",
     .label = "rowlock, SQLite",
     .how = "a connection for each client, on one machine",
     .promise = ROWLOCK_PROMISE("WAL, synchronous full"),
     .locking = &rowlock_locking,
     .observe = observe_nothing},
    {.id = "bare-postgres",
     .label = "bare INSERT + DELETE",
     .server = "postgres",
     .settle_s = STATISTICS_S,
     .how = "prepared; no waiting, no verdict: what two commits cost",
     .promise = {"a column that is not looked at", "no", POLLING, "fsync, synchronous_commit on"},
     .locking = &bare_locking,
     .observe = observe_database},
    {.id = "advisory-postgres",
     .label = "pg_advisory_lock",
     .server = "postgres",
     .settle_s = STATISTICS_S,
     .how = "in a session's memory, prepared",
     .promise = {NO_LEASE, "no", QUEUE, "nothing"},
     .locking = &own_locking,
     .observe = observe_database},
    {.id = "getlock-mysql",
     .label = "GET_LOCK",
     .server = "mysql",
     .how = "in a session's memory, prepared",
     .promise = {NO_LEASE, "no", QUEUE, "nothing"},
     .locking = &own_locking,
     .observe = observe_database},
    {.id = "redis-none",
     .label = "Redis, no persistence",
     .server = "redis-none",
     .how = REDIS_HOW,
     .promise = {LEASE, "no", POLLING, "nothing"},
     .locking = &redis_locking,
     .observe = observe_redis},
    {.id = "redis-everysec",
     .label = "Redis, everysec",
     .server = "redis-everysec",
     .how = REDIS_HOW,
     .promise = {LEASE, "no", POLLING, "written, not flushed: a power cut takes the last second"},
     .locking = &redis_locking,
     .observe = observe_redis},
    {.id = "redis-always",
     .label = "Redis, always",
     .server = "redis-always",
     .how = REDIS_HOW,
     .promise = {LEASE, "no", POLLING, "fsync; one for all that came together"},
     .locking = &redis_locking,
     .observe = observe_redis},
    {.id = "etcd",
     .label = "etcd",
     .server = "etcd",
     .beat_s = LEASE_MS / 3000.0,
     .how = "its lock service through the HTTP gateway; one lease for each client, kept alive",
     .promise = {LEASE, "the revision of its key", QUEUE, "fsync"},
     .locking = &etcd_locking,
     .observe = observe_etcd},
    {.id = "zookeeper",
     .label = "ZooKeeper",
     .server = "zookeeper",
     .beat_s = LEASE_MS / 3000.0,
     .how = "the documented recipe: ephemeral sequential nodes; a session for each client",
     .promise = {"yes: the session's", "the zxid of its node", QUEUE, "fsync, forceSync yes"},
     .locking = &zookeeper_locking,
     .observe = observe_zookeeper},
    {.id = "memcached",
     .label = "memcached add",
     .server = "memcached",
     .how = "add with expiry; delete, which asks not whose it is; waiters poll at 100 ms",
     .promise = {"yes", "no", POLLING, "nothing"},
     .locking = &memcached_locking,
     .observe = observe_memcached},
};

const int peer_count = sizeof peers / sizeof *peers;
