/* SPDX-License-Identifier: MIT
 *
 * One walk through the library on a real database, from open to close, while something fails at
 * the nth time it is asked for. What fails, and how, is its caller's business. */
#ifndef WALK_H
#define WALK_H

#include "raw.h"

/* What can fail. */
struct faulty {
    void (*arm)(int nth); /* count from here; the nth fails, 0: none */
    void (*on)(
        bool on); /* counts and fails only while on; may be NULL: it knows our calls itself */
    int (*asked)(void); /* how often since arm() */
    bool vendors; /* the client library's, so that a connection may be lost by it */
};

/* Walk on url, with tables that begin with walk_. Every call succeeds, or fails cleanly and
 * succeeds when it is made again; nothing of ours is left in the tables. False, with notes, if
 * not. */
bool walk_once(const struct raw *raw, const char *url, const struct faulty *faulty, int nth,
               bool adopted);

/* Walks while a client library's memory runs out, with checks: at each of the first pieces, and then
 * at one of stride. ROWLOCK_TEST_LONG=1: at each. The library's allocator asks which one fails. */
void starve_client(const struct raw *raw, const char *url, bool adopted, int each, int stride);
bool client_memory_fails(void);

#endif
