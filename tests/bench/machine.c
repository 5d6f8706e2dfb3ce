/* SPDX-License-Identifier: MIT
 *
 * What this machine gives. */
#include "bench.h"

#include <sys/resource.h>

enum { FSYNCS = 51 };

double disk_us(void)
{
    char path[500], page[4096] = {0};
    double took[FSYNCS];
    snprintf(path, sizeof path, "%s/rowlock-bench.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int file = mkstemp(path);
    if (file < 0)
        die("cannot make a file in TMPDIR");
    unlink(path);
    for (int i = 0; i < FSYNCS; i++) {
        double began = clock_s();
        if (pwrite(file, page, sizeof page, 0) < 0 || fdatasync(file) != 0)
            die("cannot write to TMPDIR");
        took[i] = clock_s() - began;
    }
    close(file);
    return median(took, FSYNCS) * 1e6;
}

void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}
