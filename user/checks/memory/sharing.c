// Memory shared between processes: atomic counters, aliases, files.
#include "../check.h"
#include <stdatomic.h>
#include <sys/mman.h>

int main(void)
{
    atomic_int *counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(counter != MAP_FAILED);
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = check_fork();
        if (pids[i] == 0) {
            for (int j = 0; j < 10000; j++)
                atomic_fetch_add(counter, 1);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++)
        check_wait(pids[i]);
    CHECK("count", atomic_load(counter));
    // Two mappings of one file at different addresses are the same memory.
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(ftruncate(fd, 4096) == 0);
    int *a = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    a[5] = 1234;
    CHECK("aliases", b[5]);
    CHECK_TRUE("distinct-addresses", a != b);
    // A process that opens the file by its name sees the mapped store, and the other way round.
    CHECK_CHILD("by-name", int other = open("f", O_RDWR); int value; REQUIRE(pread(other, &value, 4, 20) == 4);
                value++; REQUIRE(pwrite(other, &value, 4, 20) == 4); _exit(0));
    CHECK("after-child", a[5]);
    // Writing through a mapping moves nothing in size; unmapping keeps the data.
    munmap(a, 4096);
    munmap(b, 4096);
    int value = 0;
    CHECK("on-disk", pread(fd, &value, 4, 20) == 4 ? value : -1);
    CHECK("read-into-own-mapping", (a = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), pread(fd, a + 100, 24, 0)));
    CHECK("copied-within", a[105]);
    CHECK("write-from-own-mapping", pwrite(fd, a, 4096, 4096));
    struct stat st;
    CHECK("grown", fstat(fd, &st) == 0 ? st.st_size : -1);
    return 0;
}
