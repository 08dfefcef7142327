// Signal-driven input and output: O_ASYNC, F_SETOWN, F_SETOWN_EX, F_SETSIG. All signals are blocked and taken out one by one, so that nothing
// depends on when a handler runs.
#include "../check.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#ifndef F_SETSIG
#define F_SETSIG 10
#define F_GETSIG 11
#endif
#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#define F_GETOWN_EX 16
#endif

struct owner {
    int type;
    int pid;
};

enum { OWNER_TID, OWNER_PID, OWNER_PGRP };

static long control(int fd, int command, long argument)
{
    return syscall(SYS_fcntl, fd, command, argument);
}

// Prints what was sent, in the order in which it is taken; `fd` is told apart from other descriptors.
static void show(const char *name, int fd)
{
    sigset_t all;
    sigfillset(&all);
    siginfo_t info;
    struct timespec none = { 0, 0 };
    char line[512] = "";
    int signal;
    while ((signal = sigtimedwait(&all, &info, &none)) > 0) {
        if (signal == SIGCHLD || signal == SIGALRM || signal == SIGPIPE)
            continue;
        size_t length = strlen(line);
        const char *who = check_signal_name(signal);
        char real[16];
        if (signal >= SIGRTMIN) {
            snprintf(real, sizeof real, "RT+%d", signal - SIGRTMIN);
            who = real;
        }
        if (info.si_code == SI_KERNEL)
            snprintf(line + length, sizeof line - length, " %s kernel", who);
        else
            snprintf(line + length, sizeof line - length, " %s code %d band %lx fd %s", who, info.si_code,
                     (unsigned long)info.si_band, info.si_fd == fd ? "right" : "other");
    }
    check_line("%s:%s\n", name, line[0] ? line : " nothing");
}

// What F_GETOWN says; a group's number is negative and may look like an error to the C library.
static long owner_of(int fd)
{
    long owner = control(fd, F_GETOWN, 0);
    return owner == -1 ? -errno : owner;
}

static void set_async(int fd, int on)
{
    int flags = fcntl(fd, F_GETFL);
    REQUIRE(fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) == 0);
}

