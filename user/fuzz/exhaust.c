// Programs that take until there is no more: the kernel must end the right one or give the right error, go on, and get
// everything back.
//
//     exhaust [TRIAL...]      runs these trials, or all; `exhaust list` names them
//
// Only for guests. As process 1 it takes its arguments from the kernel's command line and powers the machine off at the end.
//
// Each trial runs in a process of its own, which may be killed for what it does; then whatever it left is killed, a new
// process must run, and the free memory must be what it was before, but for what the kernel keeps for later. Each prints
// `exhaust: NAME: OUTCOME, N KiB lost`; the last line is `exhaust: N trials, done, N failed`.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define SECONDS 60
// futex(2), whose header musl has not.
#define FUTEX_WAIT_PRIVATE 128
// What the kernel may keep of a peak, in per cent of all memory: caches of slots, a table that has grown.
#define KEPT_PER_CENT 1
// How much memory that is taken of at least: what caches keep does not get less with the machine.
#define CACHED_KIB (128L << 10)
// Each further core has caches of its own: page tables, free slots of each size.
#define CORE_CACHED_KIB 450L

// What a trial reports by its exit code.
enum { FINE = 0, WRONG = 1 };

static long memory_kib(const char *name)
{
    char text[2048] = "";
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    char *line = got > 0 ? strstr(text, name) : NULL;
    return line ? strtol(line + strlen(name) + 1, NULL, 10) : -1;
}

static void touch(size_t each)
{
    for (;;) {
        char *block = mmap(NULL, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            _exit(errno == ENOMEM ? FINE : WRONG);
        for (size_t i = 0; i < each; i += PAGE)
            block[i] = 1;
    }
}

static void memory(void)
{
    touch(1 << 20);
}

// Page tables are memory too: a page in each 2 MiB.
static void page_tables(void)
{
    size_t size = 1ul << 45;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        _exit(errno == ENOMEM ? FINE : WRONG);
    for (size_t i = 0; i < size; i += 2 << 20)
        (void)*(volatile char *)(block + i);
    _exit(WRONG);
}

static void shared_memory(void)
{
    int fd = memfd_create("exhaust", 0);
    size_t size = 1ul << 36;
    if (fd < 0 || ftruncate(fd, size) != 0)
        _exit(FINE);
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (block == MAP_FAILED)
        _exit(errno == ENOMEM ? FINE : WRONG);
    for (size_t i = 0; i < size; i += PAGE)
        block[i] = 1;
    _exit(WRONG);
}

static void locked_memory(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        _exit(FINE);
    touch(8 << 20);
}

// Two eat at the same time while others only wait.
static void hungry_family(void)
{
    for (int i = 0; i < 20; i++)
        if (fork() == 0)
            for (;;)
                pause();
    fork();
    touch(64 << 10);
}

static void breed(int with_memory)
{
    for (;;) {
        pid_t pid = fork();
        if (pid < 0) {
            if (errno != EAGAIN && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
        if (pid == 0) {
            if (with_memory) {
                char *block = malloc(256 << 10);
                if (block)
                    memset(block, 1, 256 << 10);
            }
            for (;;)
                pause();
        }
    }
    _exit(FINE);
}

static void processes(void)
{
    breed(0);
}

static void fat_processes(void)
{
    breed(1);
}

static void limited_processes(void)
{
    struct rlimit limit = { 100, 100 };
    setrlimit(RLIMIT_NPROC, &limit);
    if (setuid(1234) != 0)
        _exit(WRONG);
    // Each child forks as well: all that fits within the limit.
    for (int i = 0; i < 2000; i++) {
        pid_t pid = fork();
        if (pid < 0 && errno != EAGAIN && errno != ENOMEM)
            _exit(WRONG);
        if (pid < 0)
            usleep(100);
    }
    _exit(FINE);
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void threads(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16 << 10);
    for (int i = 0; i < 40000; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, wait_for_ever, NULL);
        if (error)
            _exit(error == EAGAIN || error == ENOMEM ? FINE : WRONG);
    }
    _exit(FINE);
}

static void *wait_for_a_word(void *unused)
{
    int word = 0;
    for (;;)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return unused;
}

// Each waits for a futex of its own.
static void futex_waiters(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + PAGE);
    for (int i = 0; i < 6000; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, wait_for_a_word, NULL);
        if (error)
            _exit(error == EAGAIN || error == ENOMEM ? FINE : WRONG);
    }
    usleep(100000);
    _exit(FINE);
}

