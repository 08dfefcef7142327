// O_DIRECT in large pieces between a file and memory that shows the same file, or another one, or is shared with another process.
#include "../check.h"
#include <sched.h>
#include <sys/mman.h>

#define PAGE 4096
#define PAGES 96
#define PIECE (32 * PAGE)
#define SIZE (PAGES * PAGE)

static char content[SIZE], seen[SIZE];

static int same(int fd)
{
    return pread(fd, seen, SIZE, 0) == SIZE && memcmp(seen, content, SIZE) == 0;
}

int main(void)
{
    for (int i = 0; i < SIZE; i++)
        content[i] = i / 512 * 7 + i;
    int plain = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(plain >= 0 && pwrite(plain, content, SIZE, 0) == SIZE && fsync(plain) == 0);
    int fd = open("f", O_RDWR | O_DIRECT);
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
    char *copy = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, plain, 0);
    REQUIRE(fd >= 0 && map != MAP_FAILED && copy != MAP_FAILED);

    // To itself, and to where other pages of the same file are.
    CHECK("onto-itself", pread(fd, map, PIECE, 0));
    CHECK_TRUE("as-before", same(plain));
    CHECK("from-itself", pwrite(fd, map, PIECE, 0));
    CHECK_TRUE("as-before-too", same(plain));
    CHECK("elsewhere", pread(fd, map + PIECE, PIECE, 0));
    memcpy(content + PIECE, content, PIECE);
    CHECK_TRUE("copied", same(plain));
    CHECK("from-elsewhere", pwrite(fd, map, PIECE, 2 * PIECE));
    memcpy(content + 2 * PIECE, content, PIECE);
    CHECK_TRUE("copied-back", same(plain));

    // A private copy of the same pages, that was made and that was not.
    for (int touch = 0; touch < 2; touch++) {
        if (touch)
            for (int i = 0; i < PAGES; i++)
                copy[i * PAGE] = 1;
        CHECK("private", pread(fd, copy, PIECE, PIECE));
        CHECK_TRUE("private-is-right", memcmp(copy, content + PIECE, PIECE) == 0);
        CHECK_TRUE("file-is-as-before", same(plain));
    }
    munmap(map, SIZE);
    munmap(copy, SIZE);
    posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED);

    // Memory of which another process has the same pages; and one that writes there meanwhile.
    char *both = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(both != MAP_FAILED);
    memset(both, 3, PIECE);
    pid_t child = check_fork();
    if (child == 0) {
        for (;;)
            for (int i = 0; i < PIECE; i += 64)
                both[i] = 5;
    }
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        wrong += pread(fd, both, PIECE, PIECE) != PIECE;
        for (int at = 1; at < PIECE; at += 64)
            wrong += both[at] != content[PIECE + at];
    }
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, NULL, 0) == child);
    CHECK("shared-wrong", wrong);
    CHECK("shared", pread(fd, both, PIECE, 0));
    CHECK_TRUE("shared-is-right", memcmp(both, content, PIECE) == 0);

    // A child since vfork(2) reads into its parent's memory.
    char *own = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(own != MAP_FAILED);
    memset(own, 1, PIECE);
    child = vfork();
    if (child == 0) {
        long len = syscall(SYS_pread64, fd, own, PIECE, PIECE);
        _exit(len != PIECE);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK("vfork", status);
    CHECK_TRUE("vfork-is-right", memcmp(own, content + PIECE, PIECE) == 0);
    CHECK_TRUE("file", same(plain));
    return 0;
}