static void commands(void)
{
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    struct owner owner = { 77, 77 };
    CHECK("no owner", control(fds[0], F_GETOWN, 0));
    CHECK("no owner_ex", control(fds[0], F_GETOWN_EX, (long)&owner));
    check_line("no owner_ex: type %d pid %d\n", owner.type, owner.pid);
    CHECK("no signal", control(fds[0], F_GETSIG, 0));
    CHECK("set signal 65", control(fds[0], F_SETSIG, 65));
    CHECK("set signal -1", control(fds[0], F_SETSIG, -1));
    CHECK("set signal 64", control(fds[0], F_SETSIG, 64));
    CHECK("signal 64", control(fds[0], F_GETSIG, 0));
    CHECK("set signal 0", control(fds[0], F_SETSIG, 0));
    CHECK("set owner", control(fds[0], F_SETOWN, getpid()));
    CHECK_TRUE("owner", owner_of(fds[0]) == getpid());
    CHECK("get owner_ex", control(fds[0], F_GETOWN_EX, (long)&owner));
    check_line("owner_ex: type %d own %d\n", owner.type, owner.pid == getpid());
    CHECK("set group", control(fds[0], F_SETOWN, -getpgrp()));
    CHECK_TRUE("group", owner_of(fds[0]) == -getpgrp());
    CHECK("get group_ex", control(fds[0], F_GETOWN_EX, (long)&owner));
    check_line("group_ex: type %d own %d\n", owner.type, owner.pid == getpgrp());
    owner = (struct owner){ OWNER_TID, getpid() };
    CHECK("set thread", control(fds[0], F_SETOWN_EX, (long)&owner));
    owner = (struct owner){ 77, 77 };
    CHECK("get thread", control(fds[0], F_GETOWN_EX, (long)&owner));
    check_line("thread: type %d own %d\n", owner.type, owner.pid == getpid());
    CHECK_TRUE("owner of a thread", owner_of(fds[0]) == getpid());
    owner = (struct owner){ 3, getpid() };
    CHECK("bad type", control(fds[0], F_SETOWN_EX, (long)&owner));
    owner = (struct owner){ OWNER_PID, 0x3fffffff };
    CHECK("nobody", control(fds[0], F_SETOWN_EX, (long)&owner));
    owner = (struct owner){ OWNER_PID, -1 };
    CHECK("negative", control(fds[0], F_SETOWN_EX, (long)&owner));
    CHECK("set to nobody", control(fds[0], F_SETOWN, 0x3fffffff));
    CHECK("set to lowest", control(fds[0], F_SETOWN, (int)0x80000000));
    CHECK("set bad pointer", control(fds[0], F_SETOWN_EX, (long)BAD_POINTER));
    CHECK("get bad pointer", control(fds[0], F_GETOWN_EX, (long)BAD_POINTER));
    owner = (struct owner){ OWNER_PGRP, 0 };
    CHECK("take away", control(fds[0], F_SETOWN_EX, (long)&owner));
    CHECK("taken away", control(fds[0], F_GETOWN, 0));
    pid_t child = check_fork();
    if (child == 0)
        _exit(0);
    CHECK("set child", control(fds[0], F_SETOWN, child));
    check_wait(child);
    CHECK("child is gone", control(fds[0], F_GETOWN, 0));
    CHECK("set gone child", control(fds[0], F_SETOWN, child));

    int file = open("file", O_RDWR | O_CREAT, 0644);
    CHECK("async on a file", fcntl(file, F_SETFL, O_ASYNC));
    CHECK_TRUE("file has it", fcntl(file, F_GETFL) & O_ASYNC);
    int on = 1;
    CHECK("ioctl on a file", ioctl(file, FIOASYNC, &on));
    CHECK("owner of a file", control(file, F_SETOWN, getpid()));
    CHECK_TRUE("file's owner", owner_of(file) == getpid());
    close(file);
    file = open("file", O_RDWR | O_ASYNC);
    CHECK_TRUE("opened with it", fcntl(file, F_GETFL) & O_ASYNC);
    close(file);
    CHECK("ioctl on a pipe", ioctl(fds[0], FIOASYNC, &on));
    CHECK_TRUE("pipe has it", fcntl(fds[0], F_GETFL) & O_ASYNC);
    CHECK_TRUE("other end has it", fcntl(fds[1], F_GETFL) & O_ASYNC);
    close(fds[0]);
    close(fds[1]);
}

