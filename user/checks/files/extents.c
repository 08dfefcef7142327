// Where on the disk a file is: FS_IOC_FIEMAP. Some file systems tell nothing of it, so what is told of a file in the working directory is right where anything is.
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/mman.h>

// From linux/fiemap.h, which musl has not.
struct fiemap_extent {
    uint64_t fe_logical, fe_physical, fe_length, reserved64[2];
    uint32_t fe_flags, reserved[3];
};
struct fiemap {
    uint64_t fm_start, fm_length;
    uint32_t fm_flags, fm_mapped_extents, fm_extent_count, reserved;
    struct fiemap_extent fm_extents[];
};
#define FS_IOC_FIEMAP _IOWR('f', 11, struct fiemap)
#define FIEMAP_FLAG_SYNC 1
#define FIEMAP_EXTENT_LAST 1
#define FIEMAP_EXTENT_UNWRITTEN 0x800

enum { ROOM = 16, KIB = 1024 };

static union {
    struct fiemap map;
    char bytes[sizeof(struct fiemap) + ROOM * sizeof(struct fiemap_extent)];
} asked;

static int ask(int fd, uint64_t start, uint64_t length, uint32_t flags, uint32_t room)
{
    memset(&asked, 0, sizeof asked);
    asked.map.fm_start = start;
    asked.map.fm_length = length;
    asked.map.fm_flags = flags;
    asked.map.fm_extent_count = room;
    return ioctl(fd, FS_IOC_FIEMAP, &asked.map);
}

// What is told of the byte at an offset: 0 nothing, 1 that it is written, 2 that it has a place only.
static int kind_at(uint64_t offset)
{
    for (unsigned i = 0; i < asked.map.fm_mapped_extents; i++) {
        struct fiemap_extent *extent = &asked.map.fm_extents[i];
        if (offset >= extent->fe_logical && offset - extent->fe_logical < extent->fe_length)
            return extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN ? 2 : 1;
    }
    return 0;
}

static int only_the_last_is_called_so(void)
{
    unsigned count = asked.map.fm_mapped_extents;
    for (unsigned i = 0; i < count; i++)
        if (!(asked.map.fm_extents[i].fe_flags & FIEMAP_EXTENT_LAST) != (i + 1 < count))
            return 0;
    return count > 0;
}

int main(void)
{
    char data[4 * KIB];
    memset(data, 'd', sizeof data);
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    REQUIRE(fd >= 0);
    for (int i = 0; i < 4; i++)
        REQUIRE(pwrite(fd, data, sizeof data, i * sizeof data) == sizeof data);
    REQUIRE(pwrite(fd, data, sizeof data, 256 * KIB) == sizeof data);
    REQUIRE(ftruncate(fd, 1024 * KIB) == 0);
    int tells = ask(fd, 0, ~0ull, FIEMAP_FLAG_SYNC, ROOM) == 0;
    CHECK_TRUE("told, or not supported", tells || errno == EOPNOTSUPP);
    CHECK_TRUE("data", !tells || (kind_at(0) == 1 && kind_at(16 * KIB - 1) == 1 && kind_at(256 * KIB) == 1));
    CHECK_TRUE("holes", !tells || (kind_at(16 * KIB) == 0 && kind_at(255 * KIB) == 0 && kind_at(260 * KIB) == 0));
    CHECK_TRUE("one is the last", !tells || only_the_last_is_called_so());
    unsigned count = asked.map.fm_mapped_extents;
    CHECK_TRUE("counted without room", !tells || (ask(fd, 0, ~0ull, 0, 0) == 0 && asked.map.fm_mapped_extents == count));
    CHECK_TRUE("one for the room of one", !tells || (ask(fd, 0, ~0ull, 0, 1) == 0 && asked.map.fm_mapped_extents == 1));
    CHECK_TRUE("that is not the last", !tells || !(asked.map.fm_extents[0].fe_flags & FIEMAP_EXTENT_LAST));
    CHECK_TRUE("a hole only", !tells || (ask(fd, 512 * KIB, 16 * KIB, 0, ROOM) == 0 && asked.map.fm_mapped_extents == 0));
    CHECK_TRUE("no longer than asked",
        !tells || (ask(fd, 4 * KIB, 4 * KIB, 0, ROOM) == 0 && asked.map.fm_mapped_extents == 1 && kind_at(4 * KIB) == 1 && kind_at(8 * KIB) == 0));
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 2048 * KIB, 64 * KIB) == 0)
        CHECK_TRUE("a place only, behind the end", !tells || (ask(fd, 0, ~0ull, 0, ROOM) == 0 && kind_at(2048 * KIB) == 2));
    else
        CHECK_TRUE("a place only, behind the end", errno == EOPNOTSUPP);
    CHECK_TRUE("no bytes", ask(fd, 0, 0, 0, ROOM) == -1 && (errno == EINVAL || !tells));
    CHECK_TRUE("behind every file", ask(fd, 1ull << 63, 1, 0, ROOM) == -1 && (errno == EFBIG || !tells));
    CHECK_TRUE("an unknown flag", ask(fd, 0, ~0ull, 0x4000, ROOM) == -1 && (errno == EBADR || !tells));
    CHECK_TRUE("the flag is told", !tells || asked.map.fm_flags == 0x4000);
    CHECK_TRUE("too much room", ask(fd, 0, ~0ull, 0, ~0u) == -1 && (errno == EINVAL || !tells));
    CHECK_TRUE("no memory", ioctl(fd, FS_IOC_FIEMAP, 0) == -1 && (errno == EFAULT || !tells));

    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    CHECK("a pipe", ask(pipes[0], 0, ~0ull, 0, ROOM));
    int memory = memfd_create("m", 0);
    REQUIRE(memory >= 0);
    CHECK("a file in memory", ask(memory, 0, ~0ull, 0, ROOM));
    int path = open("f", O_PATH);
    REQUIRE(path >= 0);
    CHECK("a place", ask(path, 0, ~0ull, 0, ROOM));
    return 0;
}
