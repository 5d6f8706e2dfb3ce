/* SPDX-License-Identifier: MIT
 * What every file may use, drivers too: memory, the clock, the log, texts. */
#ifndef RLK_BASE_H
#define RLK_BASE_H

#include <rowlock/rowlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RLK_TEXT_MAX 255 /* bytes of a name, owner, host, program or note */

/* All memory of the library's own comes from here, so that tests can make it fail. Zeroed. */
void *rlk_alloc(size_t size);
void rlk_free(void *memory);
char *rlk_strdup(const char *text);
struct rlk_memory {
    void *(*alloc)(size_t size); /* zeroed */
    void (*free)(void *memory);
};
extern struct rlk_memory rlk_memory;

/* The clock of every deadline: microseconds, monotonic, goes on while the machine is suspended. */
int64_t rlk_now_us(void);
extern int64_t (*rlk_clock)(void); /* tests put another in its place */

void rlk_log(rowlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Copy at most cap - 1 bytes and terminate; never splits a UTF-8 character. len may be any. */
void rlk_copy_text(char *out, size_t cap, const char *in, size_t len);

/* Write the digits to the end of out, and return where they begin. */
enum { RLK_INT_TEXT = 24 };
const char *rlk_write_int(int64_t number, char out[RLK_INT_TEXT]);

#endif
