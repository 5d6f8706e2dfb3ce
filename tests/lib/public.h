/* SPDX-License-Identifier: MIT
 *
 * What each test includes: all public headers, and those of C that many tests need. */
#pragma once

#include <rowlock/admin.h>
#include <rowlock/async.h>
#include <rowlock/once.h>
#include <rowlock/pool.h>
#include <rowlock/quorum.h>
#include <rowlock/tx.h>
#include <rowlock/walk.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* "OWNED(db) rowlock_db *one = …": closed at the end of the block, the last first. */
#define OWNED(kind) __attribute__((cleanup(owned_##kind##_ends)))
#define OWNED_ENDS(kind, type, close)                    \
    static inline void owned_##kind##_ends(type **owned) \
    {                                                    \
        close(*owned);                                   \
    }
/* The same for a struct: "CLOSED_BY(guest_close) struct guest g;". */
#define CLOSED_BY(close) __attribute__((cleanup(close)))

/* Options written in place, which live as long as the block: OPTIONS(sweep, .batch = 5). */
#define OPTIONS(kind, ...) \
    (&(const rowlock_##kind##_options){.size = sizeof(rowlock_##kind##_options), __VA_ARGS__})