static void write_all(const char *path)
{
    static char block[64 << 10];
    memset(block, 'x', sizeof block);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t written;
    while ((written = write(fd, block, sizeof block)) > 0)
        ;
    if (fd < 0 || written == 0 || (errno != ENOSPC && errno != ENOMEM))
        _exit(WRONG);
}

static void file_system(void)
{
    write_all("big");
    int other = open("small", O_WRONLY | O_CREAT, 0600);
    if (other >= 0 && write(other, "x", 1) == 1 && unlink("small") != 0)
        _exit(WRONG);
    if (unlink("big") != 0)
        _exit(WRONG);
    _exit(FINE);
}

static void mapped_file(void)
{
    int fd = open("mapped", O_RDWR | O_CREAT, 0600);
    unlink("mapped");
    size_t size = 1ul << 36;
    if (ftruncate(fd, size) != 0)
        _exit(FINE);
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (block == MAP_FAILED)
        _exit(WRONG);
    for (size_t i = 0; i < size; i += PAGE)
        block[i] = 1;
    _exit(WRONG);
}

static void holes(void)
{
    int fd = open("holes", O_RDWR | O_CREAT, 0600);
    unlink("holes");
    for (uint64_t at = 1; at < 1ull << 62; at *= 2)
        for (int i = 0; i < 64; i++)
            if (pwrite(fd, "x", 1, at + (uint64_t)i * 1234567) != 1 && errno != EFBIG && errno != ENOSPC && errno != ENOMEM)
                _exit(WRONG);
    _exit(FINE);
}

// A page in each 512 KiB, and then all but the first are cut off.
static void cut_off(void)
{
    int fd = open("long", O_RDWR | O_CREAT, 0600);
    unlink("long");
    for (off_t i = 0; i < 4000; i++)
        if (pwrite(fd, "x", 1, i << 19) != 1) {
            if (errno != ENOSPC && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
    char byte = 0;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, 1400l << 20) != 0 && errno != ENOMEM)
        _exit(WRONG);
    _exit(ftruncate(fd, 2) == 0 && pread(fd, &byte, 1, 0) == 1 && byte == 'x' ? FINE : WRONG);
}

