// sendfile and copy_file_range of many pages: what arrives, where the offsets are afterwards, and what ends a copy early.
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define PAGE 4096
#define SIZE (40 * PAGE + 123)

static char bytes[SIZE], got[2 * SIZE];
static volatile sig_atomic_t caught;

static void catch(int number)
{
    caught = number;
}

static int fresh(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    REQUIRE(fd >= 0);
    return fd;
}

// Whether a file has that length, and `length` bytes at `at` are those of the source from `start` on.
static int has(int fd, off_t size, off_t at, size_t length, off_t start)
{
    struct stat status;
    REQUIRE(fstat(fd, &status) == 0);
    REQUIRE(pread(fd, got, length, at) == (ssize_t)length);
    return status.st_size == size && memcmp(got, bytes + start, length) == 0;
}

// The first bytes of so many pages.
static void print_pages(const char *name, int fd, int pages)
{
    char line[256];
    int length = 0;
    for (int i = 0; i < pages; i++) {
        REQUIRE(pread(fd, got, 1, (off_t)i * PAGE) == 1);
        length += sprintf(line + length, "%d ", got[0]);
    }
    CHECK_STR(name, line);
}

static void number_pages(int fd, int pages)
{
    char page[PAGE];
    for (int i = 0; i < pages; i++) {
        memset(page, i + 1, PAGE);
        REQUIRE(pwrite(fd, page, PAGE, (off_t)i * PAGE) == PAGE);
    }
}

// Waits until a pipe or a socket holds so many bytes.
static void wait_for_bytes(int fd, int count)
{
    int waiting = 0;
    while (ioctl(fd, FIONREAD, &waiting) == 0 && waiting < count)
        check_sleep_ms(1);
}

static void to_files(int in)
{
    int out = fresh("out");
    off_t offset = 0;
    CHECK("all", sendfile(out, in, &offset, 1 << 20));
    CHECK("offset", offset);
    CHECK_TRUE("all-the-same", has(out, SIZE, 0, SIZE, 0));
    CHECK("position", lseek(out, 0, SEEK_CUR));

    REQUIRE(ftruncate(out, 0) == 0 && lseek(out, 77, SEEK_SET) == 77 && lseek(in, 5000, SEEK_SET) == 5000);
    CHECK("crooked", sendfile(out, in, NULL, 20 * PAGE));
    CHECK("from-position", lseek(in, 0, SEEK_CUR));
    CHECK("to-position", lseek(out, 0, SEEK_CUR));
    CHECK_TRUE("crooked-the-same", has(out, 77 + 20 * PAGE, 77, 20 * PAGE, 5000));
    CHECK("rest", sendfile(out, in, NULL, SIZE));
    CHECK("end", sendfile(out, in, NULL, SIZE));
    offset = SIZE + 1;
    CHECK("behind-the-end", sendfile(out, in, &offset, SIZE));
    CHECK("nothing", sendfile(out, in, &offset, 0));

    off_t from = 3, to = 2 * PAGE + 1;
    REQUIRE(ftruncate(out, 0) == 0);
    CHECK("range", copy_file_range(in, &from, out, &to, 30 * PAGE, 0));
    CHECK("range-from", from);
    CHECK("range-to", to);
    CHECK_TRUE("range-the-same", has(out, 32 * PAGE + 1, 2 * PAGE + 1, 30 * PAGE, 3));

    int null = open("/dev/null", O_WRONLY);
    offset = 0;
    CHECK("to-null", sendfile(null, in, &offset, SIZE));

    // Data between two holes.
    int holes = fresh("holes");
    REQUIRE(ftruncate(holes, 20 * PAGE) == 0 && pwrite(holes, "data", 4, 7 * PAGE + 1) == 4);
    struct stat before, after;
    REQUIRE(fstat(holes, &before) == 0 && ftruncate(out, 0) == 0 && lseek(out, 0, SEEK_SET) == 0);
    CHECK("holes", sendfile(out, holes, NULL, SIZE));
    REQUIRE(fstat(holes, &after) == 0 && pread(out, got, 20 * PAGE, 0) == 20 * PAGE);
    CHECK_TRUE("holes-stay", before.st_blocks == after.st_blocks);
    CHECK_STR("data-between-holes", got + 7 * PAGE + 1);
    int set = 0;
    for (int i = 0; i < 20 * PAGE; i++)
        set += got[i] != 0;
    CHECK("other-bytes", set - 4);
    CHECK("append", fcntl(out, F_SETFL, O_APPEND) == 0 ? sendfile(out, in, NULL, 5) : -2);
    close(out), close(holes), close(null);
}

