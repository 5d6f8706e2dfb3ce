/* SPDX-License-Identifier: MIT
 *
 * A server, or a program in between, that offers no TLS and asks for the password in each way that
 * would give it away. A URL that asks for TLS must keep it. Needs no server but the one here,
 * which speaks just enough of the protocol. */
#include "quick.h"

#include <sys/socket.h>
#include <sys/time.h>

static const char PASSWORD[] = "top!secret";

struct fake {
    int listener;
    const char *plugin;
    unsigned char got[65536]; /* all that the client sent */
    size_t length;
    size_t last; /* where its last packet's body begins */
    bool asked_for_key;
};

static bool get_bytes(struct fake *f, int fd, size_t want)
{
    while (want > 0 && f->length + want < sizeof f->got) {
        ssize_t n = read(fd, f->got + f->length, want);
        if (n <= 0)
            return false;
        f->length += (size_t)n;
        want -= (size_t)n;
    }
    return want == 0;
}

/* The length of the packet's body, whose number goes to *number; -1: the client is gone. */
static int get_packet(struct fake *f, int fd, unsigned char *number)
{
    size_t head = f->length;
    if (!get_bytes(f, fd, 4))
        return -1;
    const unsigned char *h = f->got + head;
    size_t length = h[0] | (size_t)h[1] << 8 | (size_t)h[2] << 16;
    *number = h[3];
    f->last = f->length;
    return get_bytes(f, fd, length) ? (int)length : -1;
}

static void put_packet(int fd, unsigned char number, const void *body, size_t length)
{
    unsigned char packet[300] = {(unsigned char)length, 0, 0, number};
    memcpy(packet + 4, body, length);
    if (write(fd, packet, length + 4) < 0)
        tap_note("the client did not listen");
}

/* MariaDB 10.11, without CLIENT_SSL. */
static void greet(int fd)
{
    static const char greeting[] = "\x0a"
                                   "5.5.5-10.11.6-MariaDB\0"
                                   "\x63\0\0\0"
                                   "12345678\0"
                                   "\x0b\xa2\x2d\x02\0\x0f\0\x15"
                                   "\0\0\0\0\0\0\0\0\0\0"
                                   "123456789012\0"
                                   "mysql_native_password";
    put_packet(fd, 0, greeting, sizeof greeting);
}

static void ask_for_password(struct fake *f, int fd)
{
    char change[100] = "\xfe";
    unsigned char number = 0;
    size_t name = strlen(f->plugin) + 1;
    greet(fd);
    if (get_packet(f, fd, &number) < 0)
        return;
    memcpy(change + 1, f->plugin, name);
    memcpy(change + 1 + name, "12345678123456789012", 21);
    put_packet(fd, (unsigned char)(number + 1), change, 1 + name + 21);
    int length = get_packet(f, fd, &number);
    if (length == 32) { /* caching_sha2_password: wants the whole of it then */
        put_packet(fd, (unsigned char)(number + 1), "\x01\x04", 2);
        length = get_packet(f, fd, &number);
    }
    f->asked_for_key = length == 1 && (f->got[f->last] == 1 || f->got[f->last] == 2);
}

static int serve(void *argument)
{
    struct fake *f = argument;
    const struct timeval patience = {.tv_sec = 5};
    int fd = accept(f->listener, NULL, NULL);
    if (fd < 0)
        return 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ask_for_password(f, fd);
    close(fd);
    return 0;
}

static void keeps_password(const char *mode, const char *plugin)
{
    static struct fake f;
    int port;
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    f = (struct fake){.plugin = plugin, .listener = listen_locally(&port)};
    const char *url = textf("mysql://u:%s@127.0.0.1:%d/db?ssl_mode=%s", PASSWORD, port, mode);
    struct helper *server = helper_start(serve, &f);
    int result = rowlock_db_open(url, OPTIONS(db, .connect_timeout_ms = slow_ms(3000)), &db, &err);
    tap_ok(result < 0, "ssl_mode=%s: a server without TLS that wants %s is refused (%s: %s)", mode,
           plugin, rowlock_result_name(result), err.text);
    shutdown(f.listener, SHUT_RDWR);
    helper_join(server);
    close(f.listener);
    tap_ok(!memmem(f.got, f.length, PASSWORD, sizeof PASSWORD - 1), "it does not see the password");
    tap_ok(!f.asked_for_key, "and is not asked for a key to wrap it with");
}

int main(void)
{
    static const char *const modes[] = {"required", "verify"};
    static const char *const plugins[] = {"mysql_clear_password", "dialog", "sha256_password",
                                          "caching_sha2_password"};
    for (int m = 0; m < 2; m++)
        for (int p = 0; p < 4; p++)
            keeps_password(modes[m], plugins[p]);
    return tap_done();
}
