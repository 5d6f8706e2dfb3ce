/* SPDX-License-Identifier: MIT */
#include "cli/commands/manual.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* man must print the path of the page: where manuals are left out, it may be a program that only
 * says so. */
static bool has_page(const char *page)
{
    char line[96];
    snprintf(line, sizeof line, "man -w 1 %s 2>/dev/null", page);
    /* The words of the line are ours. NOLINTNEXTLINE(cert-env33-c) */
    FILE *answer = popen(line, "r");
    bool found = answer && fgetc(answer) == '/';
    if (answer)
        pclose(answer);
    return found;
}

void open_manual(const char *command)
{
    char page[48];
    snprintf(page, sizeof page, "rowlock%s%s", command ? "-" : "", command ? command : "");
    if (isatty(STDOUT_FILENO) && has_page(page))
        execlp("man", "man", "1", page, (char *)NULL);
}
