/* SPDX-License-Identifier: MIT
 *
 * A TCP proxy inside the test program that counts round trips, and delays, swallows or cuts what goes
 * through it. It knows no protocol: a request begins when the client speaks after the server has, or
 * speaks first, and with it a round trip.
 */
#ifndef FAULTPROXY_H
#define FAULTPROXY_H

#include <stdbool.h>

struct faultproxy;

/* Forward a port of this machine to the server in url (…@host:port/…). *through is the URL through it,
 * to be freed. NULL if the URL has no port, or a host that is neither an address nor localhost. */
struct faultproxy *faultproxy_start(const char *url, char **through);
/* Closes every connection and drops what is still delayed. */
void faultproxy_stop(struct faultproxy *proxy);

/* Round trips since the last time this was asked. */
int faultproxy_round_trips(struct faultproxy *proxy);

enum fault_kind {
    FAULT_CUT, /* both sides are closed */
    FAULT_DELAY, /* delivered later, then the connection goes on. A request is delivered even if its
                  * client has hung up meanwhile; the server is told of that afterwards */
    FAULT_BLACKHOLE /* swallowed, and all that comes later in both directions, hanging up too */
};

enum fault_side {
    ON_REQUEST, /* before the server sees it */
    ON_ANSWER /* the server has carried the request out, and the client does not hear of it */
};

struct fault {
    enum fault_kind kind;
    enum fault_side side;
    int delay_ms;
};

/* One fault at the nth request from now on, of any connection. 0: none. What was armed before and has
 * not happened yet never will; what has, goes on. */
void faultproxy_arm(struct faultproxy *proxy, int nth, struct fault fault);

/* Has it happened since it was armed? ON_ANSWER: has the server answered? */
bool faultproxy_fired(struct faultproxy *proxy);

/* Cut every connection now. */
void faultproxy_cut(struct faultproxy *proxy);

/* New connections are refused, as if there were no server. Those that stand, stay. */
void faultproxy_refuse(struct faultproxy *proxy);
void faultproxy_accept(struct faultproxy *proxy);

/* Swallow everything on every connection. New ones are accepted, and the server never sees them. */
void faultproxy_blackhole(struct faultproxy *proxy);

/* The end of all swallowing. Connections that something was lost of are cut, the others go on. */
void faultproxy_heal(struct faultproxy *proxy);

/* From now on each direction takes so much longer, as on a slow network. */
void faultproxy_slow(struct faultproxy *proxy, int each_way_us);

#endif
