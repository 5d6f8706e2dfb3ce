/* SPDX-License-Identifier: MIT
 *
 * Which bytes are UTF-8, beside a decoder that is slow and simple; and what is left of a text that is cut.
 */
#include "fuzz.h"
#include "base/ident.h"
#include "core/driver.h"

static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    return (first & 0xE0) == 0xC0 ? 2 : (first & 0xF0) == 0xE0 ? 3 : (first & 0xF8) == 0xF0 ? 4 : 0;
}

static bool is_utf8(const unsigned char *text, size_t size)
{
    static const uint32_t least[] = {0, 1, 0x80, 0x800, 0x10000};
    for (size_t i = 0, length; i < size; i += length) {
        length = length_of(text[i]);
        if (length == 0 || i + length > size)
            return false;
        uint32_t number = length == 1 ? text[i] : text[i] & (0xFFu >> (length + 1));
        for (size_t k = 1; k < length; k++) {
            if ((text[i + k] & 0xC0) != 0x80)
                return false;
            number = number << 6 | (text[i + k] & 0x3Fu);
        }
        if (number < least[length] || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000))
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), cut[20];
    bool good = is_utf8(data, size);
    fuzz_must(rlk_is_utf8(text, size) == good);
    rlk_copy_text(cut, sizeof cut, text, size);
    fuzz_must(strlen(cut) < sizeof cut);
    fuzz_must(!good || is_utf8((const unsigned char *)cut, strlen(cut)));
    struct rlk_call call = {0};
    rlk_diag_set(&call, 1, "40001", text);
    free(text);
    return 0;
}
