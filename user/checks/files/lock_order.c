// Record locks: which lock F_GETLK tells, deadlocks, many locks, and what ends them.
#include "../check.h"
#include <sys/file.h>
#include <sys/mman.h>

static int set(int fd, int command, short type, off_t start, off_t length)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
    return fcntl(fd, command, &lock);
}

static void tell(const char *name, int fd, short type, off_t start, off_t length)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
    if (fcntl(fd, F_GETLK, &lock) == -1)
        check_line("%s: -1 %s\n", name, check_errno_name(errno));
    else if (lock.l_type == F_UNLCK)
        check_line("%s: free\n", name);
    else
        check_line("%s: %s %ld+%ld\n", name, lock.l_type == F_RDLCK ? "read" : "write", (long)lock.l_start,
                   (long)lock.l_len);
}

int main(int count, char **arguments)
{
    char byte;
    if (count == 2 && strcmp(arguments[1], "sleeper") == 0)
        _exit(write(50, "r", 1) == 1 && read(51, &byte, 1) == 1 ? 5 : 6);
    check_write_file("f", "0123456789");
    int fd = open("f", O_RDWR);
    REQUIRE(fd >= 0);
    // Set in descending order: the lowest that is in the way is told.
    CHECK("high", set(fd, F_SETLK, F_WRLCK, 20, 5));
    CHECK("middle", set(fd, F_SETLK, F_RDLCK, 10, 5));
    CHECK("low", set(fd, F_SETLK, F_WRLCK, 0, 5));
    CHECK_CHILD("told", tell("all", fd, F_WRLCK, 0, 0); tell("from-3", fd, F_RDLCK, 3, 100);
                tell("from-5", fd, F_WRLCK, 5, 100); tell("read-from-5", fd, F_RDLCK, 5, 100);
                tell("gap", fd, F_WRLCK, 5, 5); tell("behind", fd, F_WRLCK, 25, 0));
    CHECK("split", set(fd, F_SETLK, F_UNLCK, 22, 1));
    CHECK("change-kind", set(fd, F_SETLK, F_WRLCK, 12, 1));
    CHECK("join", set(fd, F_SETLK, F_WRLCK, 5, 5));
    CHECK_CHILD("told-again", tell("joined", fd, F_RDLCK, 0, 0); tell("upper", fd, F_RDLCK, 12, 0);
                tell("left", fd, F_WRLCK, 13, 0); tell("cut", fd, F_RDLCK, 13, 0); tell("rest", fd, F_RDLCK, 22, 0));
    CHECK("all-gone", set(fd, F_SETLK, F_UNLCK, 0, 0));
    CHECK_CHILD("told-nothing", tell("nothing", fd, F_WRLCK, 0, 0));

    // Many locks of one process, every other byte.
    int failed = 0;
    for (int i = 0; i < 4000; i++)
        failed += set(fd, F_SETLK, i % 2 ? F_WRLCK : F_RDLCK, (off_t)(i * 7919 % 4000) * 2, 1) != 0;
    CHECK("many-failed", failed);
    CHECK_CHILD("among-many", tell("first-of-many", fd, F_WRLCK, 0, 0); tell("in-the-middle", fd, F_WRLCK, 4001, 0);
                tell("between", fd, F_WRLCK, 4001, 1));
    CHECK("many-gone", set(fd, F_SETLK, F_UNLCK, 0, 0));

    // Most of very many go at once, for nothing or for one lock in their place; others see all of it or nothing.
    failed = 0;
    for (int i = 0; i < 12000; i++)
        failed += set(fd, F_SETLK, F_WRLCK, (off_t)i * 2, 1) != 0;
    CHECK("very-many-failed", failed);
    CHECK("range-of-many", set(fd, F_SETLK, F_UNLCK, 2000, 10000));
    CHECK_CHILD("beside-the-range", tell("free-now", fd, F_WRLCK, 1999, 10001); tell("below", fd, F_WRLCK, 1998, 0);
                tell("above", fd, F_WRLCK, 2000, 0));
    CHECK("one-for-many", set(fd, F_SETLK, F_RDLCK, 12001, 11000));
    CHECK_CHILD("beside-the-one", tell("one", fd, F_WRLCK, 12001, 0); tell("behind-one", fd, F_RDLCK, 12001, 0);
                tell("shared", fd, F_RDLCK, 12001, 11000); tell("at-its-edge", fd, F_RDLCK, 12000, 2));
    CHECK("close-ends-all", close(open("f", O_RDONLY)));
    CHECK_CHILD("after-close", tell("none", fd, F_WRLCK, 0, 0));

    // Very many descriptions share a lock on the whole file, and are gone.
    CHECK_CHILD("shared-by-many", alarm(0); for (int i = 0; i < 900; i++) if (flock(open("f", O_RDONLY), LOCK_SH)) _exit(1);
                _exit(flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK ? 5 : 6));
    CHECK("shared-by-none", flock(fd, LOCK_EX | LOCK_NB));
    CHECK("whole-released", flock(fd, LOCK_UN));

    // Locks of processes that are gone count for nothing, however many they were.
    for (int round = 0; round < 4; round++)
        CHECK_CHILD("dead-owner", alarm(0); for (int i = 0; i < 3000; i++) if (set(fd, F_SETLK, F_WRLCK, i * 2, 1)) _exit(1));
    CHECK("after-the-dead", set(fd, F_SETLK, F_WRLCK, 0, 0));
    CHECK("free-again", set(fd, F_SETLK, F_UNLCK, 0, 0));

    // Two processes that wait for each other: the second is told.
    int ready[2], go[2];
    REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
    CHECK("mine", set(fd, F_SETLK, F_WRLCK, 0, 1));
    pid_t child = check_fork();
    if (child == 0) {
        REQUIRE(set(fd, F_SETLK, F_WRLCK, 1, 1) == 0 && write(ready[1], "r", 1) == 1);
        int waited = set(fd, F_SETLKW, F_WRLCK, 0, 1);
        _exit(waited == 0 ? 3 : 4);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    // Until the child waits there is no deadlock.
    for (;;) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
        const char *state = strrchr(check_read_file(path), ')');
        REQUIRE(state != NULL);
        if (state[2] == 'S')
            break;
        check_sleep_ms(1);
    }
    CHECK("deadlock", set(fd, F_SETLKW, F_WRLCK, 1, 1));
    CHECK("mine-released", set(fd, F_SETLK, F_UNLCK, 0, 1));
    CHECK_STATUS("child", check_wait(child));
    CHECK("wait-over", set(fd, F_SETLKW, F_WRLCK, 0, 2));

    // Exec closes what is marked, and that ends the process's record locks on the file.
    child = check_fork();
    if (child == 0) {
        int marked = open("f", O_RDWR | O_CLOEXEC), other = open("f", O_RDWR);
        REQUIRE(marked >= 0 && other >= 0 && set(other, F_SETLK, F_WRLCK, 100, 10) == 0);
        REQUIRE(dup2(ready[1], 50) == 50 && dup2(go[0], 51) == 51);
        execl("/proc/self/exe", "lock_order", "sleeper", NULL);
        _exit(7);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    tell("after-exec", fd, F_WRLCK, 100, 10);
    REQUIRE(write(go[1], "g", 1) == 1);
    CHECK_STATUS("sleeper", check_wait(child));
    return 0;
}
