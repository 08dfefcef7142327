// The list of mounts can be waited for. Who may not mount has nothing to compare.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>

static int may;

#define CHECK_IF(name, condition) CHECK_TRUE(name, !may || (condition))

static void *new_page(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// A child that mounts and unmounts something after a while.
static pid_t mounter(void)
{
    pid_t child = check_fork();
    if (child == 0) {
        check_sleep_ms(20);
        _exit(may && (mount("none", "m", "tmpfs", 0, NULL) != 0 || umount("m") != 0));
    }
    return child;
}

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
        // Where it is told is a page that the child has, too: it has to be copied first.
        struct epoll_event *event = new_page();
        event->events = EPOLLPRI;
        CHECK("can-be-waited-for", epoll_ctl(set, EPOLL_CTL_ADD, fd, event));
        pid_t child = mounter();
        CHECK_IF("woken", epoll_wait(set, event, 1, -1) == 1 && event->events == (EPOLLPRI | EPOLLERR));
        CHECK_STATUS("mounter", check_wait(child));
        // (Once or twice, as the unmounting came before or after.)
        epoll_wait(set, event, 1, 0);
        CHECK_IF("told-once", epoll_wait(set, event, 1, 0) == 0);
        struct pollfd *other = new_page();
        *other = (struct pollfd){ .fd = fd, .events = POLLPRI };
        poll(other, 1, 0);
        child = mounter();
        CHECK_IF("poll-woken", poll(other, 1, -1) == 1 && other->revents == (POLLPRI | POLLERR));
        CHECK_STATUS("poll-mounter", check_wait(child));
        poll(other, 1, 0);
        fd_set *exceptions = new_page(), *readable = new_page();
        FD_SET(fd, exceptions);
        child = mounter();
        CHECK_IF("select-woken", select(fd + 1, readable, NULL, exceptions, NULL) == 1 && FD_ISSET(fd, exceptions) && !FD_ISSET(fd, readable));
        CHECK_STATUS("select-mounter", check_wait(child));
        close(set);
        close(fd);
    }
    return 0;
}
