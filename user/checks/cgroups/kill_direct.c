// A group is killed whose members read and write with O_DIRECT: what the device had of their memory is had back, too.
#include "../cgroup.h"
#include <sched.h>
#include <sys/mman.h>

#define PIECE (64 * 4096)
#define PIECES 16

static void work(int number)
{
    char *memory = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open("f", O_RDWR | O_DIRECT);
    if (memory == MAP_FAILED || fd < 0)
        _exit(1);
    memset(memory, number, PIECE);
    for (long at = number;; at++) {
        long offset = at % PIECES * PIECE;
        if ((number & 1 ? pread(fd, memory, PIECE, offset) : pwrite(fd, memory, PIECE, offset)) != PIECE)
            _exit(1);
    }
}

static long free_memory(void)
{
    static char text[4096];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    text[len > 0 ? len : 0] = 0;
    const char *line = strstr(text, "MemFree:");
    return line ? atol(line + 8) : 0;
}

int main(void)
{
    static char bytes[PIECE];
    cgroup_begin();
    int fd = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(fd >= 0);
    for (int i = 0; i < PIECES; i++)
        REQUIRE(write(fd, bytes, PIECE) == PIECE);
    REQUIRE(fsync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    char name[64];
    snprintf(name, sizeof name, "%s", top);
    snprintf(top, sizeof top, "cg");
    DO(put("cgroup.subtree_control", "+memory"));
    snprintf(top, sizeof top, "%s", name);
    DO(put("cgroup.subtree_control", "+memory"));
    int wrong = 0;
    long free_before = 0;
    unsigned seed = 3;
    for (int round = 0; usable && round < 60; round++) {
        wrong += mkdir(at("a"), 0755) != 0;
        int group = open(at("a"), O_RDONLY | O_DIRECTORY);
        pid_t members[4];
        for (int i = 0; i < 4; i++) {
            members[i] = clone_into(group, INTO_CGROUP, 88);
            REQUIRE(members[i] >= 0);
            if (members[i] == 0)
                work(i);
        }
        close(group);
        check_sleep_ms(1 + rand_r(&seed) % 20);
        put("a/cgroup.kill", "1");
        for (int i = 0; i < 4; i++) {
            int status;
            REQUIRE(waitpid(members[i], &status, 0) == members[i]);
            wrong += !WIFSIGNALED(status);
        }
        int tries = 0;
        while (strcmp(get("a/memory.current"), "0") != 0 && ++tries < 5000)
            check_sleep_ms(1);
        wrong += tries == 5000;
        wrong += rmdir(at("a")) != 0;
        if (round == 20)
            free_before = free_memory();
    }
    CHECK("wrong", wrong);
    EXPECT_SOON("the memory is free", free_memory() >= free_before - 2048);
    EXPECT_SOON("none is left", field("cgroup.stat", "nr_descendants") == 0 && field("cgroup.stat", "nr_dying_descendants") == 0);
    close(fd);
    cgroup_end();
    return 0;
}
