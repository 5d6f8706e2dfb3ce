/* SPDX-License-Identifier: MIT
 *
 * A TCP proxy inside the test program that counts round trips and loses answers. It knows no protocol:
 * a round trip begins when the client speaks after the server has, or speaks first.
 */
#ifndef PROXY_H
#define PROXY_H

#include <stdbool.h>

struct proxy;

/* Forward a port of this machine to the server in url (…@host:port/…). *proxied is the URL through it,
 * to be freed. NULL if the URL has no host and port. */
struct proxy *proxy_start(const char *url, char **proxied);
void proxy_stop(struct proxy *proxy);

/* Round trips since the last time this was asked. */
int proxy_round_trips(struct proxy *proxy);

/* Let the next request through to the server, then wait a moment, drop its answer and cut the
 * connection. Later connections work again. */
void proxy_lose_next_answer(struct proxy *proxy);

/* Cut every connection now. */
void proxy_cut(struct proxy *proxy);

#endif
