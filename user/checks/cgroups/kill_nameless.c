// Files and FIFOs without names, and inotify instances, of a group that is killed: what they count for is given back at once, and what others have of them stays.
#include "../cgroup.h"
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#define ROUNDS 5
#define FILES 100
#define LARGE 300
#define FIFOS 60
#define INSTANCES 100

// What somebody else gets from a workload.
struct told {
    int file, fifo;
};

static int make_file(int pages)
{
    static char page[4096] = "content";
    int fd = open("t/file", O_CREAT | O_RDWR | O_EXCL, 0600);
    REQUIRE(fd >= 0);
    for (int i = 0; i < pages; i++)
        REQUIRE(write(fd, page, sizeof page) == sizeof page);
    REQUIRE(unlink("t/file") == 0);
    return fd;
}

static int make_fifo(void)
{
    REQUIRE(mkfifo("t/fifo", 0600) == 0);
    int fd = open("t/fifo", O_RDWR | O_NONBLOCK);
    REQUIRE(fd >= 0 && write(fd, "content", 8) == 8 && unlink("t/fifo") == 0);
    return fd;
}

// How many instances there may be now, up to some.
static int instances(int count)
{
    int fds[INSTANCES], made = 0;
    while (made < count && (fds[made] = inotify_init1(0)) >= 0)
        made++;
    for (int i = 0; i < made; i++)
        close(fds[i]);
    return made;
}

// Starts a workload in the group, which says when it is ready.
static pid_t start(int forks, struct told *told)
{
    int ready[2], fd = open(at("a"), O_RDONLY | O_DIRECTORY);
    REQUIRE(pipe(ready) == 0);
    pid_t child = clone_into(fd, INTO_CGROUP, 88);
    REQUIRE(child >= 0);
    close(fd);
    if (child == 0) {
        struct told own;
        for (int i = 0; i < FILES; i++)
            own.file = make_file(i % 5 + 1);
        make_file(LARGE);
        for (int i = 0; i < FIFOS; i++)
            own.fifo = make_fifo();
        for (int i = 0; i < INSTANCES; i++)
            REQUIRE(inotify_init1(0) >= 0);
        tell_and_stay(ready, &own, sizeof own, forks);
    }
    hear(ready, told, sizeof *told);
    return child;
}

static int is_as_before(const struct statfs *before)
{
    struct statfs now;
    REQUIRE(statfs("t", &now) == 0);
    return now.f_bfree == before->f_bfree && now.f_ffree == before->f_ffree;
}

// What ends on a core of several is over once the others have passed by.
static int is_soon_as_before(const struct statfs *before)
{
    for (int tries = 0; tries < 2000 && !is_as_before(before); tries++)
        check_sleep_ms(1);
    return is_as_before(before);
}

int main(void)
{
    cgroup_begin();
    usable = usable && is_ebb();
    struct rlimit files = { 4096, 4096 };
    setrlimit(RLIMIT_NOFILE, &files);
    DO(cgroup_give_all(); REQUIRE(mkdir(at("a"), 0755) == 0));
    int alone = 0, counted = 0, over_fork = 0, taken = 0, kept = 0, unmounted = 0, uncharged = 0;
    for (int round = 0; usable && round < ROUNDS; round++) {
        struct statfs before;
        REQUIRE(mkdir("t", 0755) == 0 && mount("none", "t", "tmpfs", 0, "size=8M") == 0 && statfs("t", &before) == 0);
        struct told told;
        for (int forks = 0; forks < 2; forks++) {
            pid_t child = start(forks, &told);
            put("a/cgroup.kill", "1");
            check_wait(child);
            *(forks ? &over_fork : &alone) += is_soon_as_before(&before);
            // The child's child may end behind it.
            int tries = 0;
            while (instances(INSTANCES) < INSTANCES && ++tries < 2000)
                check_sleep_ms(1);
            counted += tries < 2000;
        }
        // One of each goes to somebody outside, with what is in it.
        pid_t child = start(0, &told);
        char bytes[8];
        int process = syscall(SYS_pidfd_open, child, 0);
        int file = syscall(SYS_pidfd_getfd, process, told.file, 0), fifo = syscall(SYS_pidfd_getfd, process, told.fifo, 0);
        put("a/cgroup.kill", "1");
        check_wait(child);
        taken += pread(file, bytes, 8, 0) == 8 && strcmp(bytes, "content") == 0 && read(fifo, bytes, 8) == 8 && strcmp(bytes, "content") == 0;
        kept += !is_as_before(&before) && umount("t") < 0 && errno == EBUSY;
        close(process);
        close(file);
        close(fifo);
        unmounted += is_soon_as_before(&before) && umount("t") == 0 && rmdir("t") == 0;
        int tries = 0;
        while (strcmp(get("a/memory.current"), "0") != 0 && ++tries < 5000)
            check_sleep_ms(1);
        uncharged += tries < 5000;
    }
    check_line("given-back: %d\n", usable ? alone : ROUNDS);
    check_line("given-back-with-copies: %d\n", usable ? over_fork : ROUNDS);
    check_line("instances-given-back: %d\n", usable ? counted : 2 * ROUNDS);
    check_line("taken: %d, and counted: %d\n", usable ? taken : ROUNDS, usable ? kept : ROUNDS);
    check_line("unmounted: %d\n", usable ? unmounted : ROUNDS);
    check_line("uncharged: %d\n", usable ? uncharged : ROUNDS);
    DO(REQUIRE(rmdir(at("a")) == 0));
    cgroup_end();
    return 0;
}
