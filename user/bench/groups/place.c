// Cgroups, and process groups in their stead.
#include "groups.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/sysinfo.h>

#define ROOT "/cgroup"
#define GROUP_PATH ROOT "/workload"
// From linux/sched.h, since 5.7: CLONE_INTO_CGROUP and what clone3(2) takes.
#define INTO_CGROUP 0x200000000ULL
struct clone_arguments {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static int groups_mounted;

int has_groups(void) { return groups_mounted; }

void mount_groups(void)
{
    static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+reclaim" };
    mkdir(ROOT, 0755);
    if (mount("cgroup2", ROOT, "cgroup2", 0, NULL) < 0) {
        printf("cgroup2\tno: %s\n", strerror(errno));
        return;
    }
    groups_mounted = 1;
    printf("cgroup2\tyes:");
    int control = open(ROOT "/cgroup.subtree_control", O_WRONLY);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (control >= 0 && write(control, wanted[i], strlen(wanted[i])) > 0)
            printf(" %s", wanted[i] + 1);
    printf("\n");
    close(control);
}

// Pages that Linux keeps at hand for a core: free, and any allocation gets them, but not counted as free.
static long pages_at_hand(void)
{
    static char text[65536];
    int file = open("/proc/zoneinfo", O_RDONLY);
    if (file < 0)
        return 0;
    long length = 0, pages = 0, more;
    while ((more = read(file, text + length, sizeof text - 1 - length)) > 0)
        length += more;
    close(file);
    text[length] = 0;
    for (const char *at = text; (at = strstr(at, " count: ")); at++)
        pages += atol(at + strlen(" count: "));
    return pages;
}

long free_memory(void)
{
    struct sysinfo info;
    must(call3(SYS_sysinfo, (long)&info, 0, 0), "sysinfo");
    return (long)info.freeram * info.mem_unit + pages_at_hand() * PAGE;
}

void make_place(struct place *place, enum mode mode)
{
    place->mode = groups_mounted ? mode : PROCESSES;
    if (place->mode == PROCESSES)
        return;
    must(mkdir(GROUP_PATH, 0755), "mkdir of a group");
    must(place->directory = open(GROUP_PATH, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open of a group");
    must(place->kill = open(GROUP_PATH "/cgroup.kill", O_WRONLY | O_CLOEXEC), "cgroup.kill");
    must(place->events = open(GROUP_PATH "/cgroup.events", O_RDONLY | O_CLOEXEC), "cgroup.events");
}

// A child in the group from its first instruction on; where the kernel has no such call, one that goes there by itself.
static pid_t fork_into(int directory)
{
    struct clone_arguments arguments = { .flags = INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = directory };
    long pid = call3(SYS_clone3, (long)&arguments, sizeof arguments, 0);
    if (pid >= 0)
        return pid;
    pid = fork();
    if (pid == 0) {
        int members = openat(directory, "cgroup.procs", O_WRONLY);
        must(write(members, "0", 1), "cgroup.procs");
        close(members);
    }
    return pid;
}

void start_in(struct place *place, char **arguments)
{
    pid_t pid = place->mode == PROCESSES ? fork() : fork_into(place->directory);
    must(pid, "start of the workload");
    if (pid == 0) {
        setpgid(0, 0);
        execv(arguments[0], arguments);
        fail("exec of the workload");
    }
    // Whoever comes first: the group must exist before it is killed.
    setpgid(pid, pid);
    place->leader = pid;
}

void kill_place(struct place *place)
{
    if (place->mode == PROCESSES)
        must(call3(SYS_kill, -place->leader, SIGKILL, 0), "kill");
    else if (call3(SYS_write, place->kill, (long)"1", 1) != 1)
        fail("write to cgroup.kill");
}

static int is_populated(int events)
{
    char text[256];
    long length = call4(SYS_pread64, events, (long)text, sizeof text - 1, 0);
    must(length, "read of cgroup.events");
    text[length] = 0;
    return strstr(text, "populated 1") != NULL;
}

void await_empty(struct place *place)
{
    struct pollfd asked = { place->events, POLLPRI, 0 };
    switch (place->mode) {
    case GROUP:
        while (is_populated(place->events))
            // The limit is there to end what hangs.
            if (poll(&asked, 1, 60000) == 0)
                fail("no event of cgroup.events for a minute");
        break;
    case GROUP_READ:
        while (is_populated(place->events))
            call3(SYS_sched_yield, 0, 0, 0);
        break;
    case PROCESSES:
        // The leader first, which stays a zombie until then; process 1 waits for those that it leaves behind.
        must(waitpid(place->leader, NULL, 0), "wait for the leader");
        while (call3(SYS_kill, -place->leader, 0, 0) != -ESRCH)
            call3(SYS_sched_yield, 0, 0, 0);
        break;
    }
}

void charged_last(struct place *place, long *charged, long *measured)
{
    *charged = *measured = -1;
    if (place->mode == PROCESSES)
        return;
    int file = openat(place->directory, "reclaim.last", O_RDONLY);
    if (file < 0)
        return;
    char text[256];
    long length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    if (sscanf(text, "charged_us %ld measured_us %ld", charged, measured) == 2) {
        *charged *= 1000;
        *measured *= 1000;
    }
}

// Zombies that process 1 has yet to wait for are no obstacle; a group that is still busy with its end may be.
static void remove_group(void)
{
    for (int i = 0; i < 1000 && rmdir(GROUP_PATH) < 0 && errno == EBUSY; i++)
        usleep(1000);
}

void remove_place(struct place *place)
{
    if (place->mode == PROCESSES)
        return;
    must(waitpid(place->leader, NULL, 0), "wait for the leader");
    close(place->directory);
    close(place->kill);
    close(place->events);
    remove_group();
}

void remove_whatever_runs(void)
{
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    remove_group();
}
