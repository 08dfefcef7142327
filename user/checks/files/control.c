// fcntl status flags, F_SETFL's limits, pipe sizes, and ioctl on regular files.
#include "../check.h"
#include <sys/ioctl.h>
#include <termios.h>

int main(void)
{
    check_write_file("f", "0123456789");
    int fd = open("f", O_RDWR);
    REQUIRE(fd >= 0);
    CHECK("access-mode", fcntl(fd, F_GETFL) & O_ACCMODE);
    CHECK("set-nonblock", fcntl(fd, F_SETFL, O_NONBLOCK));
    CHECK("nonblock-set", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK("access-mode-cannot-change", fcntl(fd, F_SETFL, O_RDONLY) == 0 ? fcntl(fd, F_GETFL) & O_ACCMODE : -2);
    CHECK("get-descriptor-flags", fcntl(fd, F_GETFD));
    CHECK("set-descriptor-flags", fcntl(fd, F_SETFD, FD_CLOEXEC));
    CHECK("descriptor-flags", fcntl(fd, F_GETFD));
    CHECK("unknown-command", fcntl(fd, 9999, 0));
    struct termios settings;
    struct winsize size;
    CHECK("terminal-settings", tcgetattr(fd, &settings));
    CHECK("window-size", ioctl(fd, TIOCGWINSZ, &size));
    CHECK("isatty", isatty(fd));
    CHECK("unknown-ioctl", ioctl(fd, 0xdead, 0));
    int bytes = -1;
    CHECK("bytes-left", ioctl(fd, FIONREAD, &bytes));
    CHECK("bytes", bytes);
    REQUIRE(lseek(fd, 4, SEEK_SET) == 4 && ioctl(fd, FIONREAD, &bytes) == 0);
    CHECK("bytes-after-seek", bytes);
    int on = 1;
    CHECK("fionbio", ioctl(fd, FIONBIO, &on));
    CHECK("fionbio-set", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK("fioclex", ioctl(fd, FIOCLEX));
    CHECK("fioclex-set", fcntl(fd, F_GETFD));
    CHECK("fionclex", ioctl(fd, FIONCLEX));
    CHECK("fionclex-set", fcntl(fd, F_GETFD));
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    CHECK("pipe-modes", (fcntl(pipe_fds[0], F_GETFL) & O_ACCMODE) * 10 + (fcntl(pipe_fds[1], F_GETFL) & O_ACCMODE));
    REQUIRE(write(pipe_fds[1], "abc", 3) == 3);
    CHECK("pipe-bytes", ioctl(pipe_fds[0], FIONREAD, &bytes) == 0 ? bytes : -2);
    return 0;
}
