/* SPDX-License-Identifier: MIT
 * A run of the simulation: what the members did, which grants were told, and which clients were
 * killed, in order. The model must be able to do the same. It reads the file that EVENTS names. */
#include <stdio.h>
#include <stdlib.h>

enum { CLAIMS = 1, TOPS_UP_WITH, LIFTS_TO, RENEWS, REMOVES, GRANTS, KILLS };
static struct {
    int what, client, member, token;
} event[10000];
static int event_count, furthest;

static void tell_end(void)
{
    printf("stuck at event %d of %d\n", furthest + 1, event_count);
}

static void read_events(void)
{
    FILE *file = fopen(getenv("EVENTS"), "r");
    while (file && event_count < 9999 &&
           fscanf(file, "%d %d %d %d", &event[event_count].what, &event[event_count].client,
                  &event[event_count].member, &event[event_count].token) == 4)
        event_count++;
    atexit(tell_end);
}

/* token 0: any */
static int is_next(int at, int what, int client, int member, int token)
{
    furthest = at > furthest ? at : furthest;
    if (at == event_count) {
        printf("a run of the model, of %d events\n", event_count);
        fflush(stdout);
        _Exit(0);
    }
    return event[at].what == what && event[at].client == client && event[at].member == member &&
           (token == 0 || event[at].token == token);
}
