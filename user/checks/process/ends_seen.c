// What others see of the descriptors of a process that has ended, as soon as it was waited for. The process holds much besides that nobody else sees, and ends by itself, by a signal, and by
// another program.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

// How the child ends.
enum end { EXIT, KILL, EXEC, ENDS };
static const char *const end_names[] = { "exit", "kill", "exec" };

static enum end end;
// To the child, and from it: SOCK_SEQPACKET.
static int channel[2];
// Counts once the child has all that it is to have.
static int is_complete;

static void send_fd(int fd)
{
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control = { 0 };
    struct iovec byte = { "x", 1 };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    REQUIRE(sendmsg(channel[1], &message, 0) == 1);
}

static int receive_fd(void)
{
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control;
    char byte;
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
    REQUIRE(recvmsg(channel[0], &message, 0) == 1);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    REQUIRE(header && header->cmsg_type == SCM_RIGHTS);
    int fd;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

// The child tells a number and waits until it is to end.
static void tell(int number) { REQUIRE(write(channel[1], &number, sizeof number) == sizeof number); }

static int hear(void)
{
    int number;
    REQUIRE(read(channel[0], &number, sizeof number) == sizeof number);
    return number;
}

// Much that nobody else sees.
static void hold_much(void)
{
    int ends[2], set = epoll_create1(EPOLL_CLOEXEC);
    REQUIRE(set >= 0);
    for (int i = 0; i < 40; i++) {
        int counter = eventfd(1, EFD_CLOEXEC);
        struct epoll_event event = { .events = EPOLLIN };
        REQUIRE(counter >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, counter, &event) == 0);
        REQUIRE(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], "unread", 6) == 6);
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 && write(ends[0], "unread", 6) == 6);
        REQUIRE(fcntl(counter, F_DUPFD_CLOEXEC, 0) >= 0);
    }
}

static pid_t begin(void (*child)(void))
{
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) == 0);
    is_complete = eventfd(0, EFD_CLOEXEC);
    REQUIRE(is_complete >= 0);
    pid_t pid = check_fork();
    if (pid == 0) {
        close(channel[0]);
        hold_much();
        child();
        hold_much();
        tell(-1);
        REQUIRE(eventfd_write(is_complete, 1) == 0);
        char byte, number[16];
        if (end == KILL)
            for (;;)
                pause();
        REQUIRE(read(channel[1], &byte, 1) == 1);
        if (end == EXEC) {
            snprintf(number, sizeof number, "%d", fcntl(channel[1], F_DUPFD, 0));
            execl("/proc/self/exe", "ends_seen", number, NULL);
        }
        _exit(0);
    }
    close(channel[1]);
    return pid;
}

// The child ends, and was waited for; or its other program says that it runs.
static void finish(pid_t pid)
{
    if (end == KILL)
        kill(pid, SIGKILL);
    else
        REQUIRE(write(channel[0], "x", 1) == 1);
    if (end == EXEC)
        REQUIRE(hear() == -2);
    else
        check_wait(pid);
}

static void drop(pid_t pid)
{
    if (end == EXEC) {
        kill(pid, SIGKILL);
        check_wait(pid);
    }
    close(channel[0]);
    close(is_complete);
}

static const char *named(const char *what)
{
    static char name[80];
    snprintf(name, sizeof name, "%s-%s", what, end_names[end]);
    return name;
}

static int ready(int fd)
{
    struct pollfd wanted = { fd, POLLIN | POLLOUT | POLLRDHUP, 0 };
    REQUIRE(poll(&wanted, 1, 0) >= 0);
    return wanted.revents;
}

static int kept[2];

