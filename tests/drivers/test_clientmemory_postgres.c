/* SPDX-License-Identifier: MIT
 *
 * Memory of libpq running out, at each place in turn: what the driver makes of it. This program's
 * malloc() and its like, which libpq gets too, fail while one of our calls goes on; sanitizers
 * have their own, so under them nothing is done. The library's own memory is in each_memory.c.
 * There is no such test for MySQL: MariaDB's client library crashes where it does not look whether
 * it got memory. */
#include "each.h"
#include "memory.h"

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

/* ---- malloc() and its like, before glibc's, which have these names too */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

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
    return fails() ? NULL : __libc_malloc(size);
}

SEEN void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

SEEN void *realloc(void *memory, size_t size)
{
    return fails() ? NULL : __libc_realloc(memory, size);
}

/* ---- the test */

static int run(const struct raw *raw, const char *url)
{
    /* The libraries for TLS and Kerberos have memory, and faults, of their own. */
    OWNED(text) char *whole = url_with(url, "sslmode=disable&gssencmode=disable");
    starve_client(raw, whole, false, 0, 13); /* there are some five hundred */
    return tap_done();
}

EACH_MAIN(run)

#endif
