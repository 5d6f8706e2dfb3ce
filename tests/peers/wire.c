/* SPDX-License-Identifier: MIT */
#include "peers.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static FILE *ask(const struct place *place, const char *request)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(place->url))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size_t length = strlen(request);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0 ||
        write(fd, request, length) != (ssize_t)length)
        die("no answer at port %s", place->url);
    FILE *answer = fdopen(fd, "r");
    if (!answer)
        die("out of memory");
    return answer;
}

static bool begins(const char *line, const char *const *keys)
{
    for (; *keys; keys++)
        if (strncmp(line, *keys, strlen(*keys)) == 0)
            return true;
    return false;
}

static int64_t last_number(char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
    const char *at = line + strlen(line);
    while (at > line && strchr("0123456789.e+", at[-1]))
        at--;
    return (int64_t)strtod(at, NULL);
}

int64_t wire_sum(const struct place *place, const struct question *question)
{
    FILE *answer = ask(place, question->request);
    char line[4096];
    int64_t sum = 0;
    while (fgets(line, sizeof line, answer))
        if (begins(line, question->keys))
            sum += last_number(line);
    fclose(answer);
    return sum;
}
