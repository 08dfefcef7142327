// A writer that waits when its reader goes, or reads no more: the error, its signal, and what is left to be told.
#include "../check.h"
#include <sys/sendfile.h>
#include <sys/socket.h>

static char bytes[1 << 20];
static volatile sig_atomic_t broken;

static void note(int number)
{
    broken += number == SIGPIPE;
}

// Waits until a process waits for something.
static void wait_until_asleep(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (;;) {
        int fd = open(path, O_RDONLY);
        REQUIRE(fd >= 0);
        ssize_t length = read(fd, text, sizeof text - 1);
        REQUIRE(length > 0);
        close(fd);
        text[length] = 0;
        char *state = strrchr(text, ')');
        if (state != NULL && state[2] == 'S')
            return;
        check_sleep_ms(1);
    }
}

static long write_some(int fd) { return write(fd, bytes, 10); }
static long send_some(int fd) { return send(fd, bytes, 10, 0); }
static long write_much(int fd) { return write(fd, bytes, sizeof bytes) > 0; }
static long send_much(int fd) { return send(fd, bytes, sizeof bytes, 0) > 0; }

static long send_file(int fd)
{
    int file = open("file", O_RDONLY);
    long sent = sendfile(fd, file, NULL, 10);
    int error = errno;
    close(file);
    errno = error;
    return sent;
}

static void lose(const char *name, int type, long (*writes)(int), int shuts_down)
{
    int pair[2];
    check_line("%s\n", name);
    REQUIRE(socketpair(AF_UNIX, type, 0, pair) == 0);
    if (writes != write_much && writes != send_much)
        for (int size = 1000; size > 0; size /= 1000)
            while (send(pair[0], bytes, size, MSG_DONTWAIT) > 0)
                ;
    pid_t parent = getpid(), pid = check_fork();
    if (pid == 0) {
        close(pair[0]);
        wait_until_asleep(parent);
        if (shuts_down) {
            REQUIRE(shutdown(pair[1], SHUT_RD) == 0);
            // It is closed when the parent has seen the rest.
            wait_until_asleep(parent);
        }
        _exit(0);
    }
    if (!shuts_down)
        close(pair[1]);
    broken = 0;
    CHECK("waiting", writes(pair[0]));
    CHECK("signals", broken);
    int error = -1;
    socklen_t length = sizeof error;
    REQUIRE(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    CHECK("error-left", error);
    broken = 0;
    CHECK("again", write(pair[0], bytes, 1));
    CHECK("again-signals", broken);
    if (!shuts_down)
        CHECK("read", read(pair[0], bytes, 1));
    CHECK_STATUS("reader", check_wait(pid));
    close(pair[0]);
    if (shuts_down)
        close(pair[1]);
}

int main(void)
{
    struct sigaction action = { .sa_handler = note };
    REQUIRE(sigaction(SIGPIPE, &action, NULL) == 0);
    check_write_file("file", "0123456789");
    lose("write", SOCK_STREAM, write_some, 0);
    lose("send", SOCK_STREAM, send_some, 0);
    lose("sendfile", SOCK_STREAM, send_file, 0);
    lose("write-much", SOCK_STREAM, write_much, 0);
    lose("send-much", SOCK_STREAM, send_much, 0);
    lose("packet", SOCK_SEQPACKET, write_some, 0);
    lose("write-shut-down", SOCK_STREAM, write_some, 1);
    lose("send-shut-down", SOCK_STREAM, send_some, 1);
    lose("packet-shut-down", SOCK_SEQPACKET, write_some, 1);

    // Who did not wait learns of it by SO_ERROR.
    int pair[2], error = -1;
    socklen_t length = sizeof error;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], bytes, 1) == 1);
    close(pair[1]);
    broken = 0;
    CHECK("not-waiting", write(pair[0], bytes, 10));
    CHECK("not-waiting-signals", broken);
    REQUIRE(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    CHECK_STR("not-waiting-error", check_errno_name(error));

    // A pipe's writer gets its signal.
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t parent = getpid(), pid = check_fork();
    if (pid == 0) {
        close(ends[1]);
        wait_until_asleep(parent);
        _exit(0);
    }
    close(ends[0]);
    broken = 0;
    CHECK("pipe", write(ends[1], bytes, sizeof bytes) > 0);
    CHECK("pipe-signals", broken);
    CHECK_STATUS("pipe-reader", check_wait(pid));
    return 0;
}
