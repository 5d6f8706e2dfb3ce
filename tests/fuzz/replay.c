/* SPDX-License-Identifier: MIT
 *
 * Runs a target without libFuzzer: each file of its corpus, and changed copies of it that a seed decides.
 *
 * usage: test_NAME [FILE]...
 *   FILE...             in the place of all in tests/fuzz/corpus/NAME
 *   ROWLOCK_TEST_SEED   another seed
 */
#include "fuzz.h"

#include <dirent.h>

enum { COPIES = 300, INPUT_MAX = 4096 };

struct input {
    uint8_t bytes[INPUT_MAX];
    size_t size;
};

static uint64_t seed = 1;

static size_t draw(uint64_t *state, size_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % below;
}

static void run(const struct input *in)
{
    uint8_t *exact = malloc(in->size ? in->size : 1);
    fuzz_must(exact);
    memcpy(exact, in->bytes, in->size);
    LLVMFuzzerTestOneInput(exact, in->size);
    free(exact);
}

static void insert_byte(struct input *in, size_t at, uint8_t byte)
{
    if (in->size == INPUT_MAX)
        return;
    memmove(in->bytes + at + 1, in->bytes + at, in->size - at);
    in->bytes[at] = byte;
    in->size++;
}

static void change(struct input *in, uint64_t *state)
{
    static const uint8_t odd[] = {0, 1, 0x7F, 0x80, 0xC0, 0xED, 0xF4, 0xFF, '%', '\'', '"', '\\'};
    size_t at = draw(state, in->size + 1);
    uint8_t byte = draw(state, 2) ? odd[draw(state, sizeof odd)] : (uint8_t)draw(state, 256);
    size_t how = draw(state, 4);
    if (how == 0 || at == in->size) {
        insert_byte(in, at, byte);
    } else if (how == 1) {
        memmove(in->bytes + at, in->bytes + at + 1, in->size - at - 1);
        in->size--;
    } else if (how == 2) {
        in->size = draw(state, 8) ? in->size : at;
    } else {
        in->bytes[at] = byte;
    }
}

static bool load(const char *path, struct input *in)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    in->size = fread(in->bytes, 1, sizeof in->bytes, file);
    return fclose(file) == 0;
}

static void run_all(const struct input *in)
{
    uint64_t state = seed;
    run(in);
    for (int i = 0; i < COPIES; i++) {
        struct input copy = *in;
        for (uint64_t changes = 1 + draw(&state, 4); changes > 0; changes--)
            change(&copy, &state);
        run(&copy);
    }
}

/* In a process of its own, which may crash. */
static void replay(const char *path)
{
    struct input in;
    int status = -1;
    if (!load(path, &in)) {
        tap_ok(false, "%s can be read", path);
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run_all(&in);
        _exit(0);
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child;
    tap_ok(ended && status == 0, "%s, and %d changed copies of it, with seed %llu", path, COPIES,
           (unsigned long long)seed);
}

int main(int argc, char **argv)
{
    const char *text = getenv("ROWLOCK_TEST_SEED");
    if (text)
        seed = strtoull(text, NULL, 10);
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    if (argc > 1)
        return tap_done();
    const char *name = strrchr(argv[0], '/');
    char folder[200], path[600];
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s",
             (name ? name + 1 : argv[0]) + strlen("test_"));
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            replay(path);
    }
    if (dir)
        closedir(dir);
    return tap_done();
}
