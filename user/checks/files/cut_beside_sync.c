// A mapped file is cut, punched and cleared by one thread while others have it written to its disk, if it is on one: nobody waits for ever.
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

#define SIZE (64 * 4096)

static int fd;
static volatile int is_over;

static void *synchronise(void *unused)
{
    while (!is_over)
        fdatasync(fd);
    return unused;
}

int main(void)
{
    fd = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, SIZE) == 0);
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(map != MAP_FAILED);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, synchronise, NULL) == 0);
    unsigned seed = 1;
    int wrong = 0;
    for (int round = 0; round < 400; round++) {
        memset(map, 1 + round % 100, SIZE);
        // Whole pages and others.
        long start = rand_r(&seed) % (SIZE / 2), len = rand_r(&seed) % 32768 + 1;
        switch (round % 3) {
        case 0:
            wrong += ftruncate(fd, start) != 0 || ftruncate(fd, SIZE) != 0 || map[start] != 0 || map[SIZE - 1] != 0;
            break;
        case 1:
            wrong += fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, len) != 0 || map[start] != 0 || map[start + len - 1] != 0;
            break;
        default:
            start &= -4096;
            wrong += madvise(map + start, 32768, MADV_REMOVE) != 0 || map[start] != 0 || map[start + 32767] != 0;
        }
        wrong += round % 3 != 0 && (map[SIZE - 1] != 1 + round % 100 || (start > 0 && map[start - 1] != 1 + round % 100));
    }
    CHECK("wrong", wrong);
    is_over = 1;
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    return 0;
}
