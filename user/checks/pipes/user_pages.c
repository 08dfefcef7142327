// How much the pipes of one user may hold together: /proc/sys/fs/pipe-user-pages-soft, as it is from the start (16384 pages).
#include "../check.h"
#include <sys/resource.h>

// Nobody else has this id.
#define USER 714711

int main(void)
{
    CHECK_STR("soft", check_read_file("/proc/sys/fs/pipe-user-pages-soft"));
    CHECK_STR("hard", check_read_file("/proc/sys/fs/pipe-user-pages-hard"));
    static int fds[1030][2];
    struct rlimit files = { 4096, 4096 };
    REQUIRE(setrlimit(RLIMIT_NOFILE, &files) == 0);
    REQUIRE(mkfifo("fifo", 0666) == 0 && chmod("fifo", 0666) == 0);
    REQUIRE(chmod(".", 0755) == 0);
    CHECK_CHILD("user", {
        REQUIRE(setresgid(USER, USER, USER) == 0);
        REQUIRE(setresuid(USER, USER, USER) == 0);
        int usual = 0;
        int small = 0;
        for (int i = 0; i < 1030; i++) {
            REQUIRE(pipe(fds[i]) == 0);
            int size = fcntl(fds[i][0], F_GETPIPE_SZ);
            usual += size == 65536;
            small += size == 8192;
        }
        CHECK("usual pipes", usual);
        CHECK("small pipes", small);
        CHECK("enlarge", fcntl(fds[0][0], F_SETPIPE_SZ, 131072));
        CHECK("enlarge a small one", fcntl(fds[1029][0], F_SETPIPE_SZ, 16384));
        CHECK("as it is", fcntl(fds[0][0], F_SETPIPE_SZ, 65536));
        int fifo = open("fifo", O_RDWR);
        CHECK("fifo", fcntl(fifo, F_GETPIPE_SZ));
        close(fifo);
        char block[8192];
        memset(block, 'x', sizeof block);
        REQUIRE(fcntl(fds[1029][1], F_SETFL, O_NONBLOCK) == 0);
        CHECK("fill a small one", write(fds[1029][1], block, sizeof block));
        CHECK("full", write(fds[1029][1], block, 1));
        for (int i = 0; i < 10; i++) {
            close(fds[i][0]);
            close(fds[i][1]);
        }
        REQUIRE(pipe(fds[0]) == 0);
        CHECK("after some were closed", fcntl(fds[0][0], F_GETPIPE_SZ));
        fifo = open("fifo", O_RDWR);
        CHECK("fifo now", fcntl(fifo, F_GETPIPE_SZ));
        CHECK("enlarge now", fcntl(fds[0][0], F_SETPIPE_SZ, 131072));
        CHECK("shrink", fcntl(fds[1][0] = fds[0][0], F_SETPIPE_SZ, 4096));
        CHECK("beyond what one pipe may hold", fcntl(fds[0][0], F_SETPIPE_SZ, 2 << 20));
    });
    // The privileged are not limited.
    int pair[2];
    REQUIRE(pipe(pair) == 0);
    CHECK("root", fcntl(pair[0], F_GETPIPE_SZ));
    return 0;
}
