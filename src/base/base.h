/* SPDX-License-Identifier: MIT
 * What every file may use, drivers too: memory, the clock, the log, texts. */
#ifndef RLK_BASE_H
#define RLK_BASE_H

#include <rowlock/admin.h>
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

/* An integer stands at the end of out; where it begins is returned. A real has no more digits than
 * it takes to be the same number again. Of bytes the end is returned, without a zero byte. */
enum { RLK_INT_TEXT = 24, RLK_REAL_TEXT = 32 };
const char *rlk_write_int(int64_t number, char out[RLK_INT_TEXT]);
void rlk_write_real(double real, char out[RLK_REAL_TEXT]);
char *rlk_write_hex(const char *bytes, size_t length, char *out);
double rlk_read_real(const char *text);

#endif
