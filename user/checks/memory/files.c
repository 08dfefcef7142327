// File mappings: shared and private, coherence with read and write, offsets, errors.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096

int main(void)
{
    char text[64] = { 0 };
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0 && ftruncate(fd, 3 * PAGE) == 0 && pwrite(fd, "start", 5, 0) == 5 && pwrite(fd, "second", 6, PAGE) == 6);
    char *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *second = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
    REQUIRE(shared != MAP_FAILED && private != MAP_FAILED && second != MAP_FAILED);
    CHECK_STR("content", shared);
    CHECK_STR("with-offset", second);
    memcpy(shared, "START", 5);
    REQUIRE(pread(fd, text, 5, 0) == 5);
    CHECK_STR("read-sees-store", text);
    CHECK_STR("private-sees-store", private);
    REQUIRE(pwrite(fd, "wrote", 5, 0) == 5);
    CHECK_STR("mapping-sees-write", shared);
    memcpy(private, "mine!", 5);
    CHECK_STR("private-own", private);
    CHECK_STR("shared-untouched", shared);
    REQUIRE(pwrite(fd, "again", 5, 0) == 5);
    CHECK_STR("private-keeps-its-copy", private);
    CHECK_CHILD("child-writes-shared", memcpy(shared, "child", 5));
    CHECK_STR("seen-by-parent", shared);
    CHECK_CHILD("child-writes-private", memcpy(private, "child", 5));
    CHECK_STR("not-seen", private);
    CHECK("msync", msync(shared, 2 * PAGE, MS_SYNC));
    CHECK("msync-async", msync(shared, PAGE, MS_ASYNC));
    CHECK("msync-both", msync(shared, PAGE, MS_SYNC | MS_ASYNC));
    CHECK("msync-unaligned", msync(shared + 1, PAGE, MS_SYNC));
    CHECK("msync-unmapped", (munmap(second, PAGE), msync(second, PAGE, MS_SYNC)));
    // The mapping outlives the descriptor and the name.
    close(fd);
    REQUIRE(unlink("f") == 0);
    memcpy(shared, "alive", 5);
    CHECK_STR("after-close", shared);
    check_write_file("g", "read only");
    int read_only = open("g", O_RDONLY), write_only = open("g", O_WRONLY);
    CHECK_MAP("shared-write-on-read-only", mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, read_only, 0));
    CHECK_MAP("private-write-on-read-only", mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE, read_only, 0));
    CHECK_MAP("write-only", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, write_only, 0));
    CHECK_MAP("unaligned-offset", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, read_only, 100));
    CHECK_MAP("past-end", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, read_only, 10 * PAGE));
    CHECK_MAP("directory", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, open(".", O_RDONLY), 0));
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    CHECK_MAP("pipe", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fds[0], 0));
    char *view = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, read_only, 0);
    CHECK("upgrade-refused", mprotect(view, PAGE, PROT_READ | PROT_WRITE));
    CHECK("upgrade-private", mprotect(private, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
    int zeros = 0;
    for (int i = 9; i < PAGE; i++)
        zeros += view[i] == 0;
    CHECK("rest-of-last-page-zero", zeros);
    // /dev/zero gives anonymous memory.
    char *zero = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, open("/dev/zero", O_RDWR), 0);
    CHECK("dev-zero", zero != MAP_FAILED && zero[10] == 0 && (zero[10] = 1));
    return 0;
}
