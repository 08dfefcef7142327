// F_SEAL_WRITE and mappings that could still write.
#include "../check.h"
#include <sys/mman.h>

int main(void)
{
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    REQUIRE(fd >= 0 && ftruncate(fd, 8192) == 0);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(shared != MAP_FAILED);
    shared[0] = 'a';
    CHECK("busy", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    CHECK("seals", fcntl(fd, F_GET_SEALS));
    CHECK_CHILD("busy-in-child", _exit(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EBUSY ? 3 : 4));
    // Half of it may still write.
    REQUIRE(munmap(shared, 4096) == 0);
    CHECK("busy-half", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    REQUIRE(mprotect(shared + 4096, 4096, PROT_READ) == 0);
    CHECK("busy-may-become-writable", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    REQUIRE(munmap(shared + 4096, 4096) == 0);
    char *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK_TRUE("private", private != MAP_FAILED);
    CHECK("sealed", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    CHECK_MAP("shared-writable", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_MAP("private-writable", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    CHECK("write", write(fd, "x", 1));
    CHECK("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    return 0;
}
