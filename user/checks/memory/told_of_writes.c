// A file on a disk must know of each write through a shared mapping, also where the page was there before it could be written.
#include "../check.h"
#include <sys/mman.h>
#include <sys/vfs.h>

enum { PAGE = 4096, PAGES = 6, TMPFS = 0x01021994 };

// What is on the disk: the file's pages are taken out of memory, if they can be.
static int says(int fd, long page, char byte)
{
    check_write_file("/proc/sys/vm/drop_caches", "3");
    char found = 0;
    REQUIRE(pread(fd, &found, 1, page * PAGE) == 1);
    return found == byte;
}

int main(void)
{
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    char zeros[PAGE] = { 0 };
    for (int i = 0; i < PAGES; i++)
        REQUIRE(write(fd, zeros, PAGE) == PAGE);
    REQUIRE(fsync(fd) == 0);
    struct statfs fs;
    REQUIRE(fstatfs(fd, &fs) == 0);
    int has_times = fs.f_type != TMPFS;
    struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    struct stat after;

    // It could be read only, and was.
    volatile char *read_first = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(read_first != MAP_FAILED && read_first[0] == 0 && futimens(fd, old) == 0);
    REQUIRE(mprotect((void *)read_first, PAGE, PROT_READ | PROT_WRITE) == 0);
    read_first[0] = 'a';
    REQUIRE(fstat(fd, &after) == 0);
    CHECK_TRUE("write-after-mprotect-is-a-modification", !has_times || after.st_mtime != 1000);
    REQUIRE(msync((void *)read_first, PAGE, MS_SYNC) == 0 && munmap((void *)read_first, PAGE) == 0);
    CHECK_TRUE("after-mprotect", says(fd, 0, 'a'));

    // It could be written, and was read.
    volatile char *could = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
    REQUIRE(could != MAP_FAILED && futimens(fd, old) == 0);
    char byte = could[0];
    REQUIRE(fstat(fd, &after) == 0);
    CHECK_TRUE("reading-changes-nothing", byte == 0 && after.st_mtime == 1000);
    could[0] = 'b';
    REQUIRE(munmap((void *)could, PAGE) == 0 && fsync(fd) == 0);
    CHECK_TRUE("after-reading", says(fd, 1, 'b'));

    // It was written, could not be any more, and can again.
    volatile char *again = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * PAGE);
    again[0] = 'c';
    REQUIRE(mprotect((void *)again, PAGE, PROT_READ) == 0 && msync((void *)again, PAGE, MS_SYNC) == 0 && again[0] == 'c');
    REQUIRE(mprotect((void *)again, PAGE, PROT_READ | PROT_WRITE) == 0);
    again[1] = 'd';
    REQUIRE(msync((void *)again, PAGE, MS_SYNC) == 0 && munmap((void *)again, PAGE) == 0);
    CHECK_TRUE("first-write", says(fd, 2, 'c'));
    REQUIRE(pread(fd, zeros, 2, 2 * PAGE) == 2);
    CHECK_TRUE("write-after-two-changes", zeros[1] == 'd');

    // A child has the mapping of its parent, who has read.
    volatile char *inherited = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 3 * PAGE);
    REQUIRE(inherited[0] == 0);
    CHECK_CHILD("child", inherited[0] = 'e');
    CHECK_TRUE("parent-sees", inherited[0] == 'e');
    REQUIRE(munmap((void *)inherited, PAGE) == 0 && fsync(fd) == 0);
    CHECK_TRUE("of-a-child", says(fd, 3, 'e'));

    // The kernel writes there for a call.
    volatile char *by_call = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4 * PAGE);
    int ends[2];
    REQUIRE(by_call[0] == 0 && pipe(ends) == 0 && write(ends[1], "f", 1) == 1 && read(ends[0], (void *)by_call, 1) == 1);
    REQUIRE(munmap((void *)by_call, PAGE) == 0 && fsync(fd) == 0);
    CHECK_TRUE("by-a-call", says(fd, 4, 'f'));

    // Another process writes there.
    volatile char *by_memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 5 * PAGE);
    int memory = open("/proc/self/mem", O_RDWR);
    REQUIRE(by_memory[0] == 0 && memory >= 0 && pwrite(memory, "g", 1, (off_t)(uintptr_t)by_memory) == 1);
    REQUIRE(munmap((void *)by_memory, PAGE) == 0 && fsync(fd) == 0);
    CHECK_TRUE("by-proc-mem", says(fd, 5, 'g'));
    return 0;
}
