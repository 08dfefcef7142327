// O_DIRECT: as much is read and written as there is, wherever in memory, and mappings see the same.
#include "../check.h"
#include <sys/mman.h>

#define SIZE (96 * 4096)

static char content[SIZE];

int main(void)
{
    for (int i = 0; i < SIZE; i++)
        content[i] = i / 512 * 7 + i;
    int plain = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(plain >= 0 && pwrite(plain, content, SIZE, 0) == SIZE && fdatasync(plain) == 0);
    // A hole, and what is only allocated.
    REQUIRE(fallocate(plain, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20 * 4096, 5 * 4096) == 0);
    memset(content + 20 * 4096, 0, 5 * 4096);
    int fd = open("f", O_RDWR | O_DIRECT);
    REQUIRE(fd >= 0);
    char *memory = mmap(NULL, SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    unsigned seed = 3;
    int wrong = 0;
    for (int round = 0; round < 300; round++) {
        long offset = rand_r(&seed) % (SIZE / 512) * 512, len = (rand_r(&seed) % 100 + 1) * 512;
        char *buffer = memory + rand_r(&seed) % 8 * 512;
        long there = len < SIZE - offset ? len : SIZE - offset;
        if (round % 5 == 0)
            posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED);
        if (round % 4 == 3) {
            memset(buffer, round, there);
            wrong += pwrite(fd, buffer, there, offset) != there;
            memcpy(content + offset, buffer, there);
        } else {
            wrong += pread(fd, buffer, len, offset) != there || memcmp(buffer, content + offset, there) != 0;
        }
    }
    CHECK("wrong", wrong);
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
    CHECK_TRUE("mapped", memcmp(map, content, SIZE) == 0);
    CHECK("at-end", pread(fd, memory, 4096, SIZE));
    CHECK("behind-end", pread(fd, memory, 4096, SIZE + 4096));
    return 0;
}