// Many names in one directory, and a listing with as much room as there can be.
static void names(void)
{
    mkdir("names", 0700);
    if (chdir("names") != 0)
        _exit(WRONG);
    char name[240];
    long count = 0;
    for (; count < 60000; count++) {
        snprintf(name, sizeof name, "%0200ld", count);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0) {
            if (errno != ENOSPC && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
        close(fd);
    }
    size_t size = 32 << 20;
    char *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open(".", O_RDONLY);
    if (fd >= 0 && room != MAP_FAILED)
        while (syscall(SYS_getdents64, fd, room, size) > 0)
            ;
    while (count-- > 0) {
        snprintf(name, sizeof name, "%0200ld", count);
        if (unlink(name) != 0)
            _exit(WRONG);
    }
    _exit(FINE);
}

static void directories(void)
{
    long depth = 0;
    for (; depth < 20000; depth++)
        if (mkdir("d", 0700) != 0 || chdir("d") != 0) {
            if (errno != ENOSPC && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
    char path[PAGE];
    if (getcwd(path, sizeof path) && depth > PAGE)
        _exit(WRONG);
    while (depth-- > 0)
        if (chdir("..") != 0 || rmdir("d") != 0)
            _exit(WRONG);
    _exit(FINE);
}

// A file system of its own is taken down with a deep tree in it.
static void deep_mount(void)
{
    mkdir("mount", 0700);
    if (mount("none", "mount", "tmpfs", 0, NULL) != 0 || chdir("mount") != 0)
        _exit(WRONG);
    for (int depth = 0; depth < 30000; depth++)
        if (mkdir("d", 0700) != 0 || chdir("d") != 0)
            break;
    if (chdir("/tmp") != 0 || umount2("/tmp/mount", MNT_DETACH) != 0)
        _exit(WRONG);
    _exit(FINE);
}

static void mounts(void)
{
    char path[32];
    int count = 0;
    for (; count < 3000; count++) {
        snprintf(path, sizeof path, "m%d", count);
        mkdir(path, 0700);
        if (mount("none", path, "tmpfs", 0, NULL) != 0) {
            if (errno != ENOMEM && errno != ENOSPC)
                _exit(WRONG);
            break;
        }
    }
    int fd = open("/proc/self/mounts", O_RDONLY);
    static char text[64 << 10];
    while (read(fd, text, sizeof text) > 0)
        ;
    while (count-- > 0) {
        snprintf(path, sizeof path, "m%d", count);
        if (umount2(path, 0) != 0 || rmdir(path) != 0)
            _exit(WRONG);
    }
    _exit(FINE);
}

static void links(void)
{
    char from[32], to[32];
    symlink(".", "s0");
    for (int i = 1; i < 2000; i++) {
        snprintf(from, sizeof from, "s%d/s%d", i - 1, i - 1);
        snprintf(to, sizeof to, "s%d", i);
        symlink(from, to);
    }
    struct stat status;
    if (stat("s1999", &status) != -1 || errno != ELOOP)
        _exit(WRONG);
    _exit(FINE);
}

static void raise_descriptors(void)
{
    struct rlimit limit = { 1 << 20, 1 << 20 };
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int is_shortage(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOSPC || errno == ENOBUFS || errno == EAGAIN;
}

static void descriptors(void)
{
    raise_descriptors();
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    _exit(is_shortage() ? FINE : WRONG);
}

static void highest_descriptor(void)
{
    raise_descriptors();
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int fd = (int)(limit.rlim_cur - 1);
    // A system may have fewer in all than the limit says.
    if (dup2(0, fd) != fd && !is_shortage() && errno != EBADF)
        _exit(WRONG);
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    _exit(FINE);
}

// As large as the sets can be; no descriptor is in them.
static void large_sets(void)
{
    raise_descriptors();
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    size_t size = 128 << 10;
    char *sets = mmap(NULL, 3 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sets == MAP_FAILED)
        _exit(FINE);
    struct timespec now = { 0, 0 };
    long ready = syscall(SYS_pselect6, (int)limit.rlim_cur, sets, sets + size, sets + 2 * size, &now, NULL);
    _exit(ready == 0 || errno == ENOMEM ? FINE : WRONG);
}

static void terminals(void)
{
    raise_descriptors();
    while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
        ;
    _exit(is_shortage() ? FINE : WRONG);
}

// Nobody reads what is typed, nor its echo.
static void typed_lines(void)
{
    static char lines[1024];
    memset(lines, '\n', sizeof lines);
    for (int i = 0; i < 20; i++) {
        int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
        if (master < 0)
            _exit(is_shortage() ? FINE : WRONG);
        for (int j = 0; j < 200; j++)
            if (write(master, lines, sizeof lines) < 0 && !is_shortage())
                _exit(WRONG);
    }
    _exit(FINE);
}

// One port, at one address of this machine after the other.
static void addresses(void)
{
    raise_descriptors();
    for (uint32_t i = 0; i < 6000; i++) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7000), .sin_addr = { htonl(0x7f000001 + i) } };
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
            _exit(is_shortage() || errno == EADDRNOTAVAIL ? FINE : WRONG);
    }
    _exit(FINE);
}

// Memory is full, and terminals have of what is left so much that the kernel refuses large blocks of it: each call that wants one gets its error.
static void refused_blocks(void)
{
    enum { TERMINALS = 200 };
    static char block[64 << 10], value[65500];
    int masters[TERMINALS];
    raise_descriptors();
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    size_t size = 128 << 10;
    char *sets = mmap(NULL, 3 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    memset(block, '\n', sizeof block);
    memset(value, 1, sizeof value);
    int cut = open("cut", O_RDWR | O_CREAT, 0600), filling = open("filling", O_RDWR | O_CREAT, 0600);
    unlink("cut");
    unlink("filling");
    for (off_t i = 0; i < 4000; i++)
        if (pwrite(cut, "x", 1, i << 19) != 1)
            _exit(is_shortage() ? FINE : WRONG);
    for (int i = 0; i < TERMINALS; i++)
        masters[i] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
    while (write(filling, block, sizeof block) > 0)
        ;
    while (write(filling, block, PAGE) > 0)
        ;
    // A 64th is for the kernel alone, 4 MiB at most; of the second half of that it gives no large blocks away.
    long refused = memory_kib("MemTotal") / 128;
    for (int i = 0; i < TERMINALS * 3 && memory_kib("MemFree") > (refused < 2048 ? refused : 2048); i++)
        if (write(masters[i / 3], block, 1024) < 0 && !is_shortage())
            _exit(WRONG);
    struct timespec now = { 0, 0 };
    if (syscall(SYS_pselect6, (int)limit.rlim_cur, sets, sets + size, sets + 2 * size, &now, NULL) != 0 && errno != ENOMEM)
        _exit(WRONG);
    if (fsetxattr(cut, "user.long", value, sizeof value, 0) != 0 && !is_shortage())
        _exit(WRONG);
    if (ftruncate(cut, 2) != 0)
        _exit(WRONG);
    // More than a terminal has room for.
    for (int i = 0; i < 100; i++)
        if (write(masters[0], block, 1024) < 0 && !is_shortage())
            _exit(WRONG);
    _exit(FINE);
}

static void pipes(void)
{
    raise_descriptors();
    static char block[64 << 10];
    int fds[2];
    while (pipe2(fds, O_NONBLOCK) == 0) {
        fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
        while (write(fds[1], block, sizeof block) > 0)
            ;
    }
    _exit(is_shortage() ? FINE : WRONG);
}

// One takes all memory by pipes, then another needs a little: the first must be ended, not the second, though it has more pages.
static void hoarded_pipes(void)
{
    int ready[2];
    if (pipe(ready) != 0)
        _exit(WRONG);
    // It is there before memory ends, with its mapping: whether there is room for one more then is another question.
    pid_t other = fork();
    if (other == 0) {
        close(ready[1]);
        size_t size = 16 << 20;
        char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char byte;
        // Nothing comes if the hoarder was ended already.
        if (block == MAP_FAILED || read(ready[0], &byte, 1) < 0)
            _exit(WRONG);
        memset(block, 1, size);
        _exit(FINE);
    }
    pid_t hoarder = fork();
    if (hoarder == 0) {
        raise_descriptors();
        static char block[64 << 10];
        int fds[2];
        while (pipe2(fds, O_NONBLOCK) == 0) {
            fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
            while (write(fds[1], block, sizeof block) > 0)
                ;
        }
        if (write(ready[1], "x", 1) != 1)
            _exit(WRONG);
        for (;;)
            pause();
    }
    close(ready[1]);
    int status = 0;
    if (other < 0 || waitpid(other, &status, 0) != other || status != 0)
        _exit(WRONG);
    _exit(FINE);
}

// Many processes are blocked in the kernel, each on a stack of its own, at the moment when memory ends.
static void blocked_writers(void)
{
    static char block[64 << 10];
    for (int i = 0; i < 200; i++) {
        if (fork() != 0)
            continue;
        int fds[2];
        while (pipe(fds) == 0) {
            fcntl(fds[1], F_SETFL, O_NONBLOCK);
            if (write(fds[1], block, sizeof block) < 0)
                break;
        }
        if (pipe(fds) == 0 && write(fds[1], block, sizeof block) > 0)
            write(fds[1], block, 1);
        touch(1 << 20);
    }
    sleep(2);
    _exit(FINE);
}

static void sockets(void)
{
    raise_descriptors();
    static char block[32 << 10];
    int fds[2];
    while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0)
        while (send(fds[1], block, sizeof block, MSG_NOSIGNAL) > 0)
            ;
    _exit(is_shortage() ? FINE : WRONG);
}

static int send_descriptor(int through, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = { 0 };
    char byte = 0;
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(through, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

// Each socket is in the queue of the next, and nobody else has it.
static void nested_sockets(void)
{
    int inner[2], outer[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner) != 0)
        _exit(is_shortage() ? FINE : WRONG);
    for (int i = 0; i < 20000; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, outer) != 0)
            break;
        int sent = send_descriptor(outer[0], inner[0]) && send_descriptor(outer[0], inner[1]);
        close(inner[0]);
        close(inner[1]);
        memcpy(inner, outer, sizeof inner);
        if (!sent)
            break;
    }
    close(inner[0]);
    close(inner[1]);
    _exit(FINE);
}

