// What is in pipes and sockets of a group that is killed, when nobody else sees them and when somebody does. Linux has no controller reclaim, so each fact is written down with what it must be.
#include "../cgroup.h"
#include <sys/resource.h>
#include <sys/socket.h>

#define PAIRS 300

static char empty[64], above[64];

static void prepare(void)
{
    cgroup_give_all();
    REQUIRE(mkdir(at("a"), 0755) == 0);
    snprintf(empty, sizeof empty, "%s", get("a/reclaim.current"));
    snprintf(above, sizeof above, "%s", get("reclaim.current"));
}

// What a workload tells of the first of its pairs.
struct told {
    int fds[2];
    unsigned long inode;
    int made;
};

static int pairs[PAIRS][2];

// Pairs with messages in them; how many.
static int fill(int count)
{
    static char page[4096];
    int made = 0, pipe_ends[2];
    for (; made < count && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[made]) == 0; made++) {
        for (int i = 0; i < 3; i++)
            REQUIRE(write(pairs[made][0], page, 1000 + i) == 1000 + i);
        REQUIRE(pipe(pipe_ends) == 0 && write(pipe_ends[1], page, sizeof page) == sizeof page);
    }
    return made;
}

static void time_much(int count)
{
    struct itimerspec late = { { 0, 1000000 }, { 3600, 0 } };
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    for (int i = 0, id; i < count; i++)
        REQUIRE(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) == 0 && syscall(SYS_timer_settime, id, 0, &late, NULL) == 0);
}

static int is_listed(unsigned long inode)
{
    FILE *list = fopen("/proc/net/unix", "r");
    char line[256];
    int found = 0;
    REQUIRE(list);
    while (fgets(line, sizeof line, list)) {
        unsigned long one;
        found |= sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &one) == 1 && one == inode;
    }
    fclose(list);
    return found;
}

// Starts a workload in the group, or where the caller is, which says when it is ready.
static pid_t start(int is_inside, int forks, struct told *told)
{
    int ready[2], fd = open(at("a"), O_RDONLY | O_DIRECTORY);
    REQUIRE(pipe(ready) == 0);
    pid_t child = is_inside ? clone_into(fd, INTO_CGROUP, 88) : fork();
    REQUIRE(child >= 0);
    close(fd);
    if (child == 0) {
        struct stat first;
        struct told own = { .made = fill(PAIRS) };
        REQUIRE(fstat(pairs[0][0], &first) == 0);
        own.inode = first.st_ino;
        memcpy(own.fds, pairs[0], sizeof own.fds);
        time_much(200);
        tell_and_stay(ready, &own, sizeof own, forks);
    }
    hear(ready, told, sizeof *told);
    return child;
}

static int is_given_back(void)
{
    int tries = 0;
    while ((strcmp(get("a/reclaim.current"), empty) != 0 || strcmp(get("reclaim.current"), above) != 0) && ++tries < 2000)
        check_sleep_ms(1);
    return tries < 2000;
}

// What must be refused at some time, since the bound is too small for all of it.
static int refused_in_time(void)
{
    static char page[4096];
    int made = 0, error = 0;
    for (; made < PAIRS && !error; made++) {
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pairs[made]) < 0)
            error = errno;
        for (int i = 0; i < 10 && !error; i++)
            if (write(pairs[made][0], page, 10) < 0)
                error = errno;
    }
    // What is read is given back, and another message has room.
    int has_room = read(pairs[0][1], page, 10) == 10 && read(pairs[0][1], page, 10) == 10 && write(pairs[0][0], page, 10) == 10;
    return made > 1 && made < PAIRS && (error == ENOBUFS || error == ENOMEM) && has_room ? 0 : 1;
}

int main(void)
{
    cgroup_begin();
    usable = usable && is_ebb();
    struct rlimit files = { 4096, 4096 };
    setrlimit(RLIMIT_NOFILE, &files);
    DO(prepare());
    int unseen = 0, listed_before = 0, listed_after = 0, over_fork = 0, moved = 0, taken = 0, refused = 0;
    for (int round = 0; usable && round < 5; round++) {
        struct told told;
        pid_t child = start(1, 0, &told);
        listed_before += is_listed(told.inode);
        put("a/cgroup.kill", "1");
        check_wait(child);
        listed_after += is_listed(told.inode);
        unseen += told.made == PAIRS && is_given_back();

        child = start(1, 1, &told);
        put("a/cgroup.kill", "1");
        check_wait(child);
        over_fork += told.made == PAIRS && is_given_back();

        // One end goes to somebody outside, with what is in it.
        child = start(1, 0, &told);
        char page[4096];
        int process = syscall(SYS_pidfd_open, child, 0), end = syscall(SYS_pidfd_getfd, process, told.fds[1], 0);
        put("a/cgroup.kill", "1");
        check_wait(child);
        int right = read(end, page, sizeof page) == 1000 && read(end, page, sizeof page) == 1001;
        right = right && read(end, page, sizeof page) == 1002 && read(end, page, sizeof page) == 0;
        close(end);
        close(process);
        taken += right && is_given_back();

        // What it has is charged when it comes.
        child = start(0, 0, &told);
        put_pid("a/cgroup.procs", child);
        int is_charged = field("a/reclaim.stat", "message") >= 3 * PAIRS;
        put("a/cgroup.kill", "1");
        check_wait(child);
        moved += is_charged && is_given_back();

        put("a/reclaim.max", "3000");
        int fd = open(at("a"), O_RDONLY | O_DIRECTORY);
        child = clone_into(fd, INTO_CGROUP, 88);
        if (child == 0)
            _exit(refused_in_time());
        close(fd);
        refused += check_wait(child) == 0;
        put("a/reclaim.max", "max");
    }
    check_line("given-back: %d\n", usable ? unseen : 5);
    check_line("listed: %d, then: %d\n", usable ? listed_before : 5, usable ? listed_after : 0);
    check_line("given-back-with-copies: %d\n", usable ? over_fork : 5);
    check_line("given-back-with-one-outside: %d\n", usable ? taken : 5);
    check_line("charged-when-moved: %d\n", usable ? moved : 5);
    check_line("refused: %d\n", usable ? refused : 5);
    DO(REQUIRE(rmdir(at("a")) == 0));
    cgroup_end();
    return 0;
}