static void within_a_file(void)
{
    int same = fresh("same");
    off_t offset = 0;
    number_pages(same, 10);
    REQUIRE(lseek(same, PAGE, SEEK_SET) == PAGE);
    CHECK("a-page-on", sendfile(same, same, &offset, 5 * PAGE));
    print_pages("a-page-on-pages", same, 10);
    number_pages(same, 10);
    REQUIRE(lseek(same, 0, SEEK_SET) == 0);
    offset = PAGE;
    CHECK("a-page-back", sendfile(same, same, &offset, 5 * PAGE));
    print_pages("a-page-back-pages", same, 10);
    REQUIRE(lseek(same, 0, SEEK_SET) == 0);
    CHECK("in-place", sendfile(same, same, NULL, 2 * PAGE));
    CHECK("in-place-position", lseek(same, 0, SEEK_CUR));
    number_pages(same, 10);
    REQUIRE(lseek(same, 0, SEEK_END) == 10 * PAGE);
    offset = 0;
    CHECK("to-its-end", sendfile(same, same, &offset, 30 * PAGE));
    print_pages("to-its-end-pages", same, 40);
    close(same);
}

static void times(int in)
{
    int out = fresh("times");
    struct timespec old[2] = { { 1000, 0 }, { 2000, 0 } };
    struct stat status;
    REQUIRE(futimens(out, old) == 0 && futimens(in, old) == 0 && lseek(in, 0, SEEK_SET) == 0);
    REQUIRE(sendfile(out, in, NULL, 10) == 10);
    REQUIRE(fstat(in, &status) == 0);
    CHECK_TRUE("source-accessed", status.st_atime > 2000);
    CHECK("source-modified", status.st_mtime);
    REQUIRE(fstat(out, &status) == 0);
    CHECK("target-accessed", status.st_atime);
    CHECK_TRUE("target-modified", status.st_mtime > 2000);
    REQUIRE(fchmod(out, 06755) == 0 && setresuid(-1, 1000, -1) == 0);
    REQUIRE(sendfile(out, in, NULL, 10) == 10 && setresuid(-1, 0, -1) == 0);
    REQUIRE(fstat(out, &status) == 0);
    CHECK("set-user-id", status.st_mode & 07777);
    close(out);
}

static void to_pipes(int in)
{
    int ends[2];
    REQUIRE(pipe2(ends, O_NONBLOCK) == 0);
    off_t offset = 100;
    CHECK("pipe-crooked", sendfile(ends[1], in, &offset, SIZE));
    CHECK("pipe-crooked-offset", offset);
    CHECK("pipe-full", sendfile(ends[1], in, &offset, SIZE));
    REQUIRE(read(ends[0], got, sizeof got) == offset - 100);
    CHECK_TRUE("pipe-the-same", memcmp(got, bytes + 100, offset - 100) == 0);
    REQUIRE(write(ends[1], bytes, 100) == 100 && lseek(in, 0, SEEK_SET) == 0);
    CHECK("pipe-with-some", sendfile(ends[1], in, NULL, SIZE));
    CHECK("pipe-with-some-position", lseek(in, 0, SEEK_CUR));
    close(ends[0]);
    CHECK("no-reader", sendfile(ends[1], in, NULL, SIZE));
    CHECK_STR("no-reader-signal", check_signal_name(caught));
    CHECK("no-reader-position", lseek(in, 0, SEEK_CUR));
    close(ends[1]);

}

// A child copies more than fits to a stream that nobody reads for now: its other end.
static int child_to_stream(const char *name, int in, pid_t *pid)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    *pid = check_fork();
    if (*pid == 0) {
        off_t offset = 0;
        close(ends[0]);
        long sent = 0;
        for (int files = 0; files < 3 && sent == offset && !caught; files++) {
            offset = 0;
            sent = sendfile(ends[1], in, &offset, SIZE);
        }
        CHECK_TRUE(name, sent == SIZE);
        CHECK_TRUE("offset-as-sent", sent == offset);
        CHECK_STR("its-signal", check_signal_name(caught));
        _exit(0);
    }
    close(ends[1]);
    wait_for_bytes(ends[0], SIZE + 1);
    return ends[0];
}

