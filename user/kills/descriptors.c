// Pipes, terminals, and descriptors of events.
#include "kills.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static char content[1 << 20];

static void fill(int file, size_t bytes) { (void)!write(file, content, bytes); }

static void pipes(int amount)
{
    int ends[2];
    for (int i = 0; i < amount && pipe2(ends, O_NONBLOCK) == 0; i++)
        if (any(2))
            fill(ends[1], any(PAGE));
}

static void full_pipes(int amount)
{
    int ends[2];
    for (int i = 0; i < amount && pipe2(ends, O_NONBLOCK) == 0; i++) {
        if (any(3) == 0)
            fcntl(ends[1], F_SETPIPE_SZ, 1 << (12 + any(9)));
        fill(ends[1], sizeof content);
        if (any(4) == 0)
            close(ends[any(2)]);
    }
}

static void huge_pipes(int amount)
{
    int ends[2];
    for (int i = 0; i < amount && pipe2(ends, O_NONBLOCK) == 0; i++) {
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        // In pieces that may not share pages.
        for (int piece = 0; piece < 256; piece++)
            fill(ends[1], any(2) ? PAGE : 1 + any(PAGE));
    }
}

static void fifos(int amount)
{
    char name[48];
    for (int i = 0; i < amount; i++) {
        snprintf(name, sizeof name, OWN "/fifo-%d-%d", getpid(), i);
        if (mkfifo(name, 0600) < 0)
            return;
        int file = open(name, O_RDWR | O_NONBLOCK);
        unlink(name);
        if (file < 0)
            return;
        fill(file, any(70000));
    }
}

static void eventfds(int amount)
{
    while (amount-- > 0 && eventfd(any(3), EFD_NONBLOCK) >= 0)
        ;
}

static struct itimerspec some_time(void)
{
    // Most of them long after the end; some expire while the workload runs.
    long seconds = once_in(8) ? 0 : 100000 + any(10007);
    return (struct itimerspec){ .it_value = { seconds, 1 + any(3000000) }, .it_interval = { 0, once_in(8) ? 100000 + any(1000000) : 0 } };
}

static void timerfds(int amount)
{
    for (int i = 0; i < amount; i++) {
        struct itimerspec time = some_time();
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        if (timer < 0)
            return;
        timerfd_settime(timer, 0, &time, NULL);
    }
}

static void signalfds(int amount)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    while (amount-- > 0 && signalfd(-1, &set, SFD_NONBLOCK) >= 0)
        ;
}

static void pidfds(int amount)
{
    while (amount-- > 0 && syscall(SYS_pidfd_open, amount % 2 ? 1 : getpid(), 0) >= 0)
        ;
}

static void timers(int amount)
{
    for (int i = 0; i < amount; i++) {
        struct sigevent event = { .sigev_notify = any(2) ? SIGEV_SIGNAL : SIGEV_NONE, .sigev_signo = SIGUSR1 };
        struct itimerspec time = some_time();
        int timer;
        if (syscall(SYS_timer_create, any(2) ? CLOCK_MONOTONIC : CLOCK_REALTIME, &event, &timer) < 0)
            return;
        syscall(SYS_timer_settime, timer, 0, &time, NULL);
    }
}

static void watch(int set, int file)
{
    struct epoll_event event = { .events = EPOLLIN | (any(2) ? EPOLLET : 0) | (any(3) ? 0 : EPOLLOUT) };
    epoll_ctl(set, EPOLL_CTL_ADD, file, &event);
}

static void epoll_sets(int amount)
{
    for (int i = 0; i < amount; i++)
        if (epoll_create1(0) < 0)
            return;
}

static void epoll_items(int amount)
{
    int set = epoll_create1(0);
    for (int i = 0; set >= 0 && i < amount; i++) {
        int ends[2];
        if (any(2)) {
            int one = eventfd(1, EFD_NONBLOCK);
            if (one < 0)
                return;
            watch(set, one);
        } else {
            if (pipe2(ends, O_NONBLOCK) < 0)
                return;
            watch(set, ends[0]);
            watch(set, ends[1]);
        }
    }
}

// Many sets watch the same file, and it is ready.
static void epoll_of_one(int amount)
{
    int one = eventfd(1, EFD_NONBLOCK);
    for (int i = 0; i < amount; i++) {
        int set = epoll_create1(0);
        if (set < 0)
            return;
        watch(set, one);
        if (link_count > 0 && any(4) == 0)
            watch(set, links[any(link_count)].inside);
    }
}

static void nested_epoll(int amount)
{
    int inner[5], levels = 0;
    for (int i = 0; i < amount; i++) {
        int set = epoll_create1(0);
        if (set < 0)
            return;
        for (int level = 0; level < levels; level++)
            watch(set, inner[level]);
        if (levels < 4)
            inner[levels++] = set;
        else
            levels = 0;
    }
}

