// vmsplice gives back what fitted; a FIFO that nobody has open any more keeps nothing.
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/uio.h>

int main(void)
{
    // Whole pages, so that it does not matter whether they are copied or lent.
    static _Alignas(4096) char block[200000];
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    struct iovec vector = { block, sizeof block };
    CHECK("as-much-as-fits", vmsplice(fds[1], &vector, 1, 0));
    CHECK("full", vmsplice(fds[1], &vector, 1, SPLICE_F_NONBLOCK));
    CHECK("one-page-out", read(fds[0], block, 4096));
    CHECK("one-page-in", vmsplice(fds[1], &vector, 1, SPLICE_F_NONBLOCK));
    CHECK("drained", read(fds[0], block, sizeof block));
    CHECK("not-a-pipe", vmsplice(open("/dev/null", O_WRONLY), &vector, 1, 0));
    CHECK("no-pieces", vmsplice(fds[1], &vector, 0, 0));
    CHECK("unknown-flags", vmsplice(fds[1], &vector, 1, 0x100));
    // A writer that finds the pipe full waits for room, and takes what it gets.
    CHECK("fill", vmsplice(fds[1], &vector, 1, 0));
    pid_t reader = check_fork();
    if (reader == 0) {
        check_sleep_ms(30);
        _exit(read(fds[0], block, 8192) == 8192 ? 3 : 4);
    }
    CHECK("waits-for-room", vmsplice(fds[1], &vector, 1, 0));
    CHECK_STATUS("reader", check_wait(reader));

    REQUIRE(mkfifo("fifo", 0600) == 0);
    int end = open("fifo", O_RDWR);
    CHECK("enlarged", fcntl(end, F_SETPIPE_SZ, 1 << 18));
    CHECK("written", write(end, block, 100000));
    close(end);
    end = open("fifo", O_RDWR | O_NONBLOCK);
    CHECK("capacity-afterwards", fcntl(end, F_GETPIPE_SZ));
    int held = -1;
    CHECK("held-query", ioctl(end, FIONREAD, &held));
    CHECK("held-afterwards", held);
    CHECK("nothing-to-read", read(end, block, 1));
    return 0;
}