static void hold_inherited(void)
{
    REQUIRE(fcntl(kept[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(kept[1], F_SETFD, FD_CLOEXEC) == 0);
}

static void inherited(void)
{
    REQUIRE(pipe2(kept, O_NONBLOCK) == 0);
    pid_t pid = begin(hold_inherited);
    REQUIRE(hear() == -1);
    close(kept[1]);
    finish(pid);
    char byte;
    CHECK(named("inherited"), read(kept[0], &byte, 1));
    close(kept[0]);
    drop(pid);
}

// What the child makes and which of its ends it gives away.
static int is_socket, is_reader, is_moved, is_doubled;

static void make_and_send(void)
{
    int ends[2];
    REQUIRE(is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0 : pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    if (is_doubled)
        REQUIRE(fcntl(ends[is_reader], F_DUPFD_CLOEXEC, 0) >= 0);
    if (is_moved)
        for (int i = 0; i < 2; i++) {
            int old = ends[i];
            ends[i] = fcntl(old, F_DUPFD_CLOEXEC, 500 + 100 * i);
            REQUIRE(ends[i] >= 0);
            close(old);
        }
    send_fd(ends[!is_reader]);
}

static void sent(const char *name, int when)
{
    pid_t pid = begin(make_and_send);
    int fd = when ? -1 : receive_fd();
    if (!when)
        REQUIRE(hear() == -1);
    if (when) {
        // In flight when the child ends: the channel is not to be read before.
        if (end == EXEC) {
            drop((kill(pid, SIGKILL), pid));
            return;
        }
        eventfd_t count;
        REQUIRE(eventfd_read(is_complete, &count) == 0);
        finish(pid);
        fd = receive_fd();
    } else {
        finish(pid);
    }
    char byte;
    signal(SIGPIPE, SIG_IGN);
    CHECK(named(name), is_reader || is_socket ? read(fd, &byte, 1) : write(fd, "x", 1));
    CHECK("ready", ready(fd));
    close(fd);
    drop(pid);
}

static void make_for_opening(void)
{
    int ends[2];
    REQUIRE(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    tell(ends[0]);
}

static void opened_again(void)
{
    pid_t pid = begin(make_for_opening);
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, hear());
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    REQUIRE(fd >= 0 && hear() == -1);
    CHECK(named("proc-open-before"), read(fd, &byte, 1));
    finish(pid);
    CHECK(named("proc-open"), read(fd, &byte, 1));
    CHECK("ready", ready(fd));
    close(fd);
    drop(pid);
}

static void open_fifo(void) { REQUIRE(open("fifo", O_WRONLY | O_CLOEXEC) >= 0); }

static void fifo(void)
{
    unlink("fifo");
    REQUIRE(mkfifo("fifo", 0600) == 0);
    int fd = open("fifo", O_RDONLY | O_NONBLOCK);
    pid_t pid = begin(open_fifo);
    REQUIRE(fd >= 0 && hear() == -1);
    finish(pid);
    char byte;
    CHECK(named("fifo"), read(fd, &byte, 1));
    close(fd);
    drop(pid);
}

static const struct sockaddr_un address = { AF_UNIX, "\0ends-seen" };
#define ADDRESS (const struct sockaddr *)&address, sizeof(sa_family_t) + 10

static void connect_to_parent(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && connect(fd, ADDRESS) == 0);
}

static void connected(void)
{
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(listener >= 0 && bind(listener, ADDRESS) == 0 && listen(listener, 5) == 0);
    pid_t pid = begin(connect_to_parent);
    int fd = accept(listener, NULL, NULL);
    REQUIRE(fd >= 0 && hear() == -1);
    finish(pid);
    char byte;
    CHECK(named("connected"), recv(fd, &byte, 1, MSG_DONTWAIT));
    close(fd);
    close(listener);
    drop(pid);
}

static void bind_one_of_a_pair(void)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0 && bind(ends[1], ADDRESS) == 0);
}

static void bound(void)
{
    pid_t pid = begin(bind_one_of_a_pair);
    REQUIRE(hear() == -1);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    REQUIRE(fd >= 0);
    finish(pid);
    CHECK(named("bound"), sendto(fd, "x", 1, 0, ADDRESS));
    int again = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK("name-is-free", bind(again, ADDRESS));
    close(again);
    close(fd);
    drop(pid);
}

static void lock_files(void)
{
    int whole = open("locked", O_RDWR | O_CLOEXEC), part = open("locked-part", O_RDWR | O_CLOEXEC), own = open("locked-own", O_RDWR | O_CLOEXEC);
    struct flock lock = { .l_type = F_WRLCK };
    REQUIRE(flock(whole, LOCK_EX) == 0 && fcntl(part, F_OFD_SETLK, &lock) == 0);
    REQUIRE(fcntl(own, F_SETLK, &lock) == 0);
}

static void locks(void)
{
    struct flock lock = { .l_type = F_WRLCK };
    int fds[3];
    const char *const names[] = { "locked", "locked-part", "locked-own" };
    for (int i = 0; i < 3; i++)
        REQUIRE((fds[i] = open(names[i], O_RDWR | O_CREAT, 0600)) >= 0);
    pid_t pid = begin(lock_files);
    REQUIRE(hear() == -1);
    CHECK("held", flock(fds[0], LOCK_EX | LOCK_NB));
    finish(pid);
    CHECK(named("flock"), flock(fds[0], LOCK_EX | LOCK_NB));
    CHECK("description-lock", fcntl(fds[1], F_OFD_SETLK, &lock));
    CHECK("process-lock", fcntl(fds[2], F_SETLK, &lock));
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    drop(pid);
}

// A lock on what has no name.
static void lock_own_pipe(void)
{
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0 && flock(ends[0], LOCK_EX) == 0);
    tell(ends[0]);
}

static void locked_pipe(void)
{
    pid_t pid = begin(lock_own_pipe);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, hear());
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    REQUIRE(fd >= 0 && hear() == -1);
    CHECK("held", flock(fd, LOCK_EX | LOCK_NB));
    finish(pid);
    CHECK(named("locked-pipe"), flock(fd, LOCK_EX | LOCK_NB));
    close(fd);
    drop(pid);
}

