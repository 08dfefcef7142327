// A hole is made of what was just written while others have their files synchronised: a page holds what was written to it, or zeros, and never what the disk held there before.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096
#define PAGES 64
#define JUNK_BYTES (24 << 20)
// With the round in its last byte.
#define WRITTEN 0x7772697474656e00

static volatile struct {
    long wrong, end, rounds[3];
    unsigned long found;
} *shared;

static void fill(char *memory, int pages, unsigned long value)
{
    for (int page = 0; page < pages; page++)
        for (int at = 0; at < PAGE; at += sizeof value)
            memcpy(memory + page * PAGE + at, &value, sizeof value);
}

// Leaves what can be told from everything else in blocks that are free afterwards.
static void leave_junk(char *memory)
{
    int fd = open("junk", O_CREAT | O_RDWR, 0600);
    REQUIRE(fd >= 0);
    fill(memory, PAGES, 0x6a756e6b6a756e6b);
    for (int at = 0; at < JUNK_BYTES; at += PAGES * PAGE)
        REQUIRE(pwrite(fd, memory, PAGES * PAGE, at) == PAGES * PAGE);
    REQUIRE(fsync(fd) == 0 && close(fd) == 0 && unlink("junk") == 0);
}

static void write_and_punch(char *memory)
{
    int fd = open("f", O_RDWR);
    REQUIRE(fd >= 0);
    for (unsigned long round = 1; !shared->end; round++) {
        fill(memory, PAGES, WRITTEN + round % 256);
        REQUIRE(pwrite(fd, memory, PAGES * PAGE, 0) == PAGES * PAGE);
        REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGES * PAGE) == 0);
        shared->rounds[0] = round;
    }
    _exit(0);
}

// With blocks that are new each time, which a commit has to wait for.
static void synchronise(char *memory)
{
    char name[32];
    snprintf(name, sizeof name, "other%d", getpid());
    int fd = open(name, O_CREAT | O_RDWR, 0600);
    REQUIRE(fd >= 0);
    for (unsigned long round = 1; !shared->end; round++) {
        REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, memory, PAGES * PAGE, 0) == PAGES * PAGE && fsync(fd) == 0);
        shared->rounds[1] = round;
    }
    _exit(0);
}

static void look(char *memory)
{
    int fd = open("f", O_RDONLY);
    REQUIRE(fd >= 0);
    for (unsigned long round = 1; !shared->end; round++) {
        REQUIRE(pread(fd, memory, PAGES * PAGE, 0) == PAGES * PAGE);
        for (int page = 0; page < PAGES; page++) {
            unsigned long value;
            memcpy(&value, memory + page * PAGE, sizeof value);
            if (value != 0 && value >> 8 != WRITTEN >> 8) {
                shared->found = value;
                __sync_fetch_and_add(&shared->wrong, 1);
            }
        }
        shared->rounds[2] = round;
    }
    _exit(0);
}

int main(void)
{
    static void (*const tasks[])(char *) = { write_and_punch, synchronise, synchronise, look };
    enum { WORKERS = sizeof tasks / sizeof *tasks };
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED && memory != MAP_FAILED);
    leave_junk(memory);
    int fd = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = check_fork();
        if (workers[i] == 0)
            tasks[i](memory);
    }
    long until = check_now_ms() + 1500;
    while (check_now_ms() < until || shared->rounds[0] < 20 || shared->rounds[1] < 20 || shared->rounds[2] < 20)
        check_sleep_ms(10);
    shared->end = 1;
    for (int i = 0; i < WORKERS; i++) {
        int status;
        REQUIRE(waitpid(workers[i], &status, 0) == workers[i]);
        CHECK("status", status);
    }
    CHECK("pages with something else", shared->wrong);
    check_line("found: %lx\n", shared->found);
    return 0;
}
