// A listening socket is closed while its only connection is accepted: either it is accepted and lives, or it is reset.
#include "together.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ROUNDS 10000

static int listener, client, server;
static int number;
static long wrong;

static void make_connection(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "ebb-accept-%d-%d", (int)getpid(), number++ % 1000);
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + 1 + length;
    REQUIRE((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0 && (client = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    REQUIRE(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    REQUIRE(connect(client, (struct sockaddr *)&address, size) == 0);
}

static void accept_it(void)
{
    server = accept(listener, NULL, NULL);
    if (server < 0)
        wrong += errno != EBADF;
}

static void close_it(void)
{
    close(listener);
}

static void look_at_both(void)
{
    char byte;
    if (server < 0) {
        wrong += read(client, &byte, 1) != -1 || errno != ECONNRESET;
    } else {
        wrong += recv(client, &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN;
        REQUIRE(write(server, "x", 1) == 1);
        wrong += read(client, &byte, 1) != 1;
        close(server);
        // What ends in order is not reset.
        wrong += read(client, &byte, 1) != 0;
    }
    close(client);
}

int main(void)
{
    together(ROUNDS, make_connection, accept_it, close_it, look_at_both);
    CHECK("wrong", wrong);
    return 0;
}
