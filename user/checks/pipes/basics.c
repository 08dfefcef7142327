// Pipes: order, ends, blocking, close-on-exec.
#include "../check.h"

int main(void)
{
    int fds[2];
    char buffer[64] = { 0 };
    CHECK("pipe", pipe(fds));
    CHECK("write", write(fds[1], "abc", 3));
    CHECK("write-more", write(fds[1], "defg", 4));
    CHECK("read-part", read(fds[0], buffer, 5));
    CHECK_STR("text", buffer);
    CHECK("read-rest", read(fds[0], buffer, sizeof buffer));
    CHECK("read-from-write-end", read(fds[1], buffer, 1));
    CHECK("write-to-read-end", write(fds[0], "x", 1));
    CHECK("seek", lseek(fds[0], 0, SEEK_SET));
    CHECK("zero-write", write(fds[1], "", 0));
    CHECK("zero-read", read(fds[0], buffer, 0));
    struct stat st;
    CHECK("is-fifo", fstat(fds[0], &st) == 0 ? S_ISFIFO(st.st_mode) : -1);
    // The end of data comes when the last writer is gone, after what was written.
    REQUIRE(write(fds[1], "last", 4) == 4);
    close(fds[1]);
    CHECK("rest-first", read(fds[0], buffer, sizeof buffer));
    CHECK("end", read(fds[0], buffer, sizeof buffer));
    CHECK("end-again", read(fds[0], buffer, sizeof buffer));
    close(fds[0]);
    // Nobody reads: SIGPIPE, or EPIPE where it is ignored.
    REQUIRE(pipe(fds) == 0);
    close(fds[0]);
    CHECK_CHILD("sigpipe", write(fds[1], "x", 1));
    signal(SIGPIPE, SIG_IGN);
    CHECK("epipe", write(fds[1], "x", 1));
    signal(SIGPIPE, SIG_DFL);
    close(fds[1]);
    CHECK("pipe2-cloexec", pipe2(fds, O_CLOEXEC) == 0 ? fcntl(fds[0], F_GETFD) + fcntl(fds[1], F_GETFD) : -1);
    REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
    CHECK("nonblock-empty", read(fds[0], buffer, 1));
    CHECK("bad-flags", pipe2(fds, O_TRUNC));
    // A reader waits for a writer in another process.
    REQUIRE(pipe(fds) == 0);
    long before = check_now_ms();
    pid_t writer = check_fork();
    if (writer == 0) {
        close(fds[0]);
        check_sleep_ms(30);
        REQUIRE(write(fds[1], "late", 4) == 4);
        _exit(0);
    }
    close(fds[1]);
    CHECK("blocked-read", read(fds[0], buffer, sizeof buffer));
    CHECK_TRUE("waited", check_now_ms() - before >= 29);
    CHECK("end-after-exit", read(fds[0], buffer, sizeof buffer));
    check_wait(writer);
    return 0;
}
