// Files in messages that nobody can receive any more are closed, whoever had the last descriptors of the sockets, and however those ended.
#include "../check.h"
#include <sys/socket.h>

enum { CLOSE, EXIT, EXEC, OVERWRITE, COPY_ENDED, COPY_ENDS_LATER, WAYS };
static const char *const names[WAYS] = { "close", "exit", "exec", "dup2", "a copy ended before", "a copy ends later" };

static void send_files(int socket, const int *fds, int count)
{
    char byte = 'x';
    struct iovec vector = { &byte, 1 };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int)) };
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    REQUIRE(sendmsg(socket, &message, 0) == 1);
}

// Leaves the only descriptor of a file in a message of a socket that is in a message of the other one, and that one in one of its.
static void leave(int way, int file)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    send_files(ends[1], (int[]){ file, ends[0] }, 2);
    send_files(ends[0], &ends[1], 1);
    close(file);
    if (way == CLOSE) {
        close(ends[0]);
        close(ends[1]);
    } else if (way == EXEC) {
        execl("/proc/self/exe", "unreachable", "exec", NULL);
    } else if (way == OVERWRITE) {
        dup2(0, ends[0]);
        dup2(0, ends[1]);
    } else if (way == COPY_ENDED || way == COPY_ENDS_LATER) {
        pid_t child = check_fork();
        if (child == 0) {
            if (way == COPY_ENDS_LATER)
                check_sleep_ms(50);
            _exit(0);
        }
        if (way == COPY_ENDED)
            check_wait(child);
    }
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return 0;
    for (int way = 0; way < WAYS; way++) {
        int fds[2];
        char byte;
        REQUIRE(pipe(fds) == 0);
        pid_t child = check_fork();
        if (child == 0) {
            close(fds[0]);
            leave(way, fds[1]);
            _exit(0);
        }
        close(fds[1]);
        check_wait(child);
        if (way == COPY_ENDS_LATER)
            check_sleep_ms(200);
        // Linux looks for what is unreachable when a socket is closed, and may not have done so for the last one yet.
        REQUIRE(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
        long ended = -1;
        for (int i = 0; i < CHECK_TRIES && ended != 0; i++) {
            close(socket(AF_UNIX, SOCK_DGRAM, 0));
            ended = read(fds[0], &byte, 1);
            check_sleep_ms(i / 4);
        }
        CHECK(names[way], ended);
        close(fds[0]);
    }
    return 0;
}