// A socket in its own queue.
static void cyclic_sockets(void)
{
    for (int i = 0; i < 300; i++) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
            _exit(is_shortage() ? FINE : WRONG);
        send_descriptor(fds[0], fds[1]);
        send_descriptor(fds[1], fds[0]);
        close(fds[0]);
        close(fds[1]);
    }
    _exit(FINE);
}

static void epolls(void)
{
    raise_descriptors();
    int epoll = epoll_create1(0), last = epoll;
    if (epoll < 0)
        _exit(WRONG);
    for (;;) {
        int event = eventfd(1, 0);
        struct epoll_event what = { EPOLLIN, { .fd = event } };
        if (event < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &what) != 0)
            break;
        if (event % 100 == 0) {
            int next = epoll_create1(0);
            if (next < 0 || epoll_ctl(next, EPOLL_CTL_ADD, last, &what) != 0)
                continue;
            last = next;
        }
    }
    if (!is_shortage() && errno != ELOOP)
        _exit(WRONG);
    struct epoll_event ready[64];
    epoll_wait(epoll, ready, 64, 0);
    _exit(FINE);
}

// Items without files of their own: each set has the same 500.
static void epoll_items(void)
{
    enum { FILES = 500 };
    int files[FILES];
    raise_descriptors();
    for (int i = 0; i < FILES; i++)
        if ((files[i] = eventfd(0, 0)) < 0)
            _exit(WRONG);
    for (int sets = 0; sets < 400; sets++) {
        int epoll = epoll_create1(0);
        for (int i = 0; i < FILES; i++) {
            struct epoll_event what = { EPOLLIN, { .fd = files[i] } };
            if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, files[i], &what) != 0)
                _exit(is_shortage() ? FINE : WRONG);
        }
    }
    _exit(FINE);
}

