/* SPDX-License-Identifier: MIT
 * What all drivers need: setting an error, trying the servers of a URL, the places of prepared
 * statements, and memory. */
#include "core/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Control characters become blanks. Several blanks become one. */
static void one_line(char *text)
{
    char *out = text;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool blank = *c <= ' ' || *c == 0x7F;
        if (!blank)
            *out++ = (char)*c;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    }
    while (out > text && out[-1] == ' ')
        out--;
    *out = '\0';
}

void rlk_diag_set(struct rlk_call *call, int native, const char *sqlstate, const char *text)
{
    call->native = native;
    rlk_copy_text(call->sqlstate, sizeof call->sqlstate, sqlstate ? sqlstate : "",
                  sqlstate ? strlen(sqlstate) : 0);
    rlk_copy_text(call->text, sizeof call->text, text ? text : "", text ? strlen(text) : 0);
    one_line(call->text);
}

enum rlk_class rlk_refuse(struct rlk_call *call, enum rlk_class class, const char *format, ...)
{
    char text[2 * sizeof call->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rlk_diag_set(call, 0, NULL, text);
    return class;
}

enum rlk_class rlk_name_server(struct rlk_call *call, enum rlk_class class, const char *host,
                               unsigned port)
{
    char text[2 * sizeof call->text], state[sizeof call->sqlstate], at[20] = "";
    bool lost = class == RLK_UNSENT || class == RLK_UNCERTAIN;
    if (!lost || !host || strstr(call->text, host))
        return class;
    memcpy(state, call->sqlstate, sizeof state);
    if (port)
        snprintf(at, sizeof at, ", port %u", port);
    snprintf(text, sizeof text, "connection to server at \"%.255s\"%s failed: %s", host, at,
             call->text);
    rlk_diag_set(call, call->native, state, text);
    return class;
}

enum rlk_class rlk_try_servers(struct rlk_call *call, size_t count,
                               enum rlk_class (*try)(void *context, size_t number), void *context)
{
    int64_t deadline_us = call->deadline_us;
    bool read_only = false;
    if (count == 1)
        return try(context, 0);
    for (size_t i = 0; i < count; i++) {
        int64_t now_us = rlk_now_us();
        call->deadline_us = now_us + (deadline_us - now_us) / (int64_t)(count - i);
        enum rlk_class class = try(context, i);
        if (class != RLK_UNSENT && class != RLK_UNCERTAIN && class != RLK_STANDBY)
            return class;
        read_only = read_only || class == RLK_STANDBY;
    }
    char text[sizeof call->text + 80];
    char state[sizeof call->sqlstate];
    memcpy(state, call->sqlstate, sizeof state);
    snprintf(text, sizeof text, "none of the URL's %zu servers %s; the last one: %s", count,
             read_only ? "takes writes" : "can be reached", call->text);
    rlk_diag_set(call, call->native, state, text);
    return read_only ? RLK_STANDBY : RLK_UNSENT;
}

unsigned rlk_find_place(struct rlk_places *places, const struct rlk_query *query, bool *same)
{
    unsigned i = 0;
    *same = true;
    if (query->step != RLK_STEP_NONE || query->id == 0)
        return query->step;
    while (i < RLK_PREPARED_MAX && places->id[i] && places->id[i] != query->id)
        i++;
    if (i == RLK_PREPARED_MAX)
        i = places->next++ % RLK_PREPARED_MAX;
    *same = places->id[i] == query->id;
    places->id[i] = query->id;
    return RLK_STEP_COUNT + i;
}

void *rlk_room_for(struct rlk_room *room, size_t size)
{
    if (size > room->size || !room->memory) {
        rlk_free(room->memory);
        room->memory = rlk_alloc(size + size / 8 + 1);
        room->size = room->memory ? size + size / 8 : 0;
    }
    return room->memory;
}

void rlk_room_free(struct rlk_room *room)
{
    rlk_free(room->memory);
    *room = (struct rlk_room){0};
}
