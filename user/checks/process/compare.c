// Whether two processes have the same thing, kcmp(2); and what one has open becomes another's, pidfd_getfd(2).
#include "../check.h"
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

enum { FILE_OF_BOTH, MEMORY, FILES, PLACES, ACTIONS, IO_CONTEXT, UNDO_LIST, TYPES = 8 };

// 0: the same; 1: not. (Which of two comes first nobody may rely on.)
static long compare(pid_t one, pid_t other, int what, long of_one, long of_other)
{
    long result = syscall(SYS_kcmp, one, other, what, of_one, of_other);
    return result > 0 ? 1 : result;
}

static int idle(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return 0;
}

static pid_t child_with(int flags)
{
    static char stack[4][16384];
    static int used;
    pid_t child = clone(idle, stack[used++] + sizeof stack[0], flags | SIGCHLD, NULL);
    REQUIRE(child > 0);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void compared(void)
{
    pid_t self = getpid(), separate = child_with(0), shares = child_with(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND);
    int file = open("file", O_CREAT | O_RDWR, 0600), twin = dup(file), other = open("file", O_RDWR);
    pid_t later = child_with(0);
    CHECK("same-file", compare(self, self, FILE_OF_BOTH, file, twin));
    CHECK("opened-twice", compare(self, self, FILE_OF_BOTH, file, other));
    CHECK("inherited", compare(self, later, FILE_OF_BOTH, file, twin));
    CHECK("inherited-other", compare(self, later, FILE_OF_BOTH, file, other));
    CHECK("not-open-there", compare(self, separate, FILE_OF_BOTH, file, file));
    CHECK("path-only", compare(self, self, FILE_OF_BOTH, open(".", O_PATH), file));
    const char *names[] = { "memory", "files", "places", "actions", "io-context", "undo-list" };
    for (int what = MEMORY; what <= UNDO_LIST; what++) {
        char name[64];
        snprintf(name, sizeof name, "%s-of-own", names[what - MEMORY]);
        CHECK(name, compare(self, self, what, 0, 0));
        snprintf(name, sizeof name, "%s-of-sharer", names[what - MEMORY]);
        CHECK(name, compare(self, shares, what, 0, 0));
        snprintf(name, sizeof name, "%s-of-child", names[what - MEMORY]);
        CHECK(name, compare(self, separate, what, 0, 0));
    }
    CHECK("unknown-kind", compare(self, self, TYPES, 0, 0));
    CHECK("negative-kind", compare(self, self, -1, 0, 0));
    CHECK("no-such-process", compare(self, 0x3fffffff, MEMORY, 0, 0));
    CHECK("bad-descriptor", compare(self, self, FILE_OF_BOTH, file, -1));
    end(separate);
    end(shares);
    end(later);
}

static void taken(void)
{
    int ends[2], told[2];
    REQUIRE(pipe(told) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        // With much else that nobody sees.
        for (int i = 0; i < 40; i++)
            REQUIRE(eventfd(0, 0) >= 0);
        REQUIRE(pipe(ends) == 0 && write(ends[1], "hello", 5) == 5);
        if (write(told[1], ends, sizeof ends) != sizeof ends)
            _exit(1);
        for (;;)
            pause();
    }
    REQUIRE(read(told[0], ends, sizeof ends) == sizeof ends);
    int process = (int)syscall(SYS_pidfd_open, child, 0);
    int mine = (int)syscall(SYS_pidfd_getfd, process, ends[0], 0);
    char text[8] = "";
    CHECK_TRUE("taken", mine >= 0);
    CHECK("closes", fcntl(mine, F_GETFD));
    CHECK("is-the-same", compare(getpid(), child, FILE_OF_BOTH, mine, ends[0]));
    CHECK("reads", read(mine, text, 5));
    CHECK_STR("text", text);
    CHECK("not-open", syscall(SYS_pidfd_getfd, process, 500, 0));
    CHECK("negative", syscall(SYS_pidfd_getfd, process, -1, 0));
    CHECK("flags", syscall(SYS_pidfd_getfd, process, 0, 1));
    CHECK("no-process", syscall(SYS_pidfd_getfd, told[0], 0, 0));
    CHECK_CHILD("not-allowed", {
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
            _exit(1);
        CHECK("not-allowed-to-take", syscall(SYS_pidfd_getfd, process, ends[0], 0));
        CHECK("not-allowed-to-compare", compare(getpid(), getppid(), MEMORY, 0, 0));
    });
    REQUIRE(fcntl(mine, F_SETFL, O_NONBLOCK) == 0);
    end(child);
    CHECK("its-end-is-seen", read(mine, text, 1));
    CHECK("of-the-dead", syscall(SYS_pidfd_getfd, process, ends[0], 0));
}

int main(void)
{
    compared();
    taken();
    return 0;
}
