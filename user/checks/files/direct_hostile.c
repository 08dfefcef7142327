// Large reads and writes with O_DIRECT whose description others use meanwhile: once the call has returned, the program's memory is its own again, and each byte of a file is read once.
#include "../check.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define PAGE 4096
#define PIECE (32 * PAGE)
#define PIECES 64
#define SIZE ((long)PIECES * PIECE)

static char content[SIZE];
static char *memory;
// What processes share.
static volatile struct {
    int seen[PIECES + 1];
    int wrong;
    int go, turn;
} *shared;

static int all_are(const char *bytes, long len, char value)
{
    for (long i = 0; i < len; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

// Processes with one description read it together: each piece comes to one of them.
static void one_offset(int fd)
{
    int wrong = 0;
    for (int round = 0; round < 6; round++) {
        REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
        memset((void *)shared, 0, sizeof *shared);
        pid_t readers[3];
        for (int i = 0; i < 3; i++) {
            readers[i] = fork();
            REQUIRE(readers[i] >= 0);
            if (readers[i] > 0)
                continue;
            memset(memory, i, PIECE);
            ssize_t len;
            while ((len = read(fd, memory, PIECE)) > 0) {
                int piece;
                memcpy(&piece, memory, sizeof piece);
                if (len != PIECE || piece < 0 || piece >= PIECES || memcmp(memory, content + (long)piece * PIECE, PIECE) != 0)
                    __sync_fetch_and_add(&shared->wrong, 1);
                else
                    __sync_fetch_and_add(&shared->seen[piece], 1);
            }
            _exit(len != 0);
        }
        for (int i = 0; i < 3; i++) {
            int status;
            REQUIRE(waitpid(readers[i], &status, 0) == readers[i]);
            wrong += status != 0;
        }
        wrong += shared->wrong;
        for (int i = 0; i < PIECES; i++)
            wrong += shared->seen[i] != 1;
    }
    CHECK("one-offset-wrong", wrong);
}

// What is not to be waited for is not there later either.
static void no_wait(int fd)
{
    int wrong = 0;
    for (int round = 0; round < 40; round++) {
        struct iovec piece = { memory, PIECE };
        memset(memory, 'n', PIECE);
        long offset = (long)(round % PIECES) * PIECE;
        ssize_t len = syscall(SYS_preadv2, fd, &piece, 1, offset, 0, 8 /* RWF_NOWAIT */);
        if (len > 0) {
            wrong += memcmp(memory, content + offset, len) != 0;
            continue;
        }
        wrong += len == 0 || errno != EAGAIN;
        check_sleep_ms(3);
        wrong += !all_are(memory, PIECE, 'n');
    }
    CHECK("no-wait-wrong", wrong);
}

// Another process closes the descriptor while it is read, or written.
static void closed(const char *path, int writes)
{
    int wrong = 0, plain = open(path, O_RDONLY);
    REQUIRE(plain >= 0);
    static char seen[PIECE];
    memset((void *)shared, 0, sizeof *shared);
    int fd = open(path, O_RDWR | O_DIRECT);
    REQUIRE(fd >= 0);
    // With the descriptors of this one, and not its memory.
    pid_t helper = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    REQUIRE(helper >= 0);
    if (helper == 0) {
        unsigned seed = 1;
        for (int turn = 1;; turn++) {
            while (shared->go < turn)
                sched_yield();
            if (shared->go > 1000)
                _exit(0);
            for (volatile int i = rand_r(&seed) % 30000; i > 0; i--)
                ;
            close(fd);
            shared->turn = turn;
        }
    }
    for (int round = 0; round < 100; round++) {
        long offset = (long)(round % PIECES) * PIECE;
        memset(memory, 'a' + round % 20, PIECE);
        shared->go = round + 1;
        ssize_t len = writes ? pwrite(fd, memory, PIECE, offset) : pread(fd, memory, PIECE, offset);
        if (len < 0)
            wrong += errno != EBADF;
        if (len > 0 && !writes)
            wrong += memcmp(memory, content + offset, len) != 0;
        memset(memory, 'z', PIECE);
        while (shared->turn < round + 1)
            sched_yield();
        if (writes) {
            wrong += pread(plain, seen, PIECE, offset) != PIECE || memchr(seen, 'z', PIECE) != NULL;
        } else {
            check_sleep_ms(1);
            wrong += !all_are(memory, PIECE, 'z');
        }
        int again = open(path, O_RDWR | O_DIRECT);
        REQUIRE(again >= 0);
        if (again != fd) {
            REQUIRE(dup2(again, fd) == fd);
            close(again);
        }
    }
    shared->go = 2000;
    REQUIRE(waitpid(helper, NULL, 0) == helper);
    close(fd);
    close(plain);
    CHECK(writes ? "closed-while-written-wrong" : "closed-while-read-wrong", wrong);
}

// Readers that are killed leave nothing behind.
static void killed(int fd)
{
    int wrong = 0;
    unsigned seed = 9;
    for (int round = 0; round < 40; round++) {
        shared->go = 0;
        pid_t reader = fork();
        REQUIRE(reader >= 0);
        if (reader == 0) {
            memset(memory, 1, PIECE);
            shared->go = 1;
            for (long at = 0;; at = (at + PIECE) % SIZE)
                if (pread(fd, memory, PIECE, at) != PIECE)
                    _exit(1);
        }
        while (!shared->go)
            sched_yield();
        for (volatile int i = rand_r(&seed) % 100000; i > 0; i--)
            ;
        kill(reader, SIGKILL);
        int status;
        REQUIRE(waitpid(reader, &status, 0) == reader);
        wrong += !WIFSIGNALED(status);
        // Whoever is next has that memory.
        char *next = mmap(NULL, 2 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(next != MAP_FAILED);
        memset(next, 'k', 2 * PIECE);
        check_sleep_ms(1);
        wrong += !all_are(next, 2 * PIECE, 'k');
        munmap(next, 2 * PIECE);
    }
    CHECK("killed-wrong", wrong);
}

int main(void)
{
    memory = mmap(NULL, PIECE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED && shared != MAP_FAILED);
    for (int i = 0; i < PIECES; i++) {
        memset(content + (long)i * PIECE, i, PIECE);
        memcpy(content + (long)i * PIECE, &i, sizeof i);
    }
    int plain = open("f", O_CREAT | O_RDWR, 0600);
    REQUIRE(plain >= 0 && pwrite(plain, content, SIZE, 0) == SIZE && fsync(plain) == 0);
    REQUIRE(posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED) == 0);
    int fd = open("f", O_RDONLY | O_DIRECT);
    REQUIRE(fd >= 0);

    // Not whole blocks of the disk: much is refused where little is, and nothing is read.
    memset(memory, 'u', PIECE + PAGE);
    int is_strict = pread(fd, memory, 100, 0) == -1 && errno == EINVAL;
    ssize_t len = pread(fd, memory, PIECE + 100, 0);
    CHECK_TRUE("not-whole", is_strict ? len == -1 && errno == EINVAL && all_are(memory, PIECE + PAGE, 'u') : len == PIECE + 100);

    one_offset(fd);
    no_wait(fd);
    killed(fd);
    closed("f", 0);
    int other = open("g", O_CREAT | O_RDWR, 0600);
    REQUIRE(other >= 0 && pwrite(other, content, SIZE, 0) == SIZE && fsync(other) == 0);
    REQUIRE(posix_fadvise(other, 0, 0, POSIX_FADV_DONTNEED) == 0);
    closed("g", 1);
    return 0;
}