static void pipes(void)
{
    int fds[2];
    char buffer[16];
    REQUIRE(pipe(fds) == 0);
    set_async(fds[0], 1);
    REQUIRE(write(fds[1], "a", 1) == 1);
    show("no owner", fds[0]);
    REQUIRE(control(fds[0], F_SETOWN, getpid()) == 0);
    show("only an owner", fds[0]);
    REQUIRE(write(fds[1], "b", 1) == 1);
    show("written", fds[0]);
    REQUIRE(control(fds[0], F_SETSIG, SIGRTMIN + 2) == 0);
    REQUIRE(write(fds[1], "c", 1) == 1);
    REQUIRE(write(fds[1], "d", 1) == 1);
    show("written twice", fds[0]);
    REQUIRE(read(fds[0], buffer, 4) == 4);
    show("read", fds[0]);
    REQUIRE(control(fds[0], F_SETSIG, SIGIO) == 0);
    REQUIRE(write(fds[1], "e", 1) == 1);
    show("SIGIO with information", fds[0]);
    REQUIRE(control(fds[0], F_SETSIG, SIGCHLD) == 0);
    REQUIRE(control(fds[0], F_SETSIG, SIGBUS) == 0);
    REQUIRE(write(fds[1], "f", 1) == 1);
    show("a signal with codes of its own", fds[0]);
    REQUIRE(control(fds[0], F_SETSIG, SIGRTMIN) == 0);
    int copy = dup(fds[0]);
    close(fds[0]);
    REQUIRE(write(fds[1], "g", 1) == 1);
    show("first descriptor closed", fds[0]);
    set_async(copy, 0);
    REQUIRE(write(fds[1], "h", 1) == 1);
    show("taken away", copy);
    set_async(copy, 1);
    REQUIRE(write(fds[1], "h", 1) == 1);
    show("set anew", copy);
    REQUIRE(read(copy, buffer, sizeof buffer) == 5);

    REQUIRE(control(fds[1], F_SETOWN, getpid()) == 0);
    REQUIRE(control(fds[1], F_SETSIG, SIGRTMIN + 1) == 0);
    set_async(fds[1], 1);
    REQUIRE(write(fds[1], "ij", 2) == 2);
    show("both ends, written", copy);
    REQUIRE(read(copy, buffer, 1) == 1);
    show("both ends, read", fds[1]);
    close(copy);
    show("reader closed", fds[1]);
    close(fds[1]);

    REQUIRE(pipe(fds) == 0);
    REQUIRE(control(fds[0], F_SETOWN, getpid()) == 0);
    REQUIRE(control(fds[0], F_SETSIG, SIGRTMIN + 1) == 0);
    set_async(fds[0], 1);
    close(fds[1]);
    show("writer closed", fds[0]);
    close(fds[0]);

    REQUIRE(mkfifo("fifo", 0644) == 0);
    int fifo = open("fifo", O_RDWR);
    REQUIRE(control(fifo, F_SETOWN, getpid()) == 0);
    REQUIRE(control(fifo, F_SETSIG, SIGRTMIN + 1) == 0);
    set_async(fifo, 1);
    REQUIRE(write(fifo, "x", 1) == 1);
    show("fifo written", fifo);
    REQUIRE(read(fifo, buffer, 1) == 1);
    show("fifo read", fifo);
    close(fifo);
}

static void processes(void)
{
    int fds[2], ready[2];
    char byte;
    REQUIRE(pipe(fds) == 0 && pipe(ready) == 0);
    REQUIRE(control(fds[0], F_SETOWN, getpid()) == 0);
    REQUIRE(control(fds[0], F_SETSIG, SIGRTMIN) == 0);
    set_async(fds[0], 1);
    CHECK_CHILD("child writes", {
        REQUIRE(write(fds[1], "a", 1) == 1);
        show("child", fds[0]);
    });
    show("parent", fds[0]);
    // A user who may not signal the owner.
    CHECK_CHILD("another user's owner", {
        int own[2];
        REQUIRE(pipe(own) == 0);
        REQUIRE(setresuid(1000, 1000, 1000) == 0);
        CHECK("set", control(own[0], F_SETOWN, getppid()));
        REQUIRE(control(own[0], F_SETSIG, SIGRTMIN + 3) == 0);
        set_async(own[0], 1);
        REQUIRE(write(own[1], "a", 1) == 1);
    });
    show("parent got nothing", fds[0]);
    // The rights are those of who set the owner, not of who writes.
    CHECK_CHILD("root's owner", {
        REQUIRE(setresuid(1000, 1000, 1000) == 0);
        REQUIRE(write(fds[1], "a", 1) == 1);
    });
    show("parent of root's", fds[0]);
    // A group.
    struct owner group = { OWNER_PGRP, 0 };
    pid_t child = check_fork();
    if (child == 0) {
        REQUIRE(setpgid(0, 0) == 0);
        REQUIRE(write(ready[1], "r", 1) == 1);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGRTMIN);
        REQUIRE(sigwaitinfo(&set, NULL) == SIGRTMIN);
        _exit(7);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    group.pid = child;
    CHECK("set group", control(fds[0], F_SETOWN_EX, (long)&group));
    REQUIRE(write(fds[1], "a", 1) == 1);
    CHECK_STATUS("group's child", check_wait(child));
    show("not of the group", fds[0]);
    CHECK("group is gone", control(fds[0], F_GETOWN, 0));
    // The last description's end ends it.
    REQUIRE(control(fds[0], F_SETOWN, getpid()) == 0);
    close(fds[0]);
    CHECK("no reader", write(fds[1], "a", 1));
    show("closed", fds[0]);
    close(fds[1]);
}