// Each of some sets watches each of some files.
static void epoll_grid(int amount)
{
    int side = 1, files[64];
    while (side < 64 && side * side < amount)
        side++;
    for (int i = 0; i < side; i++)
        files[i] = eventfd(i % 2, EFD_NONBLOCK);
    for (int i = 0; i < side; i++) {
        int set = epoll_create1(0);
        for (int j = 0; j < side; j++)
            watch(set, files[j]);
    }
}

// Pipes and sockets whose ends tell a group of processes by a signal of each change.
static void asynchronous(int amount)
{
    setpgid(0, 0);
    signal(SIGIO, SIG_IGN);
    for (int i = 0; i < 20; i++)
        if (fork() == 0)
            for (;;)
                pause();
    for (int i = 0; i < amount; i++) {
        int ends[2];
        if ((i % 2 ? pipe2(ends, O_NONBLOCK) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends)) < 0)
            return;
        for (int end = 0; end < 2; end++) {
            fcntl(ends[end], F_SETOWN, -getpid());
            fcntl(ends[end], F_SETFL, O_NONBLOCK | O_ASYNC);
        }
    }
}

// How many a user may have is not what keeps any from being made.
static void unlimit_inotify(const char *what)
{
    int fd = open(what, O_WRONLY);
    (void)!write(fd, "2000000", 7);
    close(fd);
}

static void inotifies(int amount)
{
    unlimit_inotify("/proc/sys/fs/inotify/max_user_instances");
    for (int i = 0; i < amount; i++) {
        int watcher = inotify_init1(IN_NONBLOCK);
        if (watcher < 0)
            return;
        inotify_add_watch(watcher, "/tmp/page", IN_ALL_EVENTS);
    }
}

// Watches of files of which none is the group's own, of which some things are told.
static void watches(int amount)
{
    unlimit_inotify("/proc/sys/fs/inotify/max_user_watches");
    int watcher = inotify_init1(IN_NONBLOCK);
    for (int i = 0; i < amount; i++) {
        char path[40];
        snprintf(path, sizeof path, WATCHED "/%d", i);
        if (inotify_add_watch(watcher, path, IN_ALL_EVENTS) < 0)
            return;
        if (once_in(4))
            chmod(path, 0600);
    }
}

// Instances of which each has as many events as it may keep without being left as a whole, with names.
static void unread(int amount)
{
    char directory[40], path[300];
    unlimit_inotify("/proc/sys/fs/inotify/max_user_instances");
    snprintf(directory, sizeof directory, OWN "/unread-%d", getpid());
    mkdir(directory, 0700);
    for (int i = 0; i < amount; i++) {
        int watcher = inotify_init1(IN_NONBLOCK);
        if (watcher < 0 || inotify_add_watch(watcher, directory, IN_CREATE) < 0)
            break;
    }
    for (int i = 0, events = any(80); i < events; i++) {
        snprintf(path, sizeof path, "%s/%0*d", directory, any(3) ? 200 : 8, i);
        close(open(path, O_WRONLY | O_CREAT, 0600));
    }
}

// Directories of which signals tell.
static void notified(int amount)
{
    for (int i = 0; i < amount; i++) {
        int directory = open(any(2) ? "/tmp" : "/", O_RDONLY | O_DIRECTORY);
        if (directory < 0 || fcntl(directory, F_NOTIFY, DN_RENAME | DN_MULTISHOT) < 0)
            return;
    }
}

// Trees of mounts that are nowhere.
static void mounts(int amount)
{
    for (int i = 0; i < amount; i++)
        if (syscall(SYS_open_tree, AT_FDCWD, any(2) ? "/" : "/tmp", 1 | (any(2) ? 0x8000 : 0)) < 0)
            return;
}

static void terminals(int amount)
{
    for (int i = 0; i < amount; i++) {
        int unlocked = 0, number = 0, master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
        char name[32];
        if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
            return;
        snprintf(name, sizeof name, "/dev/pts/%d", number);
        int slave = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);
        fill(any(2) ? master : slave, any(5000));
    }
}

const struct kind descriptor_kinds[] = {
    { "pipes", 1500, pipes },
    { "full-pipes", 300, full_pipes },
    { "huge-pipes", 20, huge_pipes },
    { "fifos", 500, fifos },
    { "eventfds", 3000, eventfds },
    { "timerfds", 1500, timerfds },
    { "signalfds", 1500, signalfds },
    { "pidfds", 1000, pidfds },
    { "timers", 1500, timers },
    { "epoll-sets", 1500, epoll_sets },
    { "epoll-items", 1500, epoll_items },
    { "epoll-of-one", 1000, epoll_of_one },
    { "nested-epoll", 400, nested_epoll },
    { "epoll-grid", 3000, epoll_grid },
    { "asynchronous", 300, asynchronous },
    { "inotifies", 500, inotifies },
    { "watches", MOST_WATCHED, watches },
    { "unread", 300, unread },
    { "notified", 1000, notified },
    { "mounts", 300, mounts },
    { "terminals", 200, terminals },
    { 0 },
};
