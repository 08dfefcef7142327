// Leases: F_SETLEASE, F_GETLEASE, and what opening and truncating a file of which somebody has one does.
#include "../check.h"
#include <poll.h>

static sigset_t io;

static const char *kind(int fd)
{
    switch (fcntl(fd, F_GETLEASE)) {
    case F_RDLCK: return "read";
    case F_WRLCK: return "write";
    case F_UNLCK: return "none";
    default: return "error";
    }
}

// Whether SIGIO (or what `number` says) comes.
static int is_told(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    siginfo_t info;
    return sigwaitinfo(&set, &info) == number;
}

static int is_pending(int number)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, number);
}

// A child opens the file and says so; it may have to wait for that.
static pid_t opens(int flags, int ends[2])
{
    REQUIRE(pipe(ends) == 0);
    pid_t pid = check_fork();
    if (pid == 0) {
        int fd = flags == -1 ? truncate("file", 0) : open("file", flags);
        REQUIRE(write(ends[1], "x", 1) == 1);
        _exit(fd >= 0 ? 0 : 1);
    }
    return pid;
}

static int has_opened(int ends[2])
{
    struct pollfd poll_fd = { ends[0], POLLIN, 0 };
    return poll(&poll_fd, 1, 0) == 1;
}

static void lets_in(const char *what, int has, int flags, int keeps)
{
    int ends[2];
    char text[96];
    int fd = open("file", O_RDONLY);
    REQUIRE(fd >= 0);
    snprintf(text, sizeof text, "%s: lease", what);
    CHECK(text, fcntl(fd, F_SETLEASE, has));
    pid_t pid = opens(flags, ends);
    snprintf(text, sizeof text, "%s: told", what);
    CHECK_TRUE(text, is_told(SIGIO));
    snprintf(text, sizeof text, "%s: what is left", what);
    CHECK_STR(text, kind(fd));
    snprintf(text, sizeof text, "%s: waits", what);
    CHECK_TRUE(text, !has_opened(ends));
    snprintf(text, sizeof text, "%s: gives it up", what);
    CHECK(text, fcntl(fd, F_SETLEASE, keeps));
    snprintf(text, sizeof text, "%s: the other goes on", what);
    CHECK_STATUS(text, check_wait(pid));
    snprintf(text, sizeof text, "%s: kept", what);
    CHECK_STR(text, kind(fd));
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    alarm(280);
    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    sigaddset(&io, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &io, NULL);
    int fd = open("file", O_RDWR | O_CREAT, 0644);
    int ends[2];
    REQUIRE(fd >= 0 && pipe(ends) == 0);

    CHECK_STR("none at first", kind(fd));
    CHECK("none to take away", fcntl(fd, F_SETLEASE, F_UNLCK));
    CHECK("of no kind", fcntl(fd, F_SETLEASE, 17));
    CHECK("of a pipe", fcntl(ends[0], F_SETLEASE, F_RDLCK));
    int directory = open(".", O_RDONLY);
    CHECK("of a directory", fcntl(directory, F_SETLEASE, F_RDLCK));
    int place = open("file", O_PATH);
    CHECK("of a place", fcntl(place, F_SETLEASE, F_RDLCK));
    CHECK("to read, open for writing", fcntl(fd, F_SETLEASE, F_RDLCK));
    CHECK("to write, open once", fcntl(fd, F_SETLEASE, F_WRLCK));
    CHECK_STR("it is", kind(fd));
    int same = dup(fd);
    CHECK_STR("the same by another descriptor", kind(same));
    CHECK("taken away by that", fcntl(same, F_SETLEASE, F_UNLCK));
    CHECK_STR("it is", kind(fd));
    close(same);
    int other = open("file", O_RDONLY);
    CHECK("to write, open twice", fcntl(fd, F_SETLEASE, F_WRLCK));
    close(fd);
    CHECK("to read", fcntl(other, F_SETLEASE, F_RDLCK));
    CHECK("owner", fcntl(other, F_GETOWN) == getpid());
    int third = open("file", O_RDONLY);
    CHECK("to read, a second one", fcntl(third, F_SETLEASE, F_RDLCK));
    CHECK("to write, another has one", fcntl(third, F_SETLEASE, F_WRLCK));
    CHECK("open for writing at once", open("file", O_WRONLY | O_NONBLOCK));
    CHECK_TRUE("told", is_told(SIGIO));
    CHECK_STR("left of the first", kind(other));
    CHECK_STR("left of the second", kind(third));
    int late = open("file", O_RDONLY);
    CHECK("no new one meanwhile", fcntl(late, F_SETLEASE, F_RDLCK));
    close(late);
    CHECK("the first gives it up", fcntl(other, F_SETLEASE, F_UNLCK));
    CHECK("owner", fcntl(other, F_GETOWN));
    CHECK("open for writing at once", open("file", O_WRONLY | O_NONBLOCK));
    CHECK_TRUE("not told again", !is_pending(SIGIO));
    close(third);
    fd = open("file", O_WRONLY | O_NONBLOCK);
    CHECK_TRUE("open for writing, the second is closed", fd >= 0);
    close(fd);
    close(other);

    int fresh = open("fresh", O_RDONLY | O_CREAT, 0644);
    CHECK("to write, open for reading once", fcntl(fresh, F_SETLEASE, F_WRLCK));
    CHECK("downgrade", fcntl(fresh, F_SETLEASE, F_RDLCK));
    CHECK_STR("it is", kind(fresh));
    CHECK("upgrade", fcntl(fresh, F_SETLEASE, F_WRLCK));
    CHECK_STR("it is", kind(fresh));
    CHECK("open for reading at once", open("fresh", O_RDONLY | O_NONBLOCK));
    CHECK_TRUE("told", is_told(SIGIO));
    CHECK_STR("left", kind(fresh));
    CHECK("downgrade", fcntl(fresh, F_SETLEASE, F_RDLCK));
    CHECK_STR("it is", kind(fresh));
    CHECK_TRUE("open for reading", (other = open("fresh", O_RDONLY | O_NONBLOCK)) >= 0);
    close(other);

    // A signal of one's own, with the descriptor.
    CHECK("F_SETSIG", fcntl(fresh, F_SETSIG, SIGRTMIN));
    CHECK("open for writing at once", open("fresh", O_RDWR | O_NONBLOCK));
    siginfo_t info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    REQUIRE(sigwaitinfo(&set, &info) == SIGRTMIN);
    CHECK_TRUE("told of the descriptor", info.si_fd == fresh && info.si_code == POLL_MSG);
    CHECK("F_UNLCK", fcntl(fresh, F_SETLEASE, F_UNLCK));
    CHECK("F_GETSIG", fcntl(fresh, F_GETSIG));
    close(fresh);

    lets_in("a reader, write lease, downgraded", F_WRLCK, O_RDONLY, F_RDLCK);
    lets_in("a reader, write lease, given up", F_WRLCK, O_RDONLY, F_UNLCK);
    lets_in("a writer, write lease", F_WRLCK, O_WRONLY, F_UNLCK);
    lets_in("a reader and writer, read lease", F_RDLCK, O_RDWR, F_UNLCK);
    lets_in("truncating, write lease", F_WRLCK, -1, F_UNLCK);
    lets_in("truncating, read lease", F_RDLCK, -1, F_UNLCK);

    // The end of who has it lets the other go on, too.
    int ready[2], waits[2];
    REQUIRE(pipe(ready) == 0);
    pid_t holder = check_fork();
    if (holder == 0) {
        fd = open("file", O_RDONLY);
        REQUIRE(fcntl(fd, F_SETLEASE, F_RDLCK) == 0 && write(ready[1], "x", 1) == 1);
        is_told(SIGIO);
        REQUIRE(write(ready[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    pid_t pid = opens(O_WRONLY, waits);
    REQUIRE(read(ready[0], &byte, 1) == 1);
    CHECK_TRUE("waits for a process", !has_opened(waits));
    kill(holder, SIGKILL);
    check_wait(holder);
    CHECK_STATUS("goes on when that has ended", check_wait(pid));

    // A signal ends the wait.
    fd = open("file", O_RDONLY);
    CHECK("a lease", fcntl(fd, F_SETLEASE, F_RDLCK));
    pid = opens(O_WRONLY, ends);
    is_told(SIGIO);
    kill(pid, SIGTERM);
    CHECK_STATUS("who waits can be ended", check_wait(pid));
    CHECK("given up", fcntl(fd, F_SETLEASE, F_UNLCK));

    CHECK_CHILD("another user's file", {
        REQUIRE(setuid(65534) == 0);
        CHECK("not without CAP_LEASE", fcntl(fd, F_SETLEASE, F_RDLCK));
        fflush(stdout);
    });
    char text[16] = "";
    int setting = open("/proc/sys/fs/leases-enable", O_RDONLY);
    CHECK("leases-enable", read(setting, text, sizeof text - 1));
    setting = open("/proc/sys/fs/lease-break-time", O_RDONLY);
    CHECK_TRUE("lease-break-time", read(setting, text, sizeof text - 1) > 0);
    return 0;
}
