// F_SEAL_WRITE and mappings that could still write: each way in which one comes, is divided, moves and goes.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096L

static int fd;

static void seal(const char *name)
{
    CHECK(name, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
}

static int file(void)
{
    fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0 && ftruncate(fd, 16 * PAGE) == 0);
    return fd;
}

static char *map(int file, long pages, int prot)
{
    char *p = mmap(NULL, pages * PAGE, prot, MAP_SHARED, file, 0);
    REQUIRE(p != MAP_FAILED);
    return p;
}

static void divided(void)
{
    char *shared = map(file(), 2, PROT_READ | PROT_WRITE);
    shared[0] = 'a';
    seal("busy");
    CHECK("seals", fcntl(fd, F_GET_SEALS));
    CHECK_CHILD("busy-in-child", _exit(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EBUSY ? 3 : 4));
    // Half of it may still write.
    REQUIRE(munmap(shared, PAGE) == 0);
    seal("busy-half");
    REQUIRE(mprotect(shared + PAGE, PAGE, PROT_READ) == 0);
    seal("busy-may-become-writable");
    REQUIRE(munmap(shared + PAGE, PAGE) == 0);
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK_TRUE("private", private != MAP_FAILED);
    seal("sealed");
    CHECK_MAP("shared-writable", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_MAP("private-writable", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    CHECK("write", write(fd, "x", 1));
    CHECK("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
    // The pieces of one that was split, and made one again.
    char *pieces = map(file(), 8, PROT_READ | PROT_WRITE);
    for (int i = 1; i < 8; i += 2)
        REQUIRE(mprotect(pieces + i * PAGE, PAGE, PROT_READ) == 0);
    for (int i = 0; i < 8; i += 2)
        REQUIRE(munmap(pieces + i * PAGE, PAGE) == 0);
    seal("pieces");
    REQUIRE(munmap(pieces, 7 * PAGE) == 0);
    seal("last-piece");
    REQUIRE(munmap(pieces + 7 * PAGE, PAGE) == 0);
    seal("no-piece");
    pieces = map(file(), 8, PROT_READ | PROT_WRITE);
    REQUIRE(mprotect(pieces + 2 * PAGE, PAGE, PROT_READ) == 0 && mprotect(pieces + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    seal("merged");
    REQUIRE(munmap(pieces, 8 * PAGE) == 0);
    seal("merged-gone");
    // Two of one file side by side.
    file();
    char *room = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        REQUIRE(mmap(room + 2 * i * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 2 * i * PAGE) != MAP_FAILED);
    REQUIRE(munmap(room + PAGE, 2 * PAGE) == 0);
    seal("ends");
    REQUIRE(munmap(room, PAGE) == 0);
    seal("one-end");
    REQUIRE(munmap(room + 3 * PAGE, PAGE) == 0);
    seal("no-end");
}

static void moved(void)
{
    char *shared = map(file(), 4, PROT_READ | PROT_WRITE);
    shared = mremap(shared, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    REQUIRE(shared != MAP_FAILED);
    seal("grown");
    char *target = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mremap(shared, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    REQUIRE(shared == target);
    seal("moved");
    shared = mremap(shared, 8 * PAGE, PAGE, 0);
    REQUIRE(shared == target);
    seal("shrunk");
    char *second = mremap(shared, 0, PAGE, MREMAP_MAYMOVE);
    REQUIRE(second != MAP_FAILED && munmap(shared, PAGE) == 0);
    seal("second-view");
    REQUIRE(mmap(second, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == second);
    seal("replaced");
    char *large = map(file(), 16, PROT_READ | PROT_WRITE);
    char *end = mremap(large + 8 * PAGE, 8 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
    REQUIRE(end != MAP_FAILED && munmap(large, 8 * PAGE) == 0);
    seal("moved-half");
    REQUIRE(munmap(end, 12 * PAGE) == 0);
    seal("moved-half-gone");
}

static void inherited(void)
{
    int ready[2], go[2];
    char byte;
    REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
    char *shared = map(file(), 2, PROT_READ | PROT_WRITE);
    pid_t pid = check_fork();
    if (pid == 0) {
        close(go[1]);
        REQUIRE(write(ready[1], "r", 1) == 1);
        read(go[0], &byte, 1);
        _exit(0);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1 && munmap(shared, 2 * PAGE) == 0);
    seal("child-maps");
    REQUIRE(write(go[1], "g", 1) == 1);
    check_wait(pid);
    seal("child-ended");
    shared = map(file(), 2, PROT_READ | PROT_WRITE);
    REQUIRE(madvise(shared, PAGE, MADV_DONTFORK) == 0);
    pid = check_fork();
    if (pid == 0) {
        REQUIRE(munmap(shared + PAGE, PAGE) == 0 && write(ready[1], "r", 1) == 1);
        read(go[0], &byte, 1);
        _exit(0);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1 && munmap(shared, 2 * PAGE) == 0);
    seal("child-unmapped");
    REQUIRE(write(go[1], "g", 1) == 1);
    check_wait(pid);
    shared = map(file(), 2, PROT_READ | PROT_WRITE);
    pid = check_fork();
    if (pid == 0) {
        execl("/proc/self/exe", "self", "wait", NULL);
        _exit(98);
    }
    REQUIRE(munmap(shared, 2 * PAGE) == 0);
    check_wait(pid);
    seal("child-ran-another-program");
    shared = map(file(), 2, PROT_READ | PROT_WRITE);
    pid = check_fork();
    if (pid == 0) {
        REQUIRE(write(ready[1], "r", 1) == 1);
        pause();
    }
    REQUIRE(read(ready[0], &byte, 1) == 1 && munmap(shared, 2 * PAGE) == 0);
    kill(pid, SIGKILL);
    check_wait(pid);
    seal("child-killed");
}

static void described(void)
{
    // By another description, and behind the descriptor's end.
    char path[64];
    file();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int writes = open(path, O_RDWR), reads = open(path, O_RDONLY);
    REQUIRE(writes >= 0 && reads >= 0);
    map(reads, 2, PROT_READ);
    char *shared = map(writes, 2, PROT_READ);
    close(writes);
    seal("another");
    REQUIRE(munmap(shared, 2 * PAGE) == 0);
    seal("only-readers");
    CHECK_MAP("read-only-later", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
    char *read_only = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK("never-writable", mprotect(read_only, PAGE, PROT_READ | PROT_WRITE));
    file();
    shared = map(fd, 1, PROT_READ | PROT_WRITE);
    CHECK("future", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    CHECK_MAP("future-writable", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_MAP("future-read", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
    shared[0] = 'b';
    seal("future-busy");
    REQUIRE(munmap(shared, PAGE) == 0);
    seal("future-then-all");
    // What a mapping shows is still called by its file.
    file();
    map(fd, 1, PROT_READ | PROT_WRITE);
    int maps = open("/proc/self/maps", O_RDONLY), found = 0;
    static char text[65536];
    long length = 0, got;
    while ((got = read(maps, text + length, sizeof text - 1 - length)) > 0)
        length += got;
    for (char *at = text; (at = strstr(at, "rw-s")) != NULL; at++)
        found += strstr(at, "/memfd:sealed (deleted)") != NULL;
    CHECK("in-maps", found);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return 0;
    divided();
    moved();
    inherited();
    CHECK_CHILD("described", described());
    return 0;
}
