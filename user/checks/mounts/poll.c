// The list of mounts can be waited for. Who may not mount has nothing to compare.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mount.h>

static int may;

#define CHECK_IF(name, condition) CHECK_TRUE(name, !may || (condition))

int main(void)
{
    REQUIRE(mkdir("m", 0755) == 0);
    may = mount("none", "m", "tmpfs", 0, NULL) == 0 && umount("m") == 0;
    const char *paths[] = { "/proc/self/mounts", "/proc/self/mountinfo" };
    for (int i = 0; i < 2; i++) {
        int fd = open(paths[i], O_RDONLY);
        REQUIRE(fd >= 0);
        struct pollfd ready = { .fd = fd, .events = POLLPRI };
        CHECK_IF("nothing-new", poll(&ready, 1, 0) == 0);
        ready.events = POLLIN | POLLRDNORM;
        CHECK_IF("readable", poll(&ready, 1, 0) == 1 && ready.revents == (POLLIN | POLLRDNORM));
        int set = epoll_create1(0);
        struct epoll_event event = { .events = EPOLLPRI };
        CHECK("can-be-waited-for", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        pid_t child = check_fork();
        if (child == 0) {
            check_sleep_ms(20);
            _exit(may && (mount("none", "m", "tmpfs", 0, NULL) != 0 || umount("m") != 0));
        }
        CHECK_IF("woken", epoll_wait(set, &event, 1, -1) == 1 && event.events == (EPOLLPRI | EPOLLERR));
        CHECK_STATUS("mounter", check_wait(child));
        // (Once or twice, as the unmounting came before or after.)
        epoll_wait(set, &event, 1, 0);
        CHECK_IF("told-once", epoll_wait(set, &event, 1, 0) == 0);
        close(set);
        close(fd);
    }
    return 0;
}