// Each set has a bell.
static void epoll_sets(void)
{
    raise_descriptors();
    while (epoll_create1(0) >= 0)
        ;
    _exit(is_shortage() ? FINE : WRONG);
}

// No user has a limit for what is made with inotify.
static void unlimit_inotify(void)
{
    static const char *const limits[] = { "max_user_instances", "max_user_watches", "max_queued_events" };
    for (int i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", limits[i]);
        int fd = open(path, O_WRONLY);
        if (fd < 0 || write(fd, "2000000", 7) != 7 || close(fd) != 0)
            _exit(WRONG);
    }
    raise_descriptors();
}

// One instance watches 1,000 files, then another one does.
static void inotify_watches(void)
{
    enum { FILES = 1000 };
    unlimit_inotify();
    if (mkdir("watched", 0755) != 0)
        _exit(WRONG);
    for (int i = 0; i < FILES; i++) {
        char path[32];
        snprintf(path, sizeof path, "watched/%d", i);
        if (mknod(path, S_IFREG | 0644, 0) != 0)
            _exit(is_shortage() ? FINE : WRONG);
    }
    for (;;) {
        int watcher = inotify_init1(IN_NONBLOCK);
        for (int i = 0; i < FILES; i++) {
            char path[32];
            snprintf(path, sizeof path, "watched/%d", i);
            if (watcher < 0 || inotify_add_watch(watcher, path, IN_ALL_EVENTS) < 0)
                _exit(is_shortage() ? FINE : WRONG);
        }
    }
}

