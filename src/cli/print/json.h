/* SPDX-License-Identifier: MIT
 *
 * The JSON forms of what the command prints. Only the files that print JSON include it, so only
 * these need jansson.
 */
#ifndef ROWLOCK_CLI_JSON_H
#define ROWLOCK_CLI_JSON_H

#include "cli/commands/snapshot.h"

#include <rowlock/admin.h>

#include <jansson.h>

/* All of these end the process if there is no memory. They never return NULL. */
json_t *json_of_grant(const rowlock_grant *grant);
json_t *json_of_waiter(const rowlock_waiter *waiter);

/* Arrays of all grants, or of all waiters. */
json_t *json_of_grants(const struct snapshot *snapshot);
json_t *json_of_waiters(const struct snapshot *snapshot);

/* A string. Bytes that are not UTF-8 are escaped: a program's name may have any. */
json_t *json_of_text(const char *text);

void json_put(json_t *object, const char *key, json_t *value);
void json_put_integer(json_t *object, const char *key, int64_t value);

/* A time in microseconds since 1970: as a number in KEY_us, and for people in KEY_at. */
void json_put_time(json_t *object, const char *key, int64_t us);

/* "ok", "lost", "timeout": a result in lower case. */
json_t *json_of_result(int result);

struct cli;
/* An object for an answer. It has the member's number if the command goes from member to member. */
json_t *json_answer(const struct cli *cli);

/* Prints value and frees it. compact: on one line. */
void json_print(json_t *value, int compact);

/* Prints and frees one element of an array, on one line. After the last, or after none, call
 * json_print_end(). */
void json_print_element(json_t *value, int first);
void json_print_end(int empty);

#endif
