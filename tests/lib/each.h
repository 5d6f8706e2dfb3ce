/* SPDX-License-Identifier: MIT
 *
 * The main of a test that has a program for each database. The Makefile makes test_line_postgres of
 * each_line.c: the last word of the program's name is the database.
 */
#ifndef EACH_H
#define EACH_H

#include "raw.h"

/* Runs the test on the database of the program's name, at the URL of its environment variable; skips
 * it without one. Returns the status to exit with: what run returns. */
int each_main(char **argv, int (*run)(const struct raw *raw, const char *url));

#endif