// Events that nobody reads, with names as long as can be: what there is no memory for is lost, and nobody fails for it.
static void inotify_events(void)
{
    unlimit_inotify();
    int watcher = inotify_init1(IN_NONBLOCK);
    if (watcher < 0 || mkdir("full", 0755) != 0 || inotify_add_watch(watcher, "full", IN_ALL_EVENTS) < 0)
        _exit(WRONG);
    char names[2][280];
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof names[i], "full/%d%0*d", i, 250, 0);
    for (int i = 0; i < 400000; i++)
        if (mkdir(names[i % 2], 0755) != 0 || rmdir(names[i % 2]) != 0)
            _exit(is_shortage() ? FINE : WRONG);
    char event[512];
    _exit(read(watcher, event, sizeof event) > 0 ? FINE : WRONG);
}

static void timers(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
    struct itimerspec soon = { { 0, 1000000 }, { 0, 1000000 } };
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 200000; i++) {
        timer_t timer;
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) {
            if (errno != EAGAIN && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
        int number;
        memcpy(&number, &timer, sizeof number);
        if (i % 16 == 0)
            syscall(SYS_timer_settime, number, 0, &soon, NULL);
    }
    usleep(20000);
    _exit(FINE);
}

static void queued_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    setrlimit(RLIMIT_SIGPENDING, &limit);
    for (int i = 0; i < 500000; i++)
        if (sigqueue(getpid(), SIGRTMIN + i % 8, (union sigval){ .sival_int = i }) != 0) {
            if (errno != EAGAIN && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
    _exit(FINE);
}

// No two neighbours can be one.
static void mappings(void)
{
    size_t count = 200000;
    char *block = mmap(NULL, count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        _exit(FINE);
    for (size_t i = 1; i < count; i += 2)
        if (mprotect(block + i * PAGE, PAGE, PROT_READ) != 0) {
            if (errno != ENOMEM)
                _exit(WRONG);
            break;
        }
    int fd = open("/proc/self/maps", O_RDONLY);
    static char text[64 << 10];
    ssize_t got;
    while ((got = read(fd, text, sizeof text)) > 0)
        ;
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    munmap(block, count * PAGE);
    _exit(FINE);
}

static void locks(void)
{
    int fd = open("locks", O_RDWR | O_CREAT, 0600);
    for (off_t i = 0; i < 40000; i++) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i * 2, .l_len = 1 };
        if (fcntl(fd, F_SETLK, &lock) != 0) {
            if (errno != ENOLCK && errno != ENOMEM)
                _exit(WRONG);
            break;
        }
    }
    unlink("locks");
    _exit(FINE);
}

static void attributes(void)
{
    int fd = open("attributes", O_RDWR | O_CREAT, 0600);
    static char value[65500];
    char name[64];
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "user.%d", i);
        if (fsetxattr(fd, name, value, sizeof value, 0) != 0) {
            if (errno != ENOSPC && errno != ENOMEM && errno != E2BIG && errno != EDQUOT && errno != EOPNOTSUPP)
                _exit(WRONG);
            break;
        }
    }
    if (fgetxattr(fd, "user.0", value, sizeof value) < 0 && errno != ENODATA && errno != ENOMEM && errno != EOPNOTSUPP)
        _exit(WRONG);
    unlink("attributes");
    _exit(FINE);
}

static void arguments(void)
{
    static char *list[40000];
    size_t each = 100 << 10;
    char *text = malloc(each);
    memset(text, 'x', each - 1);
    text[each - 1] = 0;
    list[0] = "exhaust";
    list[1] = "nothing";
    for (int i = 2; i < 1000; i++)
        list[i] = text;
    if (execve("/proc/1/exe", list, list) != -1 || errno != E2BIG)
        _exit(WRONG);
    for (int i = 2; i < 39999; i++)
        list[i] = text + each - 20;
    list[39999] = NULL;
    char *none[] = { NULL };
    execve("/proc/1/exe", list, none);
    _exit(errno == E2BIG || errno == ENOMEM ? FINE : WRONG);
}

