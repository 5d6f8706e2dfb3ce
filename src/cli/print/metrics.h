/* SPDX-License-Identifier: MIT
 *
 * Texts in Prometheus's format 0.0.4, and the files that node exporter's textfile collector reads.
 */
#ifndef ROWLOCK_CLI_METRICS_H
#define ROWLOCK_CLI_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the library gives a number. Metrics have seconds. */
enum unit { COUNT, MILLISECONDS, MICROSECONDS };

/* The lines before the samples of a metric. type: "gauge" or "counter" */
void metrics_begin(FILE *out, const char *metric, const char *type, const char *help);

/* One sample. member 0, name NULL and labels "": without these labels. labels are in their final
 * form; name is escaped. */
void metrics_sample(FILE *out, const char *metric, int member, const char *name, const char *labels,
                    int64_t value, enum unit unit);

/* Puts the text in the place of the file, as a whole: a reader sees the old file or the new one.
 * Returns EXIT_FINE, or EXIT_OUTPUT after a message. The file is as it was then. */
int metrics_write(const char *path, const char *text, size_t length);

#endif
