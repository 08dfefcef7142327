// dup, dup2, dup3, F_DUPFD: shared positions, own close-on-exec flags.
#include "../check.h"

int main(void)
{
    char c = 0;
    check_write_file("f", "abcdef");
    int fd = open("f", O_RDONLY);
    int copy = dup(fd);
    REQUIRE(fd >= 0 && copy >= 0);
    CHECK("lowest", copy - fd);
    REQUIRE(read(fd, &c, 1) == 1);
    CHECK("shared-position", lseek(copy, 0, SEEK_CUR));
    int other = open("f", O_RDONLY);
    CHECK("own-position", lseek(other, 0, SEEK_CUR));
    CHECK("dup2", dup2(fd, 20));
    CHECK("dup2-same", dup2(fd, fd) == fd);
    CHECK("dup2-closed-source", dup2(63, 64));
    CHECK("dup2-bad-target", dup2(fd, -1));
    CHECK("dup3-same", syscall(SYS_dup3, fd, fd, 0));
    CHECK("dup3-bad-flags", syscall(SYS_dup3, fd, 21, 1));
    CHECK("dup3", dup3(fd, 21, O_CLOEXEC));
    CHECK("dup3-flag", fcntl(21, F_GETFD));
    CHECK("dup2-clears-flag", dup2(21, 22) == 22 ? fcntl(22, F_GETFD) : -2);
    CHECK("dupfd-from", fcntl(fd, F_DUPFD, 30));
    CHECK("dupfd-next", fcntl(fd, F_DUPFD, 30));
    CHECK("dupfd-cloexec", fcntl(fd, F_DUPFD_CLOEXEC, 40));
    CHECK("dupfd-cloexec-flag", fcntl(40, F_GETFD));
    CHECK("dupfd-negative", fcntl(fd, F_DUPFD, -1));
    CHECK("dup-closed", dup(100));
    CHECK("close", close(20));
    CHECK("close-again", close(20));
    CHECK("close-negative", close(-1));
    // Closing one copy leaves the others usable.
    close(fd);
    CHECK("copy-reads-on", read(copy, &c, 1));
    CHECK_TRUE("copy-content", c == 'b');
    // Over an open descriptor: the old description is let go (the pipe's reader sees the end).
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    REQUIRE(dup2(copy, pipe_fds[1]) == pipe_fds[1]);
    CHECK("dup2-closes-target", read(pipe_fds[0], &c, 1));
    // A child shares the position.
    int shared = open("f", O_RDONLY);
    CHECK_CHILD("child-reads", _exit(read(shared, &c, 1) == 1 ? 7 : 1));
    CHECK("parent-sees-position", lseek(shared, 0, SEEK_CUR));
    CHECK("status-flags-shared", fcntl(copy, F_SETFL, O_NONBLOCK) == 0 ? fcntl(21, F_GETFL) & O_NONBLOCK : -2);
    return 0;
}