static char deep(long depth)
{
    volatile char frame[PAGE];
    frame[0] = (char)depth;
    return depth == 0 ? 0 : (char)(deep(depth - 1) + frame[0]);
}

static void stack(void)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    setrlimit(RLIMIT_STACK, &limit);
    deep(1l << 40);
    _exit(WRONG);
}

// System calls whose results go to memory that cannot be had.
static void results(void)
{
    size_t size = 2ul << 30;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int zero = open("/dev/zero", O_RDONLY);
    if (block == MAP_FAILED)
        _exit(FINE);
    for (size_t at = 0; at < size;) {
        ssize_t got = read(zero, block + at, size - at);
        if (got <= 0)
            _exit(FINE);
        at += (size_t)got;
    }
    _exit(FINE);
}

// Output without end, by one call each: others go on meanwhile, and a signal ends it.
static void endless_output(void)
{
    enum { WRITERS = 3, LENGTH = 0x7ffff000 };
    pid_t writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0) {
            int to = open(i < 2 ? "/dev/console" : "/dev/null", O_WRONLY | O_NOCTTY), zero = open("/dev/zero", O_RDONLY);
            if (i == 0) {
                size_t size = 8 << 20;
                char *dots = malloc(size);
                if (dots && write(to, memset(dots, '.', size), size) > 0)
                    _exit(WRONG);
            }
            sendfile(to, zero, NULL, LENGTH);
            for (;;)
                sendfile(open("/dev/null", O_WRONLY), zero, NULL, LENGTH);
        }
    }
    usleep(200000);
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        kill(writers[i], SIGKILL);
        if (waitpid(writers[i], &status, 0) != writers[i] || !WIFSIGNALED(status))
            _exit(WRONG);
    }
    _exit(FINE);
}

static const struct {
    const char *name;
    void (*run)(void);
    // Whether it may be killed for it.
    int may_die;
    // Whether nothing may be kept for a second run, either.
    int is_strict;
} trials[] = {
    { "memory", memory, 1 }, { "page-tables", page_tables, 1 }, { "shared-memory", shared_memory, 1 },
    { "locked-memory", locked_memory, 1 }, { "hungry-family", hungry_family, 1 }, { "processes", processes, 1 },
    { "fat-processes", fat_processes, 1 }, { "limited-processes", limited_processes, 0 }, { "threads", threads, 1 }, { "futex-waiters", futex_waiters, 1 },
    { "file-system", file_system, 0 }, { "mapped-file", mapped_file, 1 }, { "holes", holes, 0 }, { "cut-off", cut_off, 0 }, { "names", names, 1 },
    { "directories", directories, 0 }, { "deep-mount", deep_mount, 0 }, { "mounts", mounts, 0 }, { "links", links, 0 },
    { "descriptors", descriptors, 1 }, { "highest-descriptor", highest_descriptor, 0 }, { "large-sets", large_sets, 0 }, { "terminals", terminals, 1 }, { "typed-lines", typed_lines, 1 }, { "addresses", addresses, 1 }, { "refused-blocks", refused_blocks, 1 }, { "pipes", pipes, 1 }, { "hoarded-pipes", hoarded_pipes, 0 },
    { "blocked-writers", blocked_writers, 1 }, { "sockets", sockets, 1 }, { "nested-sockets", nested_sockets, 0 }, { "cyclic-sockets", cyclic_sockets, 0 },
    { "epolls", epolls, 1 }, { "epoll-items", epoll_items, 1, 1 }, { "epoll-sets", epoll_sets, 1, 1 }, { "inotify-watches", inotify_watches, 1, 1 }, { "inotify-events", inotify_events, 1, 1 }, { "timers", timers, 0 }, { "queued-signals", queued_signals, 1 }, { "mappings", mappings, 1 },
    { "locks", locks, 0 }, { "attributes", attributes, 0 }, { "arguments", arguments, 0 }, { "stack", stack, 1 },
    { "results", results, 1 }, { "endless-output", endless_output, 0 },
};

#define TRIALS (sizeof trials / sizeof trials[0])

