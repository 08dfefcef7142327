// Asynchronous input and output of the kernel's: io_setup, io_submit, io_getevents, io_pgetevents, io_cancel, io_destroy.
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#ifndef RWF_APPEND
#define RWF_APPEND 16
#endif

// As in Linux's <linux/aio_abi.h>, which not every C library's headers bring.
typedef unsigned long aio_context_t;

enum { IOCB_CMD_PREAD, IOCB_CMD_PWRITE, IOCB_CMD_FSYNC, IOCB_CMD_FDSYNC, IOCB_CMD_PREADV = 7, IOCB_CMD_PWRITEV };
enum { IOCB_FLAG_RESFD = 1 };

struct iocb {
    uint64_t aio_data;
    uint32_t aio_key, aio_rw_flags;
    uint16_t aio_lio_opcode;
    int16_t aio_reqprio;
    uint32_t aio_fildes;
    uint64_t aio_buf, aio_nbytes;
    int64_t aio_offset;
    uint64_t aio_reserved2;
    uint32_t aio_flags, aio_resfd;
};

struct io_event {
    uint64_t data, obj;
    int64_t res, res2;
};

static aio_context_t context;
static int file;

static long io_setup(unsigned count, aio_context_t *to) { return syscall(SYS_io_setup, count, to); }
static long io_destroy(aio_context_t which) { return syscall(SYS_io_destroy, which); }
static long io_submit(aio_context_t which, long count, struct iocb **list) { return syscall(SYS_io_submit, which, count, list); }
static long io_cancel(aio_context_t which, struct iocb *request, struct io_event *event) { return syscall(SYS_io_cancel, which, request, event); }

static long io_getevents(aio_context_t which, long least, long most, struct io_event *events, struct timespec *timeout)
{
    return syscall(SYS_io_getevents, which, least, most, events, timeout);
}

static struct iocb request(int fd, int opcode, void *buffer, size_t bytes, long offset)
{
    struct iocb request = { 0 };
    request.aio_data = 7;
    request.aio_key = 99;
    request.aio_lio_opcode = opcode;
    request.aio_fildes = fd;
    request.aio_buf = (uintptr_t)buffer;
    request.aio_nbytes = bytes;
    request.aio_offset = offset;
    return request;
}

static long submit(struct iocb *one)
{
    struct iocb *list[] = { one };
    return io_submit(context, 1, list);
}

// What comes of one request.
static void outcome(const char *name, struct iocb *one)
{
    struct io_event event = { 0 };
    long submitted = submit(one);
    if (submitted != 1) {
        check_result(name, submitted, errno);
        return;
    }
    REQUIRE(io_getevents(context, 1, 1, &event, NULL) == 1);
    if (event.res < 0)
        check_line("%s: done, %s\n", name, check_errno_name((int)-event.res));
    else
        check_line("%s: done, %lld and %lld, data %lld, the request %s, key %u\n", name, (long long)event.res, (long long)event.res2, (long long)event.data,
                   event.obj == (uintptr_t)one ? "itself" : "another", one->aio_key);
}

static void try(const char *name, int fd, int opcode, void *buffer, size_t bytes, long offset)
{
    struct iocb one = request(fd, opcode, buffer, bytes, offset);
    outcome(name, &one);
}

static void setting_up(void)
{
    aio_context_t other = 0;
    CHECK("for none", io_setup(0, &other));
    CHECK("for too many", io_setup(0x10000000, &other));
    CHECK("to nowhere", io_setup(1, BAD_POINTER));
    other = 1;
    CHECK("where something is", io_setup(1, &other));
    CHECK("set up", io_setup(16, &context));
    CHECK_TRUE("an id", context != 0);
    CHECK("destroy nothing", io_destroy(0));
    CHECK("destroy something else", io_destroy((aio_context_t)(uintptr_t)&other));
    other = 0;
    CHECK("another", io_setup(16, &other));
    CHECK_TRUE("another id", context != other);
    CHECK("destroy", io_destroy(other));
    CHECK("destroy again", io_destroy(other));
    CHECK("submit there", io_submit(other, 0, NULL));
    CHECK("events from there", io_getevents(other, 0, 0, NULL, NULL));
}

