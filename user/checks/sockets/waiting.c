// Sockets that wait and what wakes them: connections that a full backlog holds up, readers and writers whose peer goes, signals and time-outs.
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "listener" };

static int connected(int flags)
{
    int client = socket(AF_UNIX, SOCK_STREAM | flags, 0);
    REQUIRE(client >= 0);
    if (connect(client, (struct sockaddr *)&address, sizeof address) == 0)
        return client;
    int error = errno;
    close(client);
    errno = error;
    return -1;
}

static void until_asleep(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (;;) {
        const char *text = check_read_file(path), *end = strrchr(text, ')');
        if (end && end[2] == 'S')
            return;
        check_sleep_ms(1);
    }
}

static void nothing(int signal)
{
    (void)signal;
}

static void accepting(void)
{
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), clients[3];
    REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    struct pollfd look = { listener, POLLIN | POLLOUT, 0 };
    CHECK("poll-nobody", poll(&look, 1, 0));
    clients[0] = connected(0);
    clients[1] = connected(0);
    CHECK_TRUE("backlog-and-one-more", clients[0] >= 0 && clients[1] >= 0);
    CHECK("full", connected(SOCK_NONBLOCK));
    CHECK("poll-waiting", poll(&look, 1, 0) == 1 ? look.revents : -1);
    pid_t child = check_fork();
    if (child == 0) {
        int late = connected(0);
        REQUIRE(late >= 0 && write(late, "late", 4) == 4);
        _exit(0);
    }
    until_asleep(child);
    // A connection that cannot have a descriptor is not lost.
    struct rlimit before, none;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 3;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK("no-descriptor", accept(listener, NULL, NULL));
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    int first = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    CHECK_TRUE("first", first >= 0);
    char text[16] = { 0 };
    CHECK("accepted-does-not-wait", read(first, text, sizeof text));
    int second = accept(listener, NULL, NULL), third = accept(listener, NULL, NULL);
    CHECK_TRUE("others", second >= 0 && third >= 0);
    CHECK("from-the-late-one", read(third, text, sizeof text));
    CHECK_STR("its-text", text);
    CHECK_STATUS("late-one", check_wait(child));
    CHECK("closed-by-its-end", read(third, text, sizeof text));
    close(listener);
    CHECK("connect-closed", connected(0));
}

static void ends(int type, const char *kind)
{
    int fds[2];
    char line[64], text[16];
    REQUIRE(socketpair(AF_UNIX, type, 0, fds) == 0);
    pid_t reader = check_fork();
    if (reader == 0) {
        close(fds[1]);
        _exit(read(fds[0], text, sizeof text) == 0 ? 0 : 1);
    }
    until_asleep(reader);
    close(fds[1]);
    snprintf(line, sizeof line, "%s-reader-at-end", kind);
    CHECK_STATUS(line, check_wait(reader));
    close(fds[0]);
    REQUIRE(socketpair(AF_UNIX, type, 0, fds) == 0);
    pid_t writer = check_fork();
    if (writer == 0) {
        close(fds[1]);
        signal(SIGPIPE, SIG_IGN);
        while (write(fds[0], text, sizeof text) == sizeof text)
            ;
        _exit(errno == EPIPE || errno == ECONNRESET ? 0 : 1);
    }
    until_asleep(writer);
    close(fds[1]);
    snprintf(line, sizeof line, "%s-writer-at-end", kind);
    CHECK_STATUS(line, check_wait(writer));
    close(fds[0]);
    REQUIRE(socketpair(AF_UNIX, type, 0, fds) == 0);
    reader = check_fork();
    if (reader == 0)
        _exit(read(fds[0], text, sizeof text) == 0 ? 0 : 1);
    until_asleep(reader);
    snprintf(line, sizeof line, "%s-shut-down", kind);
    CHECK(line, shutdown(fds[0], SHUT_RD));
    snprintf(line, sizeof line, "%s-reader-of-shut-down", kind);
    CHECK_STATUS(line, check_wait(reader));
    struct pollfd look = { fds[1], POLLIN | POLLOUT | POLLRDHUP, 0 };
    snprintf(line, sizeof line, "%s-poll-after-shut-down", kind);
    CHECK(line, poll(&look, 1, 0) == 1 ? look.revents : 0);
    snprintf(line, sizeof line, "%s-write-after-shut-down", kind);
    CHECK(line, send(fds[1], "x", 1, MSG_NOSIGNAL));
    close(fds[0]);
    close(fds[1]);
}

// What a peer leaves behind that is closed, before or after it has read everything; and SIGPIPE, which is for streams alone.
static void gone(int type, const char *kind)
{
    int fds[2];
    char text[4];
    check_line("%s\n", kind);
    REQUIRE(socketpair(AF_UNIX, type, 0, fds) == 0);
    close(fds[1]);
    CHECK_CHILD("signal-of-write", CHECK("write-to-closed", write(fds[0], "x", 1)));
    CHECK_CHILD("signal-of-send", CHECK("send-to-closed", send(fds[0], "x", 1, 0)));
    CHECK("without-a-signal", send(fds[0], "x", 1, MSG_NOSIGNAL));
    close(fds[0]);
    REQUIRE(socketpair(AF_UNIX, type, 0, fds) == 0 && shutdown(fds[0], SHUT_WR) == 0);
    CHECK_CHILD("signal-of-shut-down", CHECK("write-to-shut-down", write(fds[0], "x", 1)));
    close(fds[0]);
    close(fds[1]);
    for (int how = 0; how < 3; how++) {
        REQUIRE(socketpair(AF_UNIX, type, 0, fds) == 0);
        REQUIRE(write(fds[0], "x", 1) == 1 && write(fds[1], "y", 1) == 1);
        close(fds[1]);
        struct pollfd look = { fds[0], POLLIN | POLLOUT, 0 };
        CHECK("poll-unread", poll(&look, 1, 0) == 1 ? look.revents : 0);
        int error = -1;
        socklen_t length = sizeof error;
        if (how == 1)
            CHECK("error-option", getsockopt(fds[0], SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : -1);
        if (how == 2)
            CHECK("send-unread", send(fds[0], "x", 1, MSG_NOSIGNAL));
        for (int i = 0; i < 3; i++)
            CHECK("read-unread", recv(fds[0], text, 1, MSG_DONTWAIT));
        close(fds[0]);
    }
}

static void interrupted(void)
{
    int fds[2];
    char text[4];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    struct sigaction action = { .sa_handler = nothing };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        CHECK("signal", recv(fds[0], text, sizeof text, 0));
        action.sa_flags = SA_RESTART;
        REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
        CHECK("restarted", recv(fds[0], text, sizeof text, 0));
        _exit(0);
    }
    until_asleep(child);
    kill(child, SIGUSR1);
    check_sleep_ms(5);
    until_asleep(child);
    kill(child, SIGUSR1);
    check_sleep_ms(5);
    REQUIRE(write(fds[1], "ab", 2) == 2);
    CHECK_STATUS("interrupted", check_wait(child));
}

int main(void)
{
    accepting();
    ends(SOCK_STREAM, "stream");
    ends(SOCK_SEQPACKET, "packets");
    gone(SOCK_STREAM, "stream");
    gone(SOCK_SEQPACKET, "packets");
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0 && shutdown(fds[0], SHUT_WR) == 0);
    CHECK_CHILD("signal-of-datagram", CHECK("datagram-to-shut-down", write(fds[0], "x", 1)));
    interrupted();
    return 0;
}
