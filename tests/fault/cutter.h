/* SPDX-License-Identifier: MIT
 *
 * A TCP proxy inside the test program that cuts a connection at a chosen request, before the server
 * has seen it or after it has answered. It knows no protocol: a request begins when the client
 * speaks after the server has, or speaks first. Counting round trips is tests/lib/proxy.h.
 */
#ifndef CUTTER_H
#define CUTTER_H

#include <stdbool.h>

enum cut {
    CUT_REQUEST, /* the server never sees it */
    CUT_ANSWER /* the server does, and answers, but nobody hears it */
};

struct cutter;

/* Forward a port of this machine to the server in url (…@host:port/…). *cuttable is the URL
 * through it, to be freed. NULL if the URL has no host and port. */
struct cutter *cutter_start(const char *url, char **cuttable);
void cutter_stop(struct cutter *cutter);

/* Cut at the nth request from now on, once. 0: never. */
void cutter_arm(struct cutter *cutter, int nth, enum cut cut);

/* Was there such a request since it was armed? */
bool cutter_fired(struct cutter *cutter);

#endif
