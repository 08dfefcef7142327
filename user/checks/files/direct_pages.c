// O_DIRECT in large pieces of whole pages, which a device can bring to the program's memory and take from there: all see the same, and memory that others have stays theirs.
#include "../check.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096
#define PAGES 160
#define SIZE (PAGES * PAGE)
#define MOST (64 * PAGE)

static char content[SIZE + MOST];

int main(void)
{
    for (int i = 0; i < SIZE; i++)
        content[i] = i / 512 * 7 + i;
    int plain = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(plain >= 0 && pwrite(plain, content, SIZE, 0) == SIZE && fdatasync(plain) == 0);
    REQUIRE(fallocate(plain, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 40 * PAGE, 5 * PAGE) == 0);
    memset(content + 40 * PAGE, 0, 5 * PAGE);
    int fd = open("f", O_RDWR | O_DIRECT);
    REQUIRE(fd >= 0);
    char *memory = mmap(NULL, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
    REQUIRE(memory != MAP_FAILED && map != MAP_FAILED);
    static char seen[MOST];
    unsigned seed = 5;
    int wrong = 0;
    for (int round = 0; round < 400; round++) {
        long offset = rand_r(&seed) % PAGES * PAGE, len = (rand_r(&seed) % 64 + 1) * PAGE;
        long there = len < SIZE - offset ? len : SIZE - offset;
        if (round % 5 == 0)
            posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED);
        // Memory that was never touched, or is not there any more.
        if (round % 7 == 0)
            madvise(memory, MOST, MADV_DONTNEED);
        switch (round % 4) {
        case 0:
            memset(memory, round, there);
            wrong += pwrite(fd, memory, there, offset) != there;
            memcpy(content + offset, memory, there);
            break;
        case 1:
            wrong += pread(plain, seen, len, offset) != there || memcmp(seen, content + offset, there) != 0;
            break;
        default:
            wrong += pread(fd, memory, len, offset) != there || memcmp(memory, content + offset, there) != 0;
        }
        if (round % 50 == 0)
            wrong += memcmp(map, content, SIZE) != 0;
    }
    CHECK("wrong", wrong);
    CHECK_TRUE("mapped", memcmp(map, content, SIZE) == 0);
    munmap(map, SIZE);
    posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED);

    // What a child shares since fork(2) is not written over for it.
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    memset(memory, 'm', MOST);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(ends[1]);
        int bad = read(ends[0], &byte, 1) != 0;
        for (long i = 0; i < MOST; i++)
            bad |= memory[i] != 'm';
        _exit(bad);
    }
    CHECK("read", pread(fd, memory, MOST, 50 * PAGE));
    CHECK_TRUE("own", memcmp(memory, content + 50 * PAGE, MOST) == 0);
    close(ends[1]);
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK("of-child", status);

    // Memory that is another file's, and memory that may not be written.
    int other = open("g", O_CREAT | O_RDWR, 0600);
    REQUIRE(other >= 0 && ftruncate(other, MOST) == 0);
    map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
    REQUIRE(map != MAP_FAILED);
    memset(map, 1, MOST);
    CHECK("to-file", pread(fd, map, MOST, 60 * PAGE));
    CHECK("sync", fsync(other));
    CHECK("of-file", pread(other, seen, MOST, 0));
    CHECK_TRUE("same", memcmp(seen, content + 60 * PAGE, MOST) == 0);
    CHECK("from-file", pwrite(fd, map, MOST, 0));
    memcpy(content, map, MOST);
    REQUIRE(mprotect(memory, MOST, PROT_READ) == 0);
    CHECK("not-writable", pread(fd, memory, MOST, 0));
    REQUIRE(mprotect(memory, MOST, PROT_NONE) == 0);
    CHECK("not-readable", pwrite(fd, memory, MOST, 0));

    // What is behind the end, and what is cut off.
    REQUIRE(mprotect(memory, MOST, PROT_READ | PROT_WRITE) == 0);
    memset(memory, 9, MOST);
    CHECK("behind-end", pwrite(fd, memory, MOST, SIZE));
    memcpy(content + SIZE, memory, MOST);
    CHECK("cut", ftruncate(plain, 70 * PAGE));
    CHECK("up-to-end", pread(fd, memory, MOST, 50 * PAGE));
    CHECK_TRUE("what-is-left", memcmp(memory, content + 50 * PAGE, 20 * PAGE) == 0);
    CHECK("longer", ftruncate(plain, SIZE));
    CHECK("zeros", pread(fd, memory, MOST, 60 * PAGE));
    int other_bytes = memcmp(memory, content + 60 * PAGE, 10 * PAGE) != 0;
    for (long i = 10 * PAGE; i < MOST; i++)
        other_bytes |= memory[i] != 0;
    CHECK("other-bytes", other_bytes);
    return 0;
}