static size_t read_all(int end)
{
    size_t length = 0;
    for (ssize_t count; (count = read(end, got, 3000)) > 0;)
        length += count;
    return length;
}

static void waiting(int in)
{
    // A pipe that is full: what fits when there is room again is all.
    int ends[2];
    REQUIRE(pipe(ends) == 0 && write(ends[1], bytes, 16 * PAGE) == 16 * PAGE);
    pid_t pid = check_fork();
    if (pid == 0) {
        CHECK("waits-for-pipe", sendfile(ends[1], in, &(off_t){ 0 }, SIZE));
        _exit(0);
    }
    REQUIRE(read(ends[0], got, sizeof got) == 16 * PAGE);
    CHECK_STATUS("waited-for-pipe", check_wait(pid));
    close(ends[0]), close(ends[1]);

    caught = 0;
    int end = child_to_stream("waits-for-room", in, &pid);
    CHECK("read", read_all(end));
    CHECK_STATUS("waited", check_wait(pid));
    close(end);

    end = child_to_stream("interrupted", in, &pid);
    REQUIRE(kill(pid, SIGUSR1) == 0);
    CHECK_STATUS("interrupted-end", check_wait(pid));
    close(end);

    // The end of the file moves while the copy waits.
    int shrinks = fresh("shrinks");
    number_pages(shrinks, 40);
    end = child_to_stream("shrinks", shrinks, &pid);
    REQUIRE(ftruncate(shrinks, 0) == 0);
    read_all(end);
    CHECK_STATUS("shrinks-end", check_wait(pid));
    close(end), close(shrinks);
}

// What is written at once to a socket that keeps messages is a message.
static void messages(int in)
{
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
    for (int i = 0; i < 3; i++) {
        int pair[2];
        off_t offset = 100;
        REQUIRE(socketpair(AF_UNIX, types[i] | SOCK_NONBLOCK, 0, pair) == 0);
        CHECK("to-socket", sendfile(pair[0], in, &offset, 100000));
        size_t length = 0;
        for (ssize_t count; (count = read(pair[1], got + length, sizeof got - length)) > 0;) {
            length += count;
            if (types[i] != SOCK_STREAM)
                CHECK("message", count);
        }
        CHECK("messages-length", length);
        CHECK_TRUE("messages-the-same", memcmp(got, bytes + 100, length) == 0);
        close(pair[0]), close(pair[1]);
    }
}

static void limited(int in)
{
    struct rlimit limit = { 10 * PAGE + 5, 10 * PAGE + 5 };
    int out = fresh("limited");
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0 && lseek(in, 0, SEEK_SET) == 0);
    caught = 0;
    CHECK("limited", sendfile(out, in, NULL, SIZE));
    CHECK_STR("limited-signal", check_signal_name(caught));
    CHECK("limited-position", lseek(in, 0, SEEK_CUR));
    CHECK("limited-target", lseek(out, 0, SEEK_CUR));
    caught = 0;
    CHECK("beyond", sendfile(out, in, NULL, SIZE));
    CHECK_STR("beyond-signal", check_signal_name(caught));
    CHECK("beyond-position", lseek(in, 0, SEEK_CUR));
    caught = 0;
    off_t from = 0, to = PAGE;
    CHECK("limited-range", copy_file_range(in, &from, out, &to, SIZE, 0));
    CHECK("limited-from", from);
    CHECK("limited-to", to);
    close(out);
}

int main(void)
{
    for (int i = 0; i < SIZE; i++)
        bytes[i] = i / PAGE * 7 + i % 251;
    int in = fresh("in");
    REQUIRE(write(in, bytes, SIZE) == SIZE);
    signal(SIGXFSZ, catch);
    signal(SIGPIPE, catch);
    signal(SIGUSR1, catch);
    to_files(in);
    within_a_file();
    times(in);
    to_pipes(in);
    waiting(in);
    messages(in);
    limited(in);
    return 0;
}
