// Listening sockets that are shut down.
#include "../check.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s"};

static int try_connect(void)
{
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(client, (struct sockaddr *)&address, sizeof address) ? errno : 0;
}

static int try_accept(int listener)
{
    return accept(listener, NULL, NULL) < 0 ? errno : 0;
}

static int events_of(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    poll(&one, 1, 0);
    return one.revents;
}

static void *accept_two(void *listener)
{
    printf("accepting the one that waits: %d\n", try_accept(*(int *)listener));
    printf("waiting for another: %d\n", try_accept(*(int *)listener));
    return NULL;
}

int main(void)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 5);
    printf("connecting before: %d\n", try_connect());
    printf("events before: %x\n", events_of(listener));
    printf("shutting down: %d\n", shutdown(listener, SHUT_RD));
    printf("events: %x\n", events_of(listener));
    printf("connecting after: %d\n", try_connect());
    printf("accepting: %d\n", try_accept(listener));
    printf("accepting again: %d\n", try_accept(listener));
    printf("events when empty: %x\n", events_of(listener));
    printf("shutting down the rest: %d\n", shutdown(listener, SHUT_WR));
    printf("events: %x\n", events_of(listener));

    // One that waits learns of it.
    unlink("s");
    int other = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(other, (struct sockaddr *)&address, sizeof address);
    listen(other, 5);
    printf("connecting: %d\n", try_connect());
    pthread_t thread;
    pthread_create(&thread, NULL, accept_two, &other);
    usleep(20000);
    shutdown(other, SHUT_RD);
    pthread_join(thread, NULL);
    return 0;
}