static void reap_all(void)
{
    kill(-1, SIGKILL);
    for (;;) {
        pid_t pid = waitpid(-1, NULL, __WALL);
        if (pid < 0 && errno == ECHILD)
            return;
    }
}

static void enter(unsigned index)
{
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    close(null);
    if (chdir("/tmp") != 0)
        _exit(WRONG);
    trials[index].run();
    _exit(WRONG);
}

static const char *outcome(unsigned index, int *is_wrong)
{
    static char text[80];
    pid_t pid = fork();
    if (pid == 0)
        enter(index);
    int status = 0;
    for (int waited = 0; waitpid(pid, &status, WNOHANG) != pid; waited++) {
        if (waited > SECONDS * 100) {
            *is_wrong = 1;
            return "does not end";
        }
        usleep(10000);
    }
    if (WIFSIGNALED(status)) {
        int died = WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGSEGV;
        *is_wrong = !died || !trials[index].may_die;
        snprintf(text, sizeof text, "ended by signal %d", WTERMSIG(status));
        return text;
    }
    *is_wrong = WEXITSTATUS(status) != FINE;
    return *is_wrong ? "failed" : "refused";
}

// One run of a trial; whether it is wrong but for what it lost, and how much that is.
static int run_once(unsigned index, long *lost)
{
    long before = memory_kib("MemFree");
    int is_wrong = 0;
    const char *what = outcome(index, &is_wrong);
    reap_all();
    // The next process must have what it needs.
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    int status = 0;
    int goes_on = pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7;
    usleep(20000);
    *lost = before - memory_kib("MemFree");
    printf("exhaust: %s: %s, %ld KiB lost%s\n", trials[index].name, what, *lost, goes_on ? "" : ", no new process");
    return is_wrong || !goes_on;
}

#define STRETCHES "/proc/ebb/stretch"

// Of an Ebb that measures how long it keeps interrupts off: the longest stretch since this was last asked.
static void print_stretch(const char *during)
{
    char line[256] = "";
    FILE *file = fopen(STRETCHES, "r");
    if (!file)
        return;
    if (fgets(line, sizeof line, file))
        printf("stretch: %s: %s", during, line);
    fclose(file);
    int forget = open(STRETCHES, O_WRONLY);
    if (forget >= 0 && write(forget, "0", 1) == 1)
        close(forget);
}

static int trial(unsigned index)
{
    long lost;
    int is_wrong = run_once(index, &lost);
    print_stretch(trials[index].name);
    long memory = memory_kib("MemTotal");
    long further_cores = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    long kept = (memory > CACHED_KIB ? memory : CACHED_KIB) * KEPT_PER_CENT / 100 + further_cores * CORE_CACHED_KIB;
    // How full caches are depends on when interrupts came. What is kept is kept once; what is lost is lost each time.
    if (!is_wrong && lost > kept)
        is_wrong = trials[index].is_strict || run_once(index, &lost) || lost > kept;
    if (is_wrong)
        printf("exhaust: %s: FAILED\n", trials[index].name);
    fflush(stdout);
    return is_wrong;
}

static void become_init(void)
{
    mkdir("/dev", 0755);
    mkdir("/proc", 0555);
    mkdir("/tmp", 01777);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    if (console >= 0)
        for (int fd = 0; fd < 3; fd++)
            dup2(console, fd);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "nothing") == 0)
        return 0;
    if (argc > 1 && strcmp(argv[1], "list") == 0) {
        for (unsigned i = 0; i < TRIALS; i++)
            puts(trials[i].name);
        return 0;
    }
    if (getpid() != 1) {
        fprintf(stderr, "exhaust: to be run in a guest, as process 1\n");
        return 2;
    }
    become_init();
    int failed = 0, count = 0;
    for (unsigned i = 0; i < TRIALS; i++) {
        int wanted = argc < 2;
        for (int each = 1; each < argc; each++)
            wanted |= strcmp(argv[each], trials[i].name) == 0;
        if (!wanted)
            continue;
        count++;
        failed += trial(i);
    }
    printf("exhaust: %d trials, done, %d failed\n", count, failed);
    fflush(stdout);
    reboot(RB_POWER_OFF);
    return 0;
}
