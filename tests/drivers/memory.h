/* SPDX-License-Identifier: MIT
 *
 * Memory running out, at each place in turn: the library's own, or a client library's. */
#pragma once

#include "raw.h"

/* Walks until no piece is left that could fail. Each walk is a check. */
typedef bool walk_fn(const struct raw *raw, const char *url, int nth, bool adopted);
void starve(const char *what, walk_fn *walk, const struct raw *raw, const char *url, bool adopted);

/* memory_rows.c: the same of calls about rows, as checks of its own. */
void starve_rows(const struct raw *raw, const char *url, bool adopted);

/* What can fail. */
struct faulty {
    void (*arm)(int nth); /* count from here; the nth fails, 0: none */
    void (*on)(bool on); /* counts and fails only while on; NULL: it knows our calls itself */
    int (*asked)(void); /* how often since arm() */
    bool vendors; /* the client library's, so that a connection may be lost by it */
};

/* One walk from open to close, with tables that begin with walk_. Every call succeeds, or fails
 * cleanly and succeeds when it is made again; nothing of ours is left in the tables. False, with
 * notes, if not. */
bool walk_once(const struct raw *raw, const char *url, const struct faulty *faulty, int nth,
               bool adopted);

/* Walks while a client library's memory runs out, with checks: at each of the first pieces, and then
 * at one of stride. ROWLOCK_TEST_LONG=1: at each. The library's allocator asks which one fails. */
void starve_client(const struct raw *raw, const char *url, bool adopted, int each, int stride);
bool client_memory_fails(void);
