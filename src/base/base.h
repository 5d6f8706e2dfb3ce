/* SPDX-License-Identifier: MIT
 * What each file may use, also drivers: memory, the clock, the log, texts. */
#ifndef RLK_BASE_H
#define RLK_BASE_H

#include <rowlock/admin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline int64_t rlk_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t rlk_between(int64_t low, int64_t value, int64_t high)
{
    return value < low ? low : rlk_least(value, high);
}

/* Most bytes of a name, owner, host, program or note. */
#define RLK_TEXT_MAX 255

/* The library allocates here alone, so that tests can make it fail. The memory is zeroed. */
void *rlk_alloc(size_t size);
void rlk_free(void *memory);
/* A larger block that begins with the used bytes of the old one, which it frees. NULL: out of
 * memory, and the old one stays. */
void *rlk_grow(void *old, size_t used, size_t size);
char *rlk_strdup(const char *text);
struct rlk_memory {
    /* Returns zeroed memory. */
    void *(*alloc)(size_t size);
    void (*free)(void *memory);
};
extern struct rlk_memory rlk_memory;

/* The clock of all deadlines: monotonic microseconds. It runs while the machine is suspended. */
int64_t rlk_now_us(void);
/* Tests set another clock. */
extern int64_t (*rlk_clock)(void);
/* The time of day on this machine. No lease depends on it. */
int64_t rlk_wall_us(void);
/* So long from now, by CLOCK_MONOTONIC, for a wait that the system ends. */
struct timespec rlk_wait_clock(int64_t after_us);

/* Random numbers of the system, for an owner or a seed. -1: there are none. */
int rlk_random_owner(char out[RLK_TEXT_MAX + 1]);
int rlk_random_seed(uint64_t *out);

void rlk_log(rowlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Copies at most cap - 1 bytes and terminates them. It never splits a UTF-8 character. */
void rlk_copy_text(char *out, size_t cap, const char *in, size_t len);

enum { RLK_INT_TEXT = 24, RLK_REAL_TEXT = 32 };
/* Writes the digits at the end of out. Returns where they begin. */
const char *rlk_write_int(int64_t number, char out[RLK_INT_TEXT]);
/* Writes the fewest digits, from 15 on, that read back as the same number. */
void rlk_write_real(double real, char out[RLK_REAL_TEXT]);
double rlk_read_real(const char *text);

#endif
