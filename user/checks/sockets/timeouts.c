// SO_RCVTIMEO and SO_SNDTIMEO: what is kept of them, and what ends a wait that has one.
#include "../check.h"
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

#define NEW_RCVTIMEO 66
#define NEW_SNDTIMEO 67

static const struct timeval soon = { 0, 20000 }, late = { 100, 0 }, never = { 0, 0 };
static char bytes[1 << 20];
static volatile sig_atomic_t ticks;

static void tick(int number)
{
    ticks += number == SIGALRM;
}

// A signal again and again, so that one comes while a call waits.
static void start_ticks(void)
{
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
    REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void stop_ticks(void)
{
    struct itimerval none = { { 0, 0 }, { 0, 0 } };
    REQUIRE(setitimer(ITIMER_REAL, &none, NULL) == 0);
    alarm(CHECK_LIMIT);
}

static void both(int fd, struct timeval time)
{
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0);
}

static void set(int fd, int option, long seconds, long micros)
{
    struct timeval time = { seconds, micros }, told = { -1, -1 };
    socklen_t length = sizeof told;
    CHECK("set", setsockopt(fd, SOL_SOCKET, option, &time, sizeof time));
    REQUIRE(getsockopt(fd, SOL_SOCKET, option, &told, &length) == 0);
    check_line("told: %ld %ld, %u bytes\n", (long)told.tv_sec, (long)told.tv_usec, length);
}

static void values(int fd)
{
    set(fd, SO_RCVTIMEO, 1, 20000);
    set(fd, SO_SNDTIMEO, 7, 999999);
    set(fd, SO_RCVTIMEO, 3, 1000000);
    set(fd, SO_RCVTIMEO, 3, -1);
    set(fd, SO_RCVTIMEO, -1, -1);
    set(fd, SO_RCVTIMEO, INT64_MAX, 0);
    set(fd, SO_RCVTIMEO, INT64_MAX / 1000, 0);
    set(fd, NEW_RCVTIMEO, 2, 40000);
    set(fd, NEW_SNDTIMEO, 0, 0);
    set(fd, SO_RCVTIMEO, -1, 5);
    CHECK("no-time-left", read(fd, bytes, 1));
    CHECK("short", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, 8));
    CHECK("shorter", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, 3));
    CHECK("longer", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, bytes, 100));
    CHECK("bad", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, BAD_POINTER, sizeof soon));
    socklen_t length = 4;
    CHECK("get-short", getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, bytes, &length));
    CHECK("get-short-length", length);
}

// A millisecond, or what is counted as one: no more than 10 of them.
static void rounding(int fd)
{
    struct timeval time = { 0, 1 };
    socklen_t length = sizeof time;
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
    REQUIRE(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, &length) == 0);
    CHECK_TRUE("rounded-up", time.tv_sec == 0 && time.tv_usec >= 1000 && time.tv_usec <= 10000);
}

static void fill(int fd)
{
    while (send(fd, bytes, 1000, MSG_DONTWAIT) > 0)
        ;
    while (send(fd, bytes, 1, MSG_DONTWAIT) > 0)
        ;
}

static void streams(void)
{
    int pair[2], ends[2], file = open("file", O_RDWR | O_CREAT, 0644);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(ends) == 0 && write(file, bytes, 10) == 10);
    values(pair[0]);
    rounding(pair[0]);
    both(pair[0], soon);
    long before = check_now_ms();
    CHECK("read", read(pair[0], bytes, 1));
    CHECK_TRUE("not-earlier", check_now_ms() - before >= 19);
    CHECK("recv", recv(pair[0], bytes, 1, 0));
    struct iovec piece = { bytes, 1 };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    CHECK("recvmsg", recvmsg(pair[0], &header, 0));
    CHECK("splice", splice(pair[0], NULL, ends[1], NULL, 10, 0));
    long sent = send(pair[0], bytes, sizeof bytes, 0);
    CHECK_TRUE("part-was-sent", sent > 0 && sent < (long)sizeof bytes);
    fill(pair[0]);
    CHECK("send", send(pair[0], bytes, sizeof bytes, 0));
    CHECK("write", write(pair[0], bytes, 10));
    CHECK("writev", writev(pair[0], &piece, 1));
    CHECK("sendmsg", sendmsg(pair[0], &header, 0));
    CHECK("sendfile", sendfile(pair[0], file, &(off_t){ 0 }, 10));
    REQUIRE(write(ends[1], "a", 1) == 1);
    CHECK("splice-to", splice(ends[0], NULL, pair[0], NULL, 1, 0));
    // What is there needs no wait, and the other end has times of its own.
    REQUIRE(write(pair[1], "b", 1) == 1);
    CHECK("read-what-is-there", read(pair[0], bytes, 10));
    struct timeval time;
    socklen_t length = sizeof time;
    REQUIRE(getsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &time, &length) == 0);
    CHECK("other-end", time.tv_sec + time.tv_usec);

    // A handler with SA_RESTART: calls that would end by themselves are not restarted.
    both(pair[0], late);
    start_ticks();
    CHECK("interrupted-read", read(pair[0], bytes, 1));
    CHECK("interrupted-write", write(pair[0], bytes, 10));
    CHECK("interrupted-sendmsg", sendmsg(pair[0], &header, 0));
    CHECK("interrupted-sendfile", sendfile(pair[0], file, &(off_t){ 0 }, 10));
    stop_ticks();
    // Without a time they are.
    both(pair[0], never);
    pid_t pid = check_fork();
    if (pid == 0) {
        check_sleep_ms(100);
        _exit(write(pair[1], "c", 1) == 1 ? 0 : 1);
    }
    start_ticks();
    CHECK("restarted-read", read(pair[0], bytes, 1));
    stop_ticks();
    CHECK_STATUS("writer", check_wait(pid));
    close(pair[0]), close(pair[1]), close(ends[0]), close(ends[1]), close(file);
}

static void messages(int type)
{
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, type, 0, pair) == 0);
    both(pair[0], soon);
    CHECK("message", recv(pair[0], bytes, 1, 0));
    fill(pair[0]);
    CHECK("send-message", send(pair[0], bytes, 1, 0));
    both(pair[0], late);
    start_ticks();
    CHECK("interrupted-message", recv(pair[0], bytes, 1, 0));
    CHECK("interrupted-send", send(pair[0], bytes, 1, 0));
    stop_ticks();
    close(pair[0]), close(pair[1]);
}

static void listeners(void)
{
    struct sockaddr_un address = { AF_UNIX, "listener" };
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
    int second = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 0) == 0);
    both(listener, soon);
    CHECK("accept", accept(listener, NULL, NULL));
    CHECK("connect", connect(first, (void *)&address, sizeof address));
    both(second, soon);
    CHECK("connect-full", connect(second, (void *)&address, sizeof address));
    both(second, late);
    start_ticks();
    CHECK("interrupted-connect", connect(second, (void *)&address, sizeof address));
    stop_ticks();
    int accepted = accept(listener, NULL, NULL);
    struct timeval time;
    socklen_t length = sizeof time;
    REQUIRE(accepted >= 0 && getsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &time, &length) == 0);
    CHECK("not-inherited", time.tv_sec + time.tv_usec);
    CHECK("connect-again", connect(second, (void *)&address, sizeof address));
    REQUIRE(accept(listener, NULL, NULL) >= 0);
    both(listener, late);
    start_ticks();
    CHECK("interrupted-accept", accept(listener, NULL, NULL));
    stop_ticks();
}

int main(void)
{
    struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    streams();
    messages(SOCK_DGRAM);
    messages(SOCK_SEQPACKET);
    listeners();
    return 0;
}
