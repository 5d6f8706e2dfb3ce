/* SPDX-License-Identifier: MIT
 *
 * A TCP proxy inside the test program. It counts round trips, and delays, swallows or cuts what
 * goes through it. It knows no protocol. A request, and with it a round trip, begins when the
 * client sends after the server has, or sends first. */
#pragma once

#include "public.h"

struct faultproxy;

/* Forwards a port of this machine to the server in url (…@host:port/…). *through is the URL of the
 * proxy; free it. NULL: the URL has no port, or its host is neither an address nor localhost. */
struct faultproxy *faultproxy_start(const char *url, char **through);
/* Closes every connection. Drops what is delayed. NULL is skipped. */
void faultproxy_stop(struct faultproxy *proxy);
OWNED_ENDS(proxy, struct faultproxy, faultproxy_stop)

/* Round trips since the last call. */
int faultproxy_round_trips(struct faultproxy *proxy);

enum fault_kind {
    /* both sides are closed */
    FAULT_CUT,
    /* the bytes are delivered later, and the connection goes on. A request is delivered even if its
     * client has closed meanwhile. The server learns of that afterwards. */
    FAULT_DELAY,
    /* the bytes are swallowed, and all later bytes in both directions, and the end of the
     * connection */
    FAULT_BLACKHOLE
};

enum fault_side {
    /* before the server gets it */
    ON_REQUEST,
    /* the server has carried the request out, and the client gets no answer */
    ON_ANSWER
};

struct fault {
    enum fault_kind kind;
    enum fault_side side;
    int delay_ms;
};

/* Arms one fault for the nth request from now on, of any connection. 0: none. This disarms an
 * earlier fault that has not happened. One that has happened goes on. */
void faultproxy_arm(struct faultproxy *proxy, int nth, struct fault fault);

/* Has the armed fault happened? ON_ANSWER: has the server answered? */
bool faultproxy_fired(struct faultproxy *proxy);

/* How long the server took at most to answer since the last call, in microseconds. Connections with
 * a fault do not count. */
int64_t faultproxy_slowest_us(struct faultproxy *proxy);

/* Cuts every connection now. */
void faultproxy_cut(struct faultproxy *proxy);

/* Refuses new connections, as if there were no server. Open ones stay. */
void faultproxy_refuse(struct faultproxy *proxy);
void faultproxy_accept(struct faultproxy *proxy);

/* Swallows everything on every connection. New ones are accepted, and the server never sees
 * them. */
void faultproxy_blackhole(struct faultproxy *proxy);

/* Stops swallowing. Cuts connections that have lost bytes. The others go on. */
void faultproxy_heal(struct faultproxy *proxy);

/* From now on each direction takes this much longer, as on a slow network. */
void faultproxy_slow(struct faultproxy *proxy, int each_way_us);
