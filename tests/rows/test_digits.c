/* SPDX-License-Identifier: MIT
 * Numbers as digits, in a program whose locale writes a comma where SQL and JSON want a point. */
#include "base/base.h"
#include "base/buffer.h"
#include "quick.h"

#include <locale.h>

/* A locale of our own making, so that it is there on every machine. */
static void speak_german(void)
{
    const char *folder = test_folder();
    const char *end = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "big" : "little";
    if (system(textf("localedef --%s-endian -f UTF-8 -i de_DE '%s/de_DE' >&2", end, folder)) != 0)
        tap_ok(false, "localedef makes a locale (Debian: locales)");
    setenv("LOCPATH", folder, 1);
    bool spoken = setlocale(LC_ALL, "de_DE") != NULL;
    const char *half = textf("%.1f", 0.5);
    tap_ok(spoken && strcmp(half, "0,5") == 0, "the program writes 0,5: %s", half);
}

static void test_reals(void)
{
    static const struct {
        double real;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {2.5, "2.5"},
                 {-1e300, "-1e+300"},
                 {1.0 / 3, "0.3333333333333333"},
                 {19.9, "19.9"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[RLK_REAL_TEXT];
        rlk_write_real(cases[i].real, text);
        tap_is_str(text, cases[i].text, "a real has a point, and no more digits than it takes");
        tap_ok(rlk_read_real(text) == cases[i].real, "%s is read as that again", text);
    }
}

static void test_whole(void)
{
    char text[RLK_INT_TEXT];
    struct rlk_buffer b = {0};
    tap_is_str(rlk_write_int(INT64_MIN, text), "-9223372036854775808", "the least integer");
    tap_is_str(rlk_write_int(INT64_MAX, text), "9223372036854775807", "the greatest");
    tap_is_str(rlk_write_int(0, text), "0", "nought");
    rlk_buffer_hex(&b, "\0\xaf", 2);
    tap_is_str(b.text, "00AF", "bytes are hexadecimal");
    rlk_buffer_clear(&b);
}

int main(void)
{
    if (confstr(_CS_GNU_LIBC_VERSION, NULL, 0)) /* musl has no such locales */
        speak_german();
    test_reals();
    test_whole();
    return tap_done();
}
