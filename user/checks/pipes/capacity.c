// How much a pipe holds, whole writes up to PIPE_BUF, and blocking when it is full.
#include "../check.h"
#include <limits.h>
#include <sys/ioctl.h>

int main(void)
{
    int fds[2];
    static char block[200000];
    memset(block, 'x', sizeof block);
    REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
    CHECK("size", fcntl(fds[1], F_GETPIPE_SZ));
    CHECK("fills-to", write(fds[1], block, sizeof block));
    CHECK("full", write(fds[1], block, 1));
    CHECK("full-large", write(fds[1], block, sizeof block));
    CHECK("drain-page", read(fds[0], block, 4096));
    CHECK("room-again", write(fds[1], block, 4096));
    CHECK("pipe-buf", PIPE_BUF);
    // With less room than an atomic write needs, nothing is written.
    REQUIRE(read(fds[0], block, 4096) == 4096);
    REQUIRE(write(fds[1], block, 1000) == 1000);
    CHECK("atomic-refused", write(fds[1], block, 4096));
    CHECK("enlarge", fcntl(fds[1], F_SETPIPE_SZ, 1 << 17));
    CHECK("size-now", fcntl(fds[0], F_GETPIPE_SZ));
    CHECK("more-room", write(fds[1], block, 4096));
    CHECK("shrink-below-content", fcntl(fds[1], F_SETPIPE_SZ, 4096));
    CHECK("round-up", (read(fds[0], block, sizeof block), fcntl(fds[1], F_SETPIPE_SZ, 5000)));
    // A blocked writer goes on as the reader drains; nothing is lost.
    int slow[2];
    REQUIRE(pipe(slow) == 0);
    pid_t writer = check_fork();
    if (writer == 0) {
        close(slow[0]);
        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (char)(i * 7 % 251);
        ssize_t wrote = write(slow[1], block, sizeof block);
        _exit(wrote == sizeof block ? 4 : 5);
    }
    close(slow[1]);
    check_sleep_ms(20);
    size_t total = 0, wrong = 0;
    char part[3000];
    ssize_t got;
    while ((got = read(slow[0], part, sizeof part)) > 0)
        for (ssize_t i = 0; i < got; i++)
            wrong += part[i] != (char)(total++ * 7 % 251);
    CHECK("received", total);
    CHECK("wrong-bytes", wrong);
    CHECK_STATUS("writer", check_wait(writer));
    // A writer that is blocked when the reader goes away is told so.
    REQUIRE(pipe(slow) == 0);
    writer = check_fork();
    if (writer == 0) {
        close(slow[0]);
        signal(SIGPIPE, SIG_IGN);
        ssize_t wrote = write(slow[1], block, sizeof block);
        int error = errno;
        CHECK_TRUE("partial-count", wrote == 65536);
        errno = error;
        wrote = write(slow[1], block, 1);
        _exit(wrote == -1 && errno == EPIPE ? 4 : 5);
    }
    close(slow[1]);
    for (int held = 0; held < 65536; check_sleep_ms(1))
        REQUIRE(ioctl(slow[0], FIONREAD, &held) == 0);
    close(slow[0]);
    CHECK_STATUS("abandoned-writer", check_wait(writer));
    return 0;
}
