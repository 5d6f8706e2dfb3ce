/* SPDX-License-Identifier: MIT
 *
 * The JSON forms of what the command prints. Included by the files that print some, and no others,
 * so that only these need jansson.
 */
#ifndef ROWLOCK_CLI_JSON_H
#define ROWLOCK_CLI_JSON_H

#include "snapshot.h"

#include <rowlock/admin.h>

#include <jansson.h>

/* All of these end the process when there is no memory, and never return NULL. */
json_t *json_of_grant(const rowlock_grant *grant);
json_t *json_of_waiter(const rowlock_waiter *waiter);

/* Arrays of all of them. */
json_t *json_of_grants(const struct snapshot *snapshot);
json_t *json_of_waiters(const struct snapshot *snapshot);

/* A string; what is not UTF-8 (a program's name may be anything) is escaped. */
json_t *json_of_text(const char *text);

void json_put(json_t *object, const char *key, json_t *value);
void json_put_integer(json_t *object, const char *key, int64_t value);

/* Microseconds since 1970 twice: exactly as KEY_us, and for people as KEY_at. */
void json_put_time(json_t *object, const char *key, int64_t us);

/* "ok", "lost", "timeout": a result in lower case. */
json_t *json_of_result(int result);

/* Prints value and lets go of it. compact: on one line. */
void json_print(json_t *value, int compact);

/* An array that is printed element by element, each on a line of its own and let go of. After the
 * last, or after none, json_print_end(). */
void json_print_element(json_t *value, int first);
void json_print_end(int empty);

#endif
