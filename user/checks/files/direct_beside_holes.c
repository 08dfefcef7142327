// O_DIRECT in large pieces beside writes, holes and cuts of the same file, and another file that gets the blocks: a page holds what was written to that page of that file, or zeros.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096
#define PAGES 256
#define PIECE 32

enum { READ_DIRECT, READ, READ_MAPPED, WRITE_DIRECT, WRITE, HOLES, CUTS, OTHER_FILE, KINDS };

static volatile struct {
    long wrong, rounds[KINDS], end;
    // What went wrong first.
    long first_kind, first_result, first_error;
    unsigned long found, wanted;
} *shared;

static long stamp(int file, long page, int end)
{
    return 0x5ebb000000000000 + ((long)file << 40) + (page << 8) + end;
}

static void fill(char *memory, int file, long first, long count)
{
    for (long i = 0; i < count; i++)
        for (int end = 0; end < 2; end++) {
            long value = stamp(file, first + i, end);
            memcpy(memory + i * PAGE + end * (PAGE - sizeof value), &value, sizeof value);
        }
}

static int is_wrong(const char *memory, int file, long first, long count)
{
    int wrong = 0;
    for (long i = 0; i < count; i++)
        for (int end = 0; end < 2; end++) {
            long value;
            memcpy(&value, memory + i * PAGE + end * (PAGE - sizeof value), sizeof value);
            if (value != 0 && value != stamp(file, first + i, end) && wrong++ == 0 && shared->found == 0) {
                shared->found = value;
                shared->wanted = stamp(file, first + i, end);
            }
        }
    return wrong;
}

static void work(int kind, unsigned seed)
{
    char *memory = mmap(NULL, PIECE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = kind == OTHER_FILE;
    int fd = open(file ? "g" : "f", O_RDWR | (kind == READ_DIRECT || kind == WRITE_DIRECT ? O_DIRECT : 0));
    REQUIRE(memory != MAP_FAILED && fd >= 0);
    memset(memory, 0, PIECE * PAGE);
    while (!shared->end) {
        long first = rand_r(&seed) % (PAGES - PIECE), count = 16 + rand_r(&seed) % (PIECE - 15);
        long wrong = 0, done = 0;
        errno = 0;
        switch (kind) {
        case READ_DIRECT:
        case READ:
            done = pread(fd, memory, count * PAGE, first * PAGE);
            wrong = done < 0 || is_wrong(memory, file, first, done / PAGE);
            break;
        case READ_MAPPED: {
            // Pages behind the end are not touched: they are read by a call.
            char *map = mmap(NULL, count * PAGE, PROT_READ, MAP_SHARED, fd, first * PAGE);
            int ends[2];
            REQUIRE(map != MAP_FAILED && pipe(ends) == 0);
            done = write(ends[1], map, PIECE / 2 * PAGE);
            if (done > 0)
                done = read(ends[0], memory, done);
            wrong = done > 0 && is_wrong(memory, file, first, done / PAGE);
            close(ends[0]);
            close(ends[1]);
            munmap(map, count * PAGE);
            break;
        }
        case WRITE_DIRECT:
        case WRITE:
            fill(memory, file, first, count);
            done = pwrite(fd, memory, count * PAGE, first * PAGE);
            wrong = done != count * PAGE;
            break;
        case HOLES:
            wrong = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first * PAGE, count * PAGE) != 0;
            break;
        case CUTS:
            wrong = ftruncate(fd, first * PAGE) != 0 || ftruncate(fd, PAGES * PAGE) != 0;
            check_sleep_ms(1);
            break;
        case OTHER_FILE:
            fill(memory, file, first, count);
            done = pwrite(fd, memory, count * PAGE, first * PAGE);
            wrong = done != count * PAGE;
            if (rand_r(&seed) % 4 == 0)
                wrong |= ftruncate(fd, 0) != 0;
            break;
        }
        if (wrong && __sync_fetch_and_add(&shared->wrong, 1) == 0) {
            shared->first_kind = kind;
            shared->first_result = done;
            shared->first_error = errno;
        }
        __sync_fetch_and_add(&shared->rounds[kind], 1);
    }
    _exit(0);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    for (int file = 0; file < 2; file++) {
        int fd = open(file ? "g" : "f", O_CREAT | O_RDWR, 0600);
        REQUIRE(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
        close(fd);
    }
    static const int kinds[] = { READ_DIRECT, READ_DIRECT, READ, READ_MAPPED, WRITE_DIRECT, WRITE, HOLES, CUTS, OTHER_FILE };
    enum { COUNT = sizeof kinds / sizeof *kinds };
    pid_t workers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        workers[i] = check_fork();
        if (workers[i] == 0)
            work(kinds[i], i + 1);
    }
    long until = check_now_ms() + 3000;
    int all_have_worked = 0;
    while (check_now_ms() < until || !all_have_worked) {
        check_sleep_ms(10);
        all_have_worked = 1;
        for (int kind = 0; kind < KINDS; kind++)
            all_have_worked &= shared->rounds[kind] >= 10;
    }
    shared->end = 1;
    for (int i = 0; i < COUNT; i++) {
        int status;
        REQUIRE(waitpid(workers[i], &status, 0) == workers[i]);
        CHECK("status", status);
    }
    CHECK("wrong", shared->wrong);
    check_line("first-wrong: kind %ld, result %ld, error %ld, found %lx instead of %lx\n", shared->first_kind, shared->first_result, shared->first_error, shared->found, shared->wanted);
    return 0;
}
