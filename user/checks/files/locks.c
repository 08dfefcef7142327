// flock and fcntl record locks between processes.
#include "../check.h"
#include <sys/file.h>

static int try_lock(int fd, short type, off_t start, off_t length)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
    return fcntl(fd, F_SETLK, &lock);
}

int main(void)
{
    check_write_file("f", "0123456789");
    int a = open("f", O_RDWR), b = open("f", O_RDWR);
    REQUIRE(a >= 0 && b >= 0);
    CHECK("flock-shared", flock(a, LOCK_SH));
    CHECK("flock-shared-twice", flock(b, LOCK_SH | LOCK_NB));
    CHECK("flock-exclusive-busy", flock(b, LOCK_EX | LOCK_NB));
    CHECK("flock-unlock", flock(a, LOCK_UN));
    CHECK("flock-upgrade", flock(b, LOCK_EX | LOCK_NB));
    CHECK("flock-busy", flock(a, LOCK_SH | LOCK_NB));
    int copy = dup(b);
    close(b);
    CHECK("flock-survives-close-of-copy", flock(a, LOCK_SH | LOCK_NB));
    close(copy);
    CHECK("flock-released-by-last-close", flock(a, LOCK_EX | LOCK_NB));
    CHECK("flock-invalid", flock(a, 77));
    CHECK("flock-done", flock(a, LOCK_UN));

    CHECK("record-write", try_lock(a, F_WRLCK, 0, 5));
    CHECK("record-again", try_lock(a, F_WRLCK, 0, 3));
    CHECK_CHILD("record-busy-in-child", int fd = open("f", O_RDWR); int r = try_lock(fd, F_RDLCK, 2, 1);
                _exit(r == -1 && (errno == EAGAIN || errno == EACCES) ? 5 : 6));
    CHECK_CHILD("record-free-range", int fd = open("f", O_RDWR); _exit(try_lock(fd, F_WRLCK, 5, 0) == 0 ? 5 : 6));
    CHECK_CHILD("record-query", int fd = open("f", O_RDWR);
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 4, .l_len = 10 };
                REQUIRE(fcntl(fd, F_GETLK, &lock) == 0);
                _exit(lock.l_type == F_WRLCK && lock.l_pid == getppid() && lock.l_start == 0 && lock.l_len == 5 ? 5 : 6));
    CHECK("record-split", try_lock(a, F_UNLCK, 1, 1));
    CHECK_CHILD("record-hole-free", int fd = open("f", O_RDWR); _exit(try_lock(fd, F_WRLCK, 1, 1) == 0 ? 5 : 6));
    CHECK_CHILD("record-rest-held", int fd = open("f", O_RDWR); _exit(try_lock(fd, F_WRLCK, 2, 1) == 0 ? 5 : 6));
    // Closing any descriptor of the file drops the process's record locks.
    int other = open("f", O_RDONLY);
    close(other);
    CHECK_CHILD("record-dropped-by-any-close", int fd = open("f", O_RDWR); _exit(try_lock(fd, F_WRLCK, 0, 0) == 0 ? 5 : 6));
    int read_only = open("f", O_RDONLY);
    CHECK("record-write-on-read-only", try_lock(read_only, F_WRLCK, 0, 1));
    CHECK("record-bad-type", try_lock(a, 9, 0, 1));
    struct flock bad = { .l_type = F_RDLCK, .l_whence = 9 };
    CHECK("record-bad-whence", fcntl(a, F_SETLK, &bad));

    // A blocked lock is granted when its holder ends.
    char c;
    int ready[2], go[2];
    REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
    pid_t holder = check_fork();
    if (holder == 0) {
        int fd = open("f", O_RDWR);
        REQUIRE(try_lock(fd, F_WRLCK, 0, 0) == 0 && write(ready[1], "r", 1) == 1 && read(go[0], &c, 1) == 1);
        check_sleep_ms(30);
        _exit(0);
    }
    REQUIRE(read(ready[0], &c, 1) == 1);
    CHECK("record-held", try_lock(a, F_WRLCK, 0, 1));
    REQUIRE(write(go[1], "g", 1) == 1);
    struct flock wait = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    CHECK("record-waits", fcntl(a, F_SETLKW, &wait));
    check_wait(holder);
    return 0;
}
