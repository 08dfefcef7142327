// A descriptor that becomes another file's in the middle of a call, while the call waits for a page of memory: the call goes on with the file that it began with.
#include "together.h"
#include <sys/mman.h>
#include <sys/uio.h>

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

#define ROUNDS 6000
#define PAGE 4096

static int fd, first, second, wrong;
static char *memory;

// The second page has to be brought in when it is next used.
static void begin(void)
{
    REQUIRE(madvise(memory + PAGE, PAGE, MADV_DONTNEED) == 0);
    REQUIRE(dup2(first, fd) == fd);
}

static void replace(void)
{
    REQUIRE(dup2(second, fd) == fd);
}

static void read_both(void)
{
    REQUIRE(pread(fd, memory, 2 * PAGE, 0) == 2 * PAGE);
}

static void end_read(void)
{
    wrong += memory[0] != memory[2 * PAGE - 1];
}

// Zeros: a lock to read all of the file.
static void lock_it(void)
{
    REQUIRE(fcntl(fd, F_OFD_SETLK, memory + PAGE) == 0);
}

static int is_locked(const char *path)
{
    int other = open(path, O_RDWR);
    struct flock lock = { .l_type = F_WRLCK };
    REQUIRE(other >= 0 && fcntl(other, F_OFD_GETLK, &lock) == 0);
    close(other);
    return lock.l_type != F_UNLCK;
}

// Each description gives up what it has.
static void end_lock(void)
{
    struct flock lock = { .l_type = F_UNLCK };
    REQUIRE(fcntl(first, F_OFD_SETLK, &lock) == 0 && fcntl(second, F_OFD_SETLK, &lock) == 0);
    wrong += is_locked("first") || is_locked("second");
}

static void splice_it(void)
{
    struct iovec *pieces = (struct iovec *)(memory + PAGE);
    long done = vmsplice(fd, pieces, 1, SPLICE_F_NONBLOCK);
    REQUIRE(done == 1 || (done == -1 && (errno == EBADF || errno == EAGAIN)));
}

static void nothing(void)
{
}

static int file_of(const char *path, char fill)
{
    char bytes[2 * PAGE];
    memset(bytes, fill, sizeof bytes);
    int made = open(path, O_CREAT | O_RDWR, 0600);
    REQUIRE(made >= 0 && write(made, bytes, sizeof bytes) == sizeof bytes);
    return made;
}

int main(void)
{
    memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    first = file_of("first", 'a');
    second = file_of("second", 'b');
    fd = dup(first);
    REQUIRE(memory != MAP_FAILED && fd >= 0);
    memory[0] = 0;
    together(ROUNDS, begin, read_both, replace, end_read);
    CHECK("read-from-two-files", wrong);

    wrong = 0;
    together(ROUNDS, begin, lock_it, replace, end_lock);
    CHECK("locked-in-another-file", wrong);

    // The page that has to be brought in has what is to be written.
    int pieces = open("pieces", O_CREAT | O_RDWR, 0600);
    struct iovec piece = { memory, 1 };
    REQUIRE(pieces >= 0 && ftruncate(pieces, PAGE) == 0 && write(pieces, &piece, sizeof piece) == sizeof piece);
    REQUIRE(mmap(memory + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, pieces, 0) == memory + PAGE);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    int sink = open("sink", O_CREAT | O_WRONLY, 0600);
    REQUIRE(sink >= 0 && dup2(sink, second) == second && dup2(ends[1], first) == first);
    REQUIRE(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
    for (int i = 0; i < 20; i++) {
        char read_back[4096];
        together(ROUNDS / 20, begin, splice_it, replace, nothing);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        while (read(ends[0], read_back, sizeof read_back) > 0) {
        }
    }
    struct stat status;
    CHECK("bytes-spliced-into-a-file", fstat(sink, &status) == 0 ? (long)status.st_size : -1);
    return 0;
}
