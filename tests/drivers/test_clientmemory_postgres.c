/* SPDX-License-Identifier: MIT
 *
 * Memory of libpq running out, at each place in turn: what the driver makes of it. This program's
 * malloc() and its like, which libpq gets too, fail while one of our calls goes on; sanitizers
 * have their own, so under them nothing is done. The library's own memory is in each_memory.c.
 * There is no such test for MySQL: MariaDB's client library crashes where it does not look whether
 * it got memory. */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

int main(void)
{
    tap_skip(1, "the sanitizer has a malloc() of its own");
    return tap_done();
}

#else

#include <dlfcn.h>

#include "quick.h"
#include "memory.h"

/* ---- malloc() and its like, before the C library's */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
} real;

/* dlsym() itself may want memory, which is then taken from here and never given back. */
static _Alignas(16) char early[65536];
static size_t early_used;

static void *early_alloc(size_t size)
{
    size_t begin = (early_used + 15) & ~(size_t)15;
    if (size > sizeof early - begin)
        abort();
    early_used = begin + size;
    return early + begin;
}

static bool is_early(const void *memory)
{
    return (uintptr_t)memory >= (uintptr_t)early &&
           (uintptr_t)memory < (uintptr_t)early + sizeof early;
}

/* A function's address goes through memory, since C has no cast for it. */
static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    memcpy(function, &found, sizeof found);
}

static bool find_real(void)
{
    static bool finding;
    if (real.free)
        return true;
    if (finding)
        return false;
    finding = true;
    find("malloc", &real.malloc);
    find("calloc", &real.calloc);
    find("realloc", &real.realloc);
    find("free", &real.free);
    return true;
}

static bool fails(void)
{
    bool so = client_memory_fails();
    if (so)
        errno = ENOMEM;
    return so;
}

#define SEEN __attribute__((visibility("default")))

SEEN void *malloc(size_t size)
{
    if (fails())
        return NULL;
    return find_real() ? real.malloc(size) : early_alloc(size);
}

SEEN void *calloc(size_t count, size_t size)
{
    if (fails())
        return NULL;
    return find_real() ? real.calloc(count, size) : early_alloc(count * size);
}

SEEN void *realloc(void *memory, size_t size)
{
    if (fails())
        return NULL;
    if (is_early(memory) || !find_real())
        abort();
    return real.realloc(memory, size);
}

SEEN void free(void *memory)
{
    if (memory && !is_early(memory) && find_real())
        real.free(memory);
}

/* ---- the test */

/* The libraries for TLS and Kerberos have memory, and faults, of their own. */
static char *without_tls(const char *url)
{
    char *plain = url_with(url, "sslmode=disable"), *whole = url_with(plain, "gssencmode=disable");
    free(plain);
    return whole;
}

int main(void)
{
    const char *url = getenv(raw_postgres.url_env);
    if (!url || !*url)
        return tap_skip_all("no database to test on");
    OWNED(text) char *whole = without_tls(url);
    starve_client(&raw_postgres, whole, false, 0, 13); /* there are some five hundred */
    return tap_done();
}

#endif
