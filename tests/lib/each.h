/* SPDX-License-Identifier: MIT
 *
 * The main function of a test that has a program for each database. The Makefile makes
 * test_line_postgres of each_line.c. The last word of a program's name is its database. */
#pragma once

#include "quick.h"
#include "raw.h"

/* Runs the test on the database in the program's name. Its URL is in the environment. Skips the
 * test without one. Returns the exit status: what run returns. */
int each_main(char **argv, int (*run)(const struct raw *raw, const char *url));
#define EACH_MAIN(run)               \
    int main(int argc, char **argv)  \
    {                                \
        return each_main(argv, run); \
    }