static void transfers(void)
{
    char buffer[64] = "0123456789abcdef";
    struct iovec parts[2] = { { buffer, 4 }, { buffer + 8, 4 } };
    try("write", file, IOCB_CMD_PWRITE, buffer, 16, 0);
    memset(buffer, 0, sizeof buffer);
    try("read", file, IOCB_CMD_PREAD, buffer, 10, 4);
    CHECK_STR("it is", buffer);
    try("read at the end", file, IOCB_CMD_PREAD, buffer, 10, 16);
    try("read of parts", file, IOCB_CMD_PREADV, parts, 2, 8);
    check_line("they are: %.4s %.4s\n", buffer, buffer + 8);
    try("write of parts", file, IOCB_CMD_PWRITEV, parts, 2, 16);
    CHECK("the offset stays", lseek(file, 0, SEEK_CUR));
    CHECK("and the file grows", lseek(file, 0, SEEK_END));
    try("sync", file, IOCB_CMD_FSYNC, NULL, 0, 0);
    try("sync of data", file, IOCB_CMD_FDSYNC, NULL, 0, 0);
    try("sync of a part", file, IOCB_CMD_FSYNC, buffer, 1, 0);
    try("no such request", file, 77, buffer, 1, 0);
    try("negative offset", file, IOCB_CMD_PREAD, buffer, 1, -1);
    try("negative length", file, IOCB_CMD_PREAD, buffer, (size_t)-1, 0);
    try("no descriptor", 999, IOCB_CMD_PREAD, buffer, 1, 0);
    try("bad buffer", file, IOCB_CMD_PREAD, BAD_POINTER, 4, 0);
    try("bad parts", file, IOCB_CMD_PREADV, BAD_POINTER, 1, 0);
    int reader = open("file", O_RDONLY), directory = open(".", O_RDONLY);
    try("write by who reads", reader, IOCB_CMD_PWRITE, buffer, 1, 0);
    try("read of a directory", directory, IOCB_CMD_PREAD, buffer, 1, 0);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    try("write to a pipe", ends[1], IOCB_CMD_PWRITE, "pipe", 4, 123);
    memset(buffer, 0, sizeof buffer);
    try("read of a pipe", ends[0], IOCB_CMD_PREAD, buffer, 10, 456);
    CHECK_STR("it is", buffer);

    struct iocb one = request(file, IOCB_CMD_PREAD, buffer, 1, 0);
    one.aio_reserved2 = 1;
    outcome("reserved", &one);
    one = request(file, IOCB_CMD_PREAD, buffer, 1, 0);
    one.aio_rw_flags = 0x40000000;
    outcome("unknown flags", &one);
    one.aio_rw_flags = RWF_NOWAIT;
    outcome("not to wait", &one);
    one = request(file, IOCB_CMD_PWRITE, "end", 3, 0);
    one.aio_rw_flags = RWF_APPEND;
    outcome("at the end", &one);
    CHECK("there", lseek(file, 0, SEEK_END));
    close(reader);
    close(directory);
}

