/* SPDX-License-Identifier: MIT
 *
 * Durations of the command line. */
#include "fuzz.h"

#include "cli/command_line.c"

/* What else command_line.c calls, and no duration needs. */
void speak(enum voice voice, const char *format, ...)
{
}

char *new_text(const char *format, ...)
{
    return NULL;
}

void *must_have(void *memory)
{
    return memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWNED(text) char *text = fuzz_text(data, size);
    int64_t ms = -1;
    if (parse_duration(text, &ms)) {
        fuzz_must(ms >= 0);
        fuzz_must(strspn(text, "0123456789.mshd") == strlen(text) &&
                  strcspn(text, "0123456789") < strlen(text));
    }
    return 0;
}
