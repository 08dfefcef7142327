// The list of Unix sockets, read by several at once while they are connected to each other, and to themselves.
#include "../check.h"
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PAIRS 20
#define ROUNDS 200

static int is_listed(const char *name)
{
    static _Thread_local char text[1 << 16];
    int fd = open("/proc/net/unix", O_RDONLY), found = 0;
    ssize_t len;
    REQUIRE(fd >= 0);
    // A name may be cut in two by the end of a piece: the next look has other ends.
    while ((len = read(fd, text, sizeof text - 1)) > 0) {
        text[len] = 0;
        found |= strstr(text, name) != NULL;
    }
    REQUIRE(len == 0);
    close(fd);
    return found;
}

static void *look(void *name)
{
    for (int i = 0; i < ROUNDS; i++)
        is_listed(name);
    return NULL;
}

int main(void)
{
    char name[32], listed[40], byte;
    struct sockaddr_un own = { .sun_family = AF_UNIX };
    int pairs[PAIRS][2], fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    REQUIRE(fd >= 0);
    snprintf(name, sizeof name, "listed-%d", getpid());
    snprintf(listed, sizeof listed, "@%s", name);
    memcpy(own.sun_path + 1, name, strlen(name));
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
    CHECK("bind", bind(fd, (struct sockaddr *)&own, len));
    CHECK("connect-to-itself", connect(fd, (struct sockaddr *)&own, len));
    CHECK("send", send(fd, "x", 1, 0));
    CHECK_SOON("it-is-listed", is_listed(listed));
    CHECK("receive", recv(fd, &byte, 1, 0));

    for (int i = 0; i < PAIRS; i++)
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0 && write(pairs[i][i % 2], "x", 1) == 1);
    pthread_t others[3];
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&others[i], NULL, look, listed) == 0);
    look(listed);
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_join(others[i], NULL) == 0);
    close(fd);
    CHECK_SOON("no-more", !is_listed(listed));
    return 0;
}
