// What Ebb promises and Linux does not: when the last descriptor of an open file is closed, whoever is blocked on it wakes
// with EBADF at once. A second descriptor keeps it open, as on Linux.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct blocked {
    int fd;
    long result;
    int error;
    volatile int done;
};

static void pause_for_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *reader(void *argument)
{
    struct blocked *blocked = argument;
    char bytes[8];
    blocked->result = read(blocked->fd, bytes, sizeof bytes);
    blocked->error = errno;
    blocked->done = 1;
    return NULL;
}

static void report(const char *name, const struct blocked *blocked)
{
    if (!blocked->done)
        printf("%s: blocked\n", name);
    else if (blocked->result < 0)
        printf("%s: %s\n", name, blocked->error == EBADF ? "EBADF" : strerror(blocked->error));
    else
        printf("%s: %ld\n", name, blocked->result);
}

// Blocks a thread in read(fd), closes `fd`, and says what became of the thread half a second later.
static void close_under_reader(const char *name, int fd)
{
    struct blocked blocked = {.fd = fd};
    pthread_t thread;
    pthread_create(&thread, NULL, reader, &blocked);
    pause_for_ms(100);
    close(fd);
    pause_for_ms(500);
    report(name, &blocked);
}

int main(void)
{
    int fds[2], other[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    pipe(fds);
    close_under_reader("pipe", fds[0]);

    close_under_reader("eventfd", eventfd(0, 0));

    socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
    close_under_reader("socket", fds[0]);

    // The description lives on in the other descriptor: the reader goes on, and gets what is written.
    pipe(other);
    int copy = dup(other[0]);
    struct blocked blocked = {.fd = other[0]};
    pthread_t thread;
    pthread_create(&thread, NULL, reader, &blocked);
    pause_for_ms(100);
    close(other[0]);
    pause_for_ms(300);
    report("duplicated", &blocked);
    write(other[1], "abc", 3);
    pthread_join(thread, NULL);
    report("written", &blocked);
    close(copy);
    return 0;
}