static void send_set(void)
{
    int set = epoll_create1(EPOLL_CLOEXEC), counter = eventfd(1, EFD_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    REQUIRE(set >= 0 && counter >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, counter, &event) == 0);
    send_fd(set);
    int later = eventfd(1, EFD_CLOEXEC);
    REQUIRE(later >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, later, &event) == 0);
}

static void set_outside(void)
{
    pid_t pid = begin(send_set);
    int set = receive_fd();
    REQUIRE(hear() == -1);
    struct epoll_event events[4];
    CHECK("watched", epoll_wait(set, events, 4, 0));
    finish(pid);
    CHECK(named("set-outside"), epoll_wait(set, events, 4, 0));
    close(set);
    drop(pid);
}

static int inherited_set;

static void watch_by_inherited(void)
{
    int counter = eventfd(1, EFD_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    REQUIRE(counter >= 0 && epoll_ctl(inherited_set, EPOLL_CTL_ADD, counter, &event) == 0);
}

static void set_inherited(void)
{
    inherited_set = epoll_create1(0);
    pid_t pid = begin(watch_by_inherited);
    REQUIRE(hear() == -1);
    struct epoll_event events[4];
    CHECK("watched", epoll_wait(inherited_set, events, 4, 0));
    finish(pid);
    CHECK(named("set-inherited"), epoll_wait(inherited_set, events, 4, 0));
    close(inherited_set);
    drop(pid);
}

static void fork_with_pipe(void)
{
    int ends[2];
    REQUIRE(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    send_fd(ends[0]);
    pid_t pid = check_fork();
    if (pid == 0) {
        // It has the writing end until it is told to end; the channel is its parent's.
        close(channel[1]);
        for (;;)
            pause();
    }
    tell(pid);
}

static void grandchild(void)
{
    pid_t pid = begin(fork_with_pipe);
    int fd = receive_fd();
    pid_t other = hear();
    REQUIRE(hear() == -1);
    finish(pid);
    char byte;
    CHECK(named("grandchild-has-it"), read(fd, &byte, 1));
    kill(other, SIGKILL);
    struct pollfd wanted = { fd, POLLIN, 0 };
    REQUIRE(poll(&wanted, 1, -1) == 1);
    CHECK("grandchild-ended", read(fd, &byte, 1));
    close(fd);
    drop(pid);
}

static void open_in_mount(void)
{
    REQUIRE(open("mounted/file", O_RDONLY | O_CLOEXEC) >= 0);
    REQUIRE(open("program", O_WRONLY | O_CLOEXEC) >= 0);
}

static void mounts(void)
{
    mkdir("mounted", 0700);
    REQUIRE(mount("tmpfs", "mounted", "tmpfs", 0, NULL) == 0);
    int file = open("mounted/file", O_RDWR | O_CREAT, 0600), program = open("program", O_WRONLY | O_CREAT, 0700);
    REQUIRE(file >= 0 && program >= 0 && write(program, "no program", 10) == 10);
    close(file);
    close(program);
    pid_t pid = begin(open_in_mount);
    REQUIRE(hear() == -1);
    CHECK("mount-is-busy", umount("mounted"));
    CHECK("is-written", execl("program", "program", NULL));
    finish(pid);
    CHECK(named("unmount"), umount("mounted"));
    CHECK("execute", execl("program", "program", NULL));
    drop(pid);
}

// As much as one process had, another has right behind it: memory, and open files in the system.
static void again(void)
{
    struct rlimit most = { 30100, 30100 };
    REQUIRE(setrlimit(RLIMIT_NOFILE, &most) == 0);
    for (int round = 0; round < 3; round++) {
        pid_t pid = check_fork();
        if (pid == 0) {
            int ends[2], made = 0;
            while (made < 15000 && pipe(ends) == 0)
                made++;
            CHECK("made", made);
            fflush(stdout);
            _exit(0);
        }
        check_wait(pid);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        int runs = -2;
        REQUIRE(write(atoi(argv[1]), &runs, sizeof runs) == sizeof runs);
        for (;;)
            pause();
    }
    for (end = EXIT; end < ENDS; end++) {
        inherited();
        for (is_socket = 0; is_socket < 2; is_socket++)
            for (is_reader = 0; is_reader < 2; is_reader++) {
                const char *name = is_socket ? "sent-socket" : is_reader ? "sent-reader" : "sent-writer";
                sent(name, 0);
                sent("in-flight", 1);
                is_moved = 1;
                sent("moved", 0);
                is_moved = 0;
                is_doubled = 1;
                sent("doubled", 0);
                is_doubled = 0;
            }
        opened_again();
        fifo();
        connected();
        bound();
        locks();
        locked_pipe();
        set_outside();
        set_inherited();
        grandchild();
        mounts();
    }
    again();
    return 0;
}