static void several(void)
{
    char buffer[8];
    struct iocb good = request(file, IOCB_CMD_PREAD, buffer, 1, 0), bad = request(999, IOCB_CMD_PREAD, buffer, 1, 0);
    struct iocb *list[] = { &good, &good, &bad, &good };
    struct io_event events[8];
    struct timespec none = { 0, 0 }, soon = { 0, 20000000 };
    CHECK("none", io_submit(context, 0, list));
    CHECK("fewer than none", io_submit(context, -1, list));
    CHECK("no list", io_submit(context, 1, BAD_POINTER));
    CHECK("of nowhere", io_submit(context, 1, (struct iocb *[]){ BAD_POINTER }));
    CHECK("those before the bad one", io_submit(context, 4, list));
    CHECK("the bad one", io_submit(context, 1, list + 2));
    CHECK("one event", io_getevents(context, 1, 1, events, NULL));
    CHECK("the other", io_getevents(context, 0, 8, events, &none));
    CHECK("no more", io_getevents(context, 0, 8, events, &none));
    CHECK("not at once", io_getevents(context, 1, 8, events, &none));
    CHECK("not soon", io_getevents(context, 1, 8, events, &soon));
    CHECK("more at least than at most", io_getevents(context, 2, 1, events, &none));
    CHECK("fewer than none", io_getevents(context, -1, 1, events, &none));
    CHECK("bad time", io_getevents(context, 0, 1, events, BAD_POINTER));
    REQUIRE(submit(&good) == 1);
    CHECK("to nowhere", io_getevents(context, 1, 1, BAD_POINTER, NULL));
    CHECK("still there", io_getevents(context, 1, 1, events, NULL));
    CHECK("cancel what is done", io_cancel(context, &good, events));
    CHECK("cancel nothing", io_cancel(context, BAD_POINTER, events));
    good.aio_key = 5;
    CHECK("cancel with another key", io_cancel(context, &good, events));

    int counter = eventfd(0, EFD_NONBLOCK);
    uint64_t count = 0;
    good.aio_flags = IOCB_FLAG_RESFD;
    good.aio_resfd = counter;
    struct iocb *two[] = { &good, &good };
    CHECK("with a counter", io_submit(context, 2, two));
    CHECK("events", io_getevents(context, 2, 8, events, NULL));
    REQUIRE(read(counter, &count, 8) == 8);
    CHECK("counted", count);
    uint64_t full = UINT64_MAX - 1;
    REQUIRE(write(counter, &full, 8) == 8 && submit(&good) == 1);
    struct pollfd overflown = { counter, 0, 0 };
    CHECK("poll of a counter that overflowed", poll(&overflown, 1, 0));
    CHECK("events", overflown.revents);
    REQUIRE(io_getevents(context, 1, 1, events, NULL) == 1 && read(counter, &count, 8) == 8);
    CHECK_TRUE("it is full", count == UINT64_MAX);
    good.aio_resfd = file;
    CHECK("no counter", submit(&good));
    good.aio_resfd = 999;
    CHECK("no descriptor of a counter", submit(&good));
}

static aio_context_t waited;

static void *later(void *_)
{
    (void)_;
    static char buffer[4];
    static struct iocb one;
    one = request(file, IOCB_CMD_PREAD, buffer, 1, 0);
    struct iocb *list[] = { &one };
    check_sleep_ms(20);
    REQUIRE(io_submit(waited, 1, list) == 1);
    check_sleep_ms(20);
    REQUIRE(io_submit(waited, 1, list) == 1);
    return NULL;
}

static void on_alarm(int number) { (void)number; }

static void waiting(void)
{
    struct io_event events[4];
    waited = context;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, later, NULL) == 0);
    CHECK("until there are two", io_getevents(context, 2, 4, events, NULL));
    pthread_join(thread, NULL);
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    sigaction(SIGUSR1, &action, NULL);
    pid_t child = check_fork();
    if (child == 0) {
        CHECK("in a child", io_getevents(context, 0, 4, events, NULL));
        aio_context_t own = 0;
        REQUIRE(io_setup(1, &own) == 0);
        CHECK("interrupted", io_getevents(own, 1, 4, events, NULL));
        _exit(0);
    }
    for (int i = 0; i < 20; i++) {
        check_sleep_ms(10);
        kill(child, SIGUSR1);
    }
    CHECK_STATUS("child", check_wait(child));

    sigset_t all;
    sigfillset(&all);
    struct {
        const sigset_t *set;
        size_t size;
    } mask = { &all, 8 };
    struct timespec soon = { 0, 10000000 };
    CHECK("with a mask", syscall(SYS_io_pgetevents, context, 1L, 4L, events, &soon, &mask));
    mask.size = 4;
    CHECK("of a bad size", syscall(SYS_io_pgetevents, context, 1L, 4L, events, &soon, &mask));
    CHECK("without", syscall(SYS_io_pgetevents, context, 1L, 4L, events, &soon, NULL));
}

static long number_in(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY);
    REQUIRE(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atol(text);
}

int main(void)
{
    file = open("file", O_CREAT | O_RDWR, 0600);
    REQUIRE(file >= 0);
    setting_up();
    transfers();
    several();
    waiting();
    // A child that has the page has no context there.
    REQUIRE(madvise((void *)context, 4096, MADV_DOFORK) == 0);
    CHECK_CHILD("in a child that has the page", CHECK("events", io_getevents(context, 0, 0, NULL, NULL)));
    CHECK_TRUE("counted", number_in("/proc/sys/fs/aio-nr") >= 16);
    CHECK("as many as may be", number_in("/proc/sys/fs/aio-max-nr") >= 65536 ? 1 : 0);
    CHECK("destroy", io_destroy(context));
    return 0;
}
