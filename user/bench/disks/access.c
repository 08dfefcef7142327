// Reads and writes of one file, as fio does them with one request at a time.
#include "disks.h"

enum { KIB = 1024, MIB = 1024 * KIB, FILE_SIZE = 64 * MIB };

// On the image: FILE_SIZE bytes.
#define DATA DISK "/data"
#define NEW DISK "/new"

static char buffer[MIB] __attribute__((aligned(4096)));

// Files are read, and written in random order, that are there; what is written in order is a new file.
static int is_new(const struct row *row)
{
    return row->access.way == WRITE && row->access.order == IN_ORDER;
}

static void access_file(const struct row *row)
{
    int writes = row->access.way == WRITE;
    int file = is_new(row) ? open(NEW, O_WRONLY | O_CREAT | O_EXCL | row->access.flags, 0644)
                           : open(DATA, (writes ? O_WRONLY : O_RDONLY) | row->access.flags);
    must(file, "open the file");
    long size = row->access.size;
    uint64_t random = 88172645463325252;
    for (long i = 0; i < row->access.count; i++) {
        // Marsaglia, Xorshift RNGs, with the triple (13, 7, 17).
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        off_t at = (row->access.order == RANDOM ? (long)(random % (FILE_SIZE / size)) : i) * size;
        long done = writes ? pwrite(file, buffer, size, at) : pread(file, buffer, size, at);
        if (done != size)
            fail(writes ? "pwrite" : "pread");
        if (row->access.sync_each)
            must(fsync(file), "fsync");
    }
    if (writes && !row->access.sync_each)
        must(fsync(file), "fsync");
    must(close(file), "close");
}

static void read_data(const struct row *row)
{
    (void)row;
    int file = open(DATA, O_RDONLY);
    must(file, "open the file");
    while (read(file, buffer, sizeof buffer) > 0)
        ;
    close(file);
}

static void fill_buffer(const struct row *row)
{
    (void)row;
    memset(buffer, 0x5a, sizeof buffer);
}

static void delete_new(const struct row *row)
{
    if (is_new(row))
        must(unlink(NEW), "unlink");
}

#define ROW(name, way, order, size, count, flags, sync_each) \
    { name, fill_buffer, 1, access_file, delete_new, { way, order, size, count, flags, sync_each } }

const struct row access_rows[] = {
    ROW("read-4k", READ, IN_ORDER, 4 * KIB, 16384, 0, 0),
    { "read-4k-again", read_data, 0, access_file, NULL, { READ, IN_ORDER, 4 * KIB, 16384, 0, 0 } },
    ROW("read-1m", READ, IN_ORDER, MIB, 64, 0, 0),
    ROW("read-4k-direct", READ, IN_ORDER, 4 * KIB, 4096, O_DIRECT, 0),
    ROW("read-1m-direct", READ, IN_ORDER, MIB, 64, O_DIRECT, 0),
    ROW("random-read-4k", READ, RANDOM, 4 * KIB, 4096, 0, 0),
    ROW("random-read-1m", READ, RANDOM, MIB, 64, 0, 0),
    ROW("random-read-4k-direct", READ, RANDOM, 4 * KIB, 4096, O_DIRECT, 0),
    ROW("random-read-1m-direct", READ, RANDOM, MIB, 64, O_DIRECT, 0),
    ROW("write-4k", WRITE, IN_ORDER, 4 * KIB, 16384, 0, 0),
    ROW("write-1m", WRITE, IN_ORDER, MIB, 64, 0, 0),
    ROW("write-4k-direct", WRITE, IN_ORDER, 4 * KIB, 4096, O_DIRECT, 0),
    ROW("write-1m-direct", WRITE, IN_ORDER, MIB, 64, O_DIRECT, 0),
    ROW("write-4k-fsync", WRITE, IN_ORDER, 4 * KIB, 500, 0, 1),
    ROW("random-write-4k", WRITE, RANDOM, 4 * KIB, 4096, 0, 0),
    ROW("random-write-1m", WRITE, RANDOM, MIB, 64, 0, 0),
    ROW("random-write-4k-direct", WRITE, RANDOM, 4 * KIB, 4096, O_DIRECT, 0),
    ROW("random-write-1m-direct", WRITE, RANDOM, MIB, 64, O_DIRECT, 0),
    ROW("random-write-4k-fsync", WRITE, RANDOM, 4 * KIB, 500, 0, 1),
    { 0 },
};
