// One file, many writers: blocks of their own, records at the end, a common offset, a number under a lock.
#include "stress.h"

#include <sys/file.h>

#define WRITERS 3
#define BLOCKS 24
#define TURNS 100

static int file;

// What the owner of each block has written last.
static struct {
    atomic_int version[BLOCKS];
} *written;

static void fill(uint32_t *words, uint32_t block, uint32_t version)
{
    for (uint32_t i = 0; i < PAGE / sizeof *words; i++)
        words[i] = block << 24 ^ version << 10 ^ i;
}

static void write_blocks(int index)
{
    uint32_t words[PAGE / 4], expected[PAGE / 4];
    for (int i = 0; i < TURNS; i++) {
        uint32_t block = any(BLOCKS / WRITERS) * WRITERS + index;
        // Pieces that do not begin where pages do.
        off_t at = (off_t)block * PAGE + 512;
        if (any(2)) {
            fill(words, block, written->version[block] + 1);
            MUST(pwrite(file, words, PAGE, at) == PAGE);
            written->version[block]++;
        } else {
            // Nobody else writes this block.
            MUST(pread(file, words, PAGE, at) == PAGE);
            fill(expected, block, written->version[block]);
            HOLDS(memcmp(words, expected, PAGE) == 0, "block %u is not what its writer wrote", block);
        }
    }
    count(TURNS);
}

static void blocks_round(void)
{
    written = shared_memory(PAGE);
    MUST((file = open("blocks", O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0);
    uint32_t words[PAGE / 4], expected[PAGE / 4];
    for (uint32_t block = 0; block < BLOCKS; block++) {
        fill(words, block, 0);
        MUST(pwrite(file, words, PAGE, (off_t)block * PAGE + 512) == PAGE);
    }
    if (any(2))
        processes(WRITERS, write_blocks);
    else
        threads(WRITERS, write_blocks);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        MUST(pread(file, words, PAGE, (off_t)block * PAGE + 512) == PAGE);
        fill(expected, block, written->version[block]);
        HOLDS(memcmp(words, expected, PAGE) == 0, "block %u does not hold its last version", block);
    }
    close(file);
    MUST(unlink("blocks") == 0);
    munmap(written, PAGE);
}

struct entry {
    uint32_t writer, turn, check[14];
};

static void write_entries(int index, int fd)
{
    for (uint32_t i = 0; i < TURNS; i++) {
        struct entry entry = { (uint32_t)index, i, { 0 } };
        for (int word = 0; word < 14; word++)
            entry.check[word] = (uint32_t)index * 1000003 + i;
        MUST(write(fd, &entry, sizeof entry) == sizeof entry);
    }
    count(TURNS);
}

// Whether each writer's records are all there, once, whole and in order.
static void check_entries(const char *name)
{
    uint32_t due[WRITERS] = { 0 };
    int fd = open(name, O_RDONLY);
    struct stat status;
    MUST(fd >= 0 && fstat(fd, &status) == 0);
    HOLDS(status.st_size == WRITERS * TURNS * (off_t)sizeof(struct entry), "%s has %ld bytes", name, (long)status.st_size);
    struct entry entry;
    while (read(fd, &entry, sizeof entry) == sizeof entry) {
        HOLDS(entry.writer < WRITERS, "a record of writer %u", entry.writer);
        if (entry.writer >= WRITERS)
            break;
        HOLDS(entry.turn == due[entry.writer], "record %u of writer %u in place of %u", entry.turn, entry.writer, due[entry.writer]);
        due[entry.writer] = entry.turn + 1;
        for (int word = 0; word < 14; word++)
            HOLDS(entry.check[word] == entry.writer * 1000003 + entry.turn, "a record is torn");
    }
    close(fd);
    MUST(unlink(name) == 0);
}

// Each has opened the file for itself.
static void append(int index)
{
    int fd = open("appended", O_WRONLY | O_APPEND);
    MUST(fd >= 0);
    write_entries(index, fd);
    close(fd);
}

static void append_round(void)
{
    MUST((file = open("appended", O_WRONLY | O_CREAT | O_TRUNC, 0600)) >= 0);
    processes(WRITERS, append);
    close(file);
    check_entries("appended");
}

// All write at the offset of one open file (write(2), BUGS: since Linux 3.14 they do not overwrite each other).
static void write_on(int index)
{
    write_entries(index, file);
}

static void offset_round(void)
{
    MUST((file = open("offset", O_WRONLY | O_CREAT | O_TRUNC, 0600)) >= 0);
    if (any(2))
        processes(WRITERS, write_on);
    else
        threads(WRITERS, write_on);
    close(file);
    check_entries("offset");
}

enum lock_kind { FLOCK, RECORD, DESCRIPTION, LOCK_KINDS };

// From linux/fcntl.h: a lock that belongs to the open file.
#define SET_DESCRIPTION_LOCK_WAIT 38

static enum lock_kind lock_kind;

static void set_lock(int fd, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8 };
    int done;
    do {
        if (lock_kind == FLOCK)
            done = flock(fd, type == F_WRLCK ? LOCK_EX : LOCK_UN);
        else
            done = fcntl(fd, lock_kind == RECORD ? F_SETLKW : SET_DESCRIPTION_LOCK_WAIT, &lock);
    } while (done != 0 && errno == EINTR);
    MUST(done == 0);
}

static void add_under_lock(int index)
{
    (void)index;
    int fd = open("number", O_RDWR);
    MUST(fd >= 0);
    for (int i = 0; i < TURNS; i++) {
        long number;
        set_lock(fd, F_WRLCK);
        MUST(pread(fd, &number, sizeof number, 0) == sizeof number);
        number++;
        if (any(16) == 0)
            sched_yield();
        MUST(pwrite(fd, &number, sizeof number, 0) == sizeof number);
        set_lock(fd, F_UNLCK);
    }
    close(fd);
}

static void locks_round(void)
{
    long number = 0;
    lock_kind = any(LOCK_KINDS);
    MUST((file = open("number", O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0);
    MUST(pwrite(file, &number, sizeof number, 0) == sizeof number);
    processes(WRITERS, add_under_lock);
    MUST(pread(file, &number, sizeof number, 0) == sizeof number);
    HOLDS(number == WRITERS * TURNS, "%ld of %d under locks of kind %d", number, WRITERS * TURNS, lock_kind);
    close(file);
    MUST(unlink("number") == 0);
    count(WRITERS * TURNS);
}

const struct family file_families[] = {
    { "file-blocks", blocks_round },
    { "appends", append_round },
    { "file-offsets", offset_round },
    { "file-locks", locks_round },
    { NULL, NULL },
};