static void sockets(void)
{
    int pair[2], pid = getpid(), got = 0;
    char buffer[16];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK("FIOSETOWN", ioctl(pair[0], 0x8901, &pid));
    CHECK_TRUE("set", owner_of(pair[0]) == pid);
    pid = -getpgrp();
    CHECK("SIOCSPGRP", ioctl(pair[0], 0x8902, &pid));
    CHECK("FIOGETOWN", ioctl(pair[0], 0x8903, &got));
    CHECK_TRUE("group", got == pid);
    CHECK("SIOCGPGRP", ioctl(pair[0], 0x8904, &got));
    CHECK_TRUE("group again", got == pid);
    REQUIRE(control(pair[0], F_SETOWN, getpid()) == 0);
    REQUIRE(control(pair[0], F_SETSIG, SIGRTMIN) == 0);
    set_async(pair[0], 1);
    REQUIRE(write(pair[1], "ab", 2) == 2);
    show("stream written", pair[0]);
    REQUIRE(read(pair[0], buffer, 1) == 1);
    REQUIRE(send(pair[0], "c", 1, 0) == 1);
    REQUIRE(read(pair[1], buffer, 1) == 1);
    show("stream read", pair[0]);
    REQUIRE(fcntl(pair[0], F_SETFL, fcntl(pair[0], F_GETFL) | O_NONBLOCK) == 0);
    static char much[4096];
    while (write(pair[0], much, sizeof much) > 0)
        ;
    REQUIRE(errno == EAGAIN);
    show("stream full", pair[0]);
    REQUIRE(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
    while (read(pair[1], much, sizeof much) > 0)
        ;
    REQUIRE(errno == EAGAIN);
    show("stream drained", pair[0]);
    REQUIRE(shutdown(pair[1], SHUT_WR) == 0);
    show("stream shut down", pair[0]);
    close(pair[1]);
    show("stream closed", pair[0]);
    close(pair[0]);

    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    REQUIRE(control(pair[0], F_SETOWN, getpid()) == 0);
    REQUIRE(control(pair[0], F_SETSIG, SIGRTMIN) == 0);
    int on = 1;
    CHECK("FIOASYNC", ioctl(pair[0], FIOASYNC, &on));
    REQUIRE(write(pair[1], "ab", 2) == 2);
    show("datagram", pair[0]);
    close(pair[0]);
    close(pair[1]);

    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { AF_UNIX, "socket" };
    REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    REQUIRE(listen(listener, 4) == 0);
    REQUIRE(control(listener, F_SETOWN, getpid()) == 0);
    REQUIRE(control(listener, F_SETSIG, SIGRTMIN) == 0);
    set_async(listener, 1);
    REQUIRE(connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    show("connected", listener);
    close(client);
    close(listener);
}

static void terminals(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    REQUIRE(control(slave, F_SETSIG, SIGRTMIN) == 0);
    set_async(slave, 1);
    CHECK_TRUE("terminal's owner is who set it", owner_of(slave) == getpid());
    struct pollfd wait = { slave, POLLIN, 0 };
    REQUIRE(write(master, "a", 1) == 1);
    REQUIRE(write(master, "b\n", 2) == 2);
    REQUIRE(poll(&wait, 1, -1) == 1);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    siginfo_t info;
    REQUIRE(sigwaitinfo(&set, &info) == SIGRTMIN);
    check_line("line: code %d band %lx fd %d\n", info.si_code, (unsigned long)info.si_band, info.si_fd == slave);
    show("one line, one signal", slave);
    close(slave);
    close(master);
}

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    commands();
    pipes();
    processes();
    sockets();
    terminals();
    return 0;
}
