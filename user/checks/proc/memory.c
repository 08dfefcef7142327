// /proc/PID/mem and /proc/PID/pagemap.
#include "../check.h"
#include <sys/mman.h>

int main(void)
{
    char text[64] = "";
    char *page = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    off_t at = (off_t)page;
    strcpy(page, "first");
    strcpy(page + 8190, "over the edge");
    int fd = open("/proc/self/mem", O_RDWR);
    CHECK_TRUE("mem: opened", fd >= 0);
    struct stat stat;
    REQUIRE(fstat(fd, &stat) == 0);
    CHECK("mem: mode", stat.st_mode & 07777);
    CHECK("mem: read", pread(fd, text, 6, at));
    CHECK_STR("mem: text", text);
    CHECK("mem: read over the edge of a page", pread(fd, text, 14, at + 8190));
    CHECK_STR("mem: text", text);
    CHECK("mem: write", pwrite(fd, "second", 7, at));
    CHECK_STR("mem: written", page);
    CHECK_TRUE("mem: seek", lseek(fd, at, SEEK_SET) == at);
    CHECK("mem: read there", read(fd, text, 3));
    CHECK_TRUE("mem: seek on", lseek(fd, 3, SEEK_CUR) == at + 6);
    CHECK("mem: seek from the end", lseek(fd, 0, SEEK_END));
    REQUIRE(munmap(page + 3 * 4096, 4096) == 0);
    CHECK("mem: read to the end of a mapping", pread(fd, text, 20, at + 3 * 4096 - 10));
    CHECK("mem: read where nothing is", pread(fd, text, 4, at + 3 * 4096));
    CHECK("mem: write where nothing is", pwrite(fd, text, 4, at + 3 * 4096));
    CHECK("mem: read at 0", pread(fd, text, 4, 0));

    // Rights count for the program itself only, and what is shared stays as it is.
    REQUIRE(mprotect(page, 4096, PROT_READ) == 0);
    CHECK("mem: write what is only read", pwrite(fd, "third", 6, at));
    CHECK_STR("mem: written", page);
    REQUIRE(mprotect(page, 4096, PROT_NONE) == 0);
    CHECK("mem: read what may not be read", pread(fd, text, 6, at));
    CHECK_STR("mem: text", text);
    CHECK("mem: read what was never there", pread(fd, text, 6, at + 4096));
    int file = open("file", O_RDWR | O_CREAT, 0644);
    REQUIRE(write(file, "the file's own text", 20) == 20);
    char *private = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    char *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    CHECK("mem: write a private mapping of a file", pwrite(fd, "changed", 7, (off_t)private));
    CHECK_STR("mem: the mapping", private);
    CHECK_STR("mem: the file", shared);
    CHECK("mem: write a shared mapping that is only read", pwrite(fd, "changed", 7, (off_t)shared));
    REQUIRE(madvise(private, 4096, MADV_DONTNEED) == 0);
    CHECK_STR("mem: the mapping anew", private);

    // A child's.
    pid_t child = check_fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/mem", child);
    int of_child = open(name, O_RDWR);
    CHECK("mem: of a child", pwrite(of_child, "child's", 8, at + 8192));
    CHECK_TRUE("mem: not of the parent", strcmp(page + 8192, "child's") != 0);
    CHECK("mem: of a child, read", pread(of_child, text, 8, at + 8192));
    CHECK_STR("mem: text", text);
    kill(child, SIGKILL);
    check_wait(child);
    CHECK("mem: of nobody", pread(of_child, text, 8, at + 8192));
    CHECK_CHILD("mem: of another user's process", {
        snprintf(name, sizeof name, "/proc/%d/mem", getppid());
        REQUIRE(setuid(65534) == 0);
        CHECK("mem: open as another user", open(name, O_RDONLY));
        fflush(stdout);
    });

    // pagemap.
    uint64_t entries[4] = { 0 };
    int map = open("/proc/self/pagemap", O_RDONLY);
    REQUIRE(fstat(map, &stat) == 0);
    CHECK("pagemap: mode", stat.st_mode & 07777);
    char *new = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(madvise(new, 4 * 4096, MADV_NOHUGEPAGE) == 0);
    new[4096] = 1;
    CHECK("pagemap: read", pread(map, entries, sizeof entries, (off_t)new / 4096 * 8));
    for (int i = 0; i < 3; i++)
        CHECK("pagemap: present", entries[i] >> 63);
    CHECK("pagemap: of a file", entries[1] >> 61 & 1);
    CHECK("pagemap: exclusive", entries[1] >> 56 & 1);
    char byte = shared[0];
    (void)byte;
    CHECK("pagemap: a shared page", pread(map, entries, 8, (off_t)shared / 4096 * 8));
    CHECK("pagemap: present", entries[0] >> 63);
    CHECK("pagemap: of a file", entries[0] >> 61 & 1);
    CHECK("pagemap: odd length", pread(map, entries, 12, (off_t)new / 4096 * 8));
    CHECK("pagemap: odd offset", pread(map, entries, 8, (off_t)new / 4096 * 8 + 4));
    CHECK("pagemap: behind the end", pread(map, entries, 8, 1L << 60));
    CHECK("pagemap: write", write(map, entries, 8));
    return 0;
}
