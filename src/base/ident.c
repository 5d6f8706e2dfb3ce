/* SPDX-License-Identifier: MIT
 * Which texts may be names, and who this client is: host, program. */
#include "base/ident.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Length of the UTF-8 character at c. Returns 0 for an overlong form, a surrogate, and what is
 * above U+10FFFF (RFC 3629). */
static size_t utf8_length(const unsigned char *c, size_t left)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high, length;
    } forms[] = {
        {0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (c[0] < forms[i].first_low || c[0] > forms[i].first_high)
            continue;
        if (forms[i].length > left)
            return 0;
        if (forms[i].length > 1 && (c[1] < forms[i].second_low || c[1] > forms[i].second_high))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((c[k] & 0xC0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* Counts the leading bytes from 0x01 to 0x7F, eight at a time. Most texts are ASCII alone. */
static size_t count_ascii(const unsigned char *c, size_t length)
{
    size_t n = 0;
    for (uint64_t eight = 0; n + sizeof eight <= length; n += sizeof eight) {
        memcpy(&eight, c + n, sizeof eight);
        if ((eight | (eight - 0x0101010101010101u)) & 0x8080808080808080u)
            break;
    }
    return n;
}

bool rlk_is_utf8(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t plain = count_ascii(c, length);
    c += plain;
    length -= plain;
    while (length > 0) {
        size_t n = utf8_length(c, length);
        if (n == 0)
            return false;
        c += n;
        length -= n;
    }
    return true;
}

int rlk_check_text(rowlock_error *error, const char *what, const char *text, bool may_be_empty)
{
    if (!text)
        return rlk_error_set(error, ROWLOCK_EINVAL, "the %s is NULL", what);
    size_t length = strnlen(text, RLK_TEXT_MAX + 1);
    if (length == 0 && !may_be_empty)
        return rlk_error_set(error, ROWLOCK_EINVAL,
                             "the %s is empty; it takes 1 to %d bytes of UTF-8", what,
                             RLK_TEXT_MAX);
    if (length > RLK_TEXT_MAX)
        return rlk_error_set(error, ROWLOCK_EINVAL, "the %s is longer than %d bytes", what,
                             RLK_TEXT_MAX);
    if (!rlk_is_utf8(text, length))
        return rlk_error_set(error, ROWLOCK_EINVAL, "the %s is not valid UTF-8", what);
    return ROWLOCK_OK;
}

/* Descriptions are for people. A host name that is not UTF-8 must not prevent a grant. */
static void describe(char *out, size_t cap, const char *text)
{
    rlk_copy_text(out, cap, text, strlen(text));
    for (char *c = out; *c; c++)
        if ((unsigned char)*c >= 0x80 && !rlk_is_utf8(out, strlen(out)))
            *c = '?';
}

void rlk_describe_host(char out[RLK_TEXT_MAX + 1])
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    describe(out, RLK_TEXT_MAX + 1, host);
}

void rlk_describe_program(char out[RLK_TEXT_MAX + 1], const char *program)
{
    describe(out, RLK_TEXT_MAX + 1, program ? program : program_invocation_short_name);
}
