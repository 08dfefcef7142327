// Privileges are capabilities: user 0 without them may do what anybody may, and another user with one may do what it allows.
#include "../check.h"
#include "capabilities.h"
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>

static void show(const char *name)
{
    Sets sets;
    REQUIRE(get(&sets) == 0);
    check_line("%s: e %llx p %llx i %llx\n", name, (unsigned long long)(sets.effective & SHOWN),
               (unsigned long long)(sets.permitted & SHOWN), (unsigned long long)(sets.inheritable & SHOWN));
}

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}

// A file of user 1234 in a directory that is everybody's.
static void make_files(void)
{
    int fd = open("theirs", O_CREAT | O_WRONLY, 0600);
    REQUIRE(fd >= 0 && write(fd, "x", 1) == 1 && fchown(fd, 1234, 1234) == 0);
    close(fd);
    REQUIRE(mkdir("private", 0700) == 0 && chown("private", 1234, 1234) == 0);
    fd = open("mine", O_CREAT | O_WRONLY, 0644);
    REQUIRE(fd >= 0);
    close(fd);
    REQUIRE(mkdir("sticky", 0777) == 0 && chmod("sticky", 01777) == 0 && chown("sticky", 1234, 1234) == 0);
    fd = open("sticky/theirs", O_CREAT | O_WRONLY, 0644);
    REQUIRE(fd >= 0 && fchown(fd, 1234, 1234) == 0);
    close(fd);
}

static void files_without(void)
{
    keep(0);
    CHECK("open-theirs", try_open("theirs", O_RDONLY));
    CHECK("write-theirs", try_open("theirs", O_WRONLY));
    CHECK("truncate-theirs", truncate("theirs", 0));
    CHECK("access-theirs", access("theirs", R_OK));
    CHECK("eaccess-theirs", faccessat(AT_FDCWD, "theirs", R_OK, AT_EACCESS));
    CHECK("search-private", access("private/x", F_OK));
    CHECK("list-private", try_open("private", O_RDONLY | O_DIRECTORY));
    CHECK("chmod-theirs", chmod("theirs", 0666));
    CHECK("chown-theirs", chown("theirs", 0, 0));
    CHECK("chown-mine-away", chown("mine", 1234, -1));
    CHECK("chown-mine-group", chown("mine", -1, 4321));
    CHECK("chown-mine-same", chown("mine", 0, 0));
    CHECK("chmod-mine", chmod("mine", 0600));
    CHECK("utime-theirs", utimensat(AT_FDCWD, "theirs", (struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0));
    CHECK("touch-theirs", utimensat(AT_FDCWD, "theirs", NULL, 0));
    CHECK("noatime-mine", try_open("mine", O_RDONLY | O_NOATIME));
    CHECK("unlink-sticky", unlink("sticky/theirs"));
    CHECK("mknod", mknod("null", S_IFCHR | 0666, makedev(1, 3)));
    CHECK("mkfifo", mknod("fifo", S_IFIFO | 0666, 0));
    CHECK("chroot", chroot("."));
    CHECK("mount", mount("none", "private", "tmpfs", 0, NULL));
    CHECK("umount", umount("/proc"));
    CHECK("trusted-set", setxattr("mine", "trusted.x", "1", 1, 0));
    CHECK("security-set", setxattr("mine", "security.x", "1", 1, 0));
}

static void others_without(pid_t victim, pid_t mine)
{
    char byte, local;
    struct iovec here = { &local, 1 }, there = { &byte, 1 };
    char path[64];
    void *head;
    size_t len;
    struct rlimit limit;
    keep(0);
    CHECK("kill-theirs", kill(victim, 0));
    CHECK("kill-mine", kill(mine, 0));
    CHECK("setpriority-theirs", setpriority(PRIO_PROCESS, (id_t)victim, 10));
    CHECK("setpriority-mine", setpriority(PRIO_PROCESS, (id_t)mine, 10));
    CHECK("affinity-theirs", sched_setaffinity(victim, 8, (cpu_set_t *)&(uint64_t){ ~0ULL }));
    CHECK("vm-theirs", process_vm_readv(victim, &here, 1, &there, 1, 0));
    // The child has what this process gave up.
    CHECK("vm-mine", process_vm_readv(mine, &here, 1, &there, 1, 0));
    CHECK("robust-list-theirs", syscall(SYS_get_robust_list, victim, &head, &len));
    CHECK("robust-list-mine", syscall(SYS_get_robust_list, mine, &head, &len));
    CHECK("prlimit-theirs", prlimit(victim, RLIMIT_CORE, NULL, &limit));
    CHECK("prlimit-mine", prlimit(mine, RLIMIT_CORE, NULL, &limit));
    snprintf(path, sizeof path, "/proc/%d/environ", victim);
    CHECK("environ-theirs", try_open(path, O_RDONLY));
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", victim);
    CHECK("oom-theirs", try_open(path, O_WRONLY));
}

static void system_without(void)
{
    struct timeval time = { 0, 0 };
    struct timespec precise = { 0, 0 };
    struct sched_param param = { 5 };
    int ends[2];
    keep(0);
    CHECK("settimeofday", settimeofday(&time, NULL));
    CHECK("clock_settime", clock_settime(CLOCK_REALTIME, &precise));
    CHECK("sethostname", sethostname("x", 1));
    CHECK("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, 0));
    CHECK("fifo", syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param));
    CHECK("nice-up", setpriority(PRIO_PROCESS, 0, 5));
    CHECK("nice-down", setpriority(PRIO_PROCESS, 0, -5));
    CHECK("io-real-time", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
    CHECK("setuid", setuid(1234));
    CHECK("setresgid", setresgid(1234, 1234, 1234));
    CHECK("setgroups", setgroups(0, NULL));
    CHECK("vhangup", syscall(SYS_vhangup));
    REQUIRE(pipe(ends) == 0);
    CHECK("pipe-size", fcntl(ends[0], F_SETPIPE_SZ, 8 << 20));
    CHECK("bounding-drop", prctl(PR_CAPBSET_DROP, CAP_KILL, 0, 0, 0));
    CHECK("securebits", prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0));
}

static void one_each(void)
{
    CHECK_CHILD("read-search", keep(BIT(CAP_DAC_READ_SEARCH)); CHECK("read", try_open("theirs", O_RDONLY)); CHECK("write", try_open("theirs", O_WRONLY));
                CHECK("search", access("private/x", F_OK)));
    CHECK_CHILD("dac-override", keep(BIT(CAP_DAC_OVERRIDE)); CHECK("read", try_open("theirs", O_RDONLY)); CHECK("write", try_open("theirs", O_RDWR));
                CHECK("execute", access("theirs", X_OK)); CHECK("chmod", chmod("theirs", 0600)); CHECK("search", access("private/x", F_OK)));
    CHECK_CHILD("fowner", keep(BIT(CAP_FOWNER)); CHECK("chmod", chmod("theirs", 0600)); CHECK("noatime", try_open("theirs", O_RDONLY | O_NOATIME));
                CHECK("chown", chown("theirs", 0, 0));
                CHECK("utime", utimensat(AT_FDCWD, "theirs", (struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0)));
    CHECK_CHILD("chown", keep(BIT(CAP_CHOWN)); CHECK("away", chown("mine", 1234, 1234)); CHECK("back", chown("mine", 0, 0)); CHECK("chmod", chmod("theirs", 0666)));
    struct stat st;
    REQUIRE(chown("mine", 0, 4321) == 0);
    CHECK_CHILD("no-fsetid", keep(0); CHECK("chmod", chmod("mine", 02755)); REQUIRE(stat("mine", &st) == 0); check_line("mode: %o\n", st.st_mode));
    CHECK_CHILD("fsetid", keep(BIT(CAP_FSETID)); CHECK("chmod", chmod("mine", 06755)); REQUIRE(stat("mine", &st) == 0); check_line("mode: %o\n", st.st_mode);
                int fd = open("mine", O_WRONLY); REQUIRE(fd >= 0 && write(fd, "x", 1) == 1); REQUIRE(stat("mine", &st) == 0); check_line("written: %o\n", st.st_mode));
    CHECK_CHILD("no-fsetid-write", REQUIRE(chmod("mine", 06755) == 0); keep(0); int fd = open("mine", O_WRONLY); REQUIRE(fd >= 0 && write(fd, "x", 1) == 1);
                REQUIRE(stat("mine", &st) == 0); check_line("written: %o\n", st.st_mode));
    // Another user with one capability.
    CHECK_CHILD("user-with-kill", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0); REQUIRE(setuid(1234) == 0); show("kept"); keep(BIT(CAP_KILL)); CHECK("kill", kill(getppid(), 0));
                CHECK("open", try_open("mine", O_WRONLY)); show("now"));
    CHECK_CHILD("user-with-chroot", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0); REQUIRE(setuid(1234) == 0); keep(BIT(CAP_SYS_CHROOT)); CHECK("chroot", chroot(".")));
    CHECK_CHILD("user-with-nice", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0); REQUIRE(setuid(1234) == 0); keep(BIT(CAP_SYS_NICE));
                CHECK("nice", setpriority(PRIO_PROCESS, 0, -5)); CHECK("theirs", setpriority(PRIO_PROCESS, (id_t)getppid(), getpriority(PRIO_PROCESS, (id_t)getppid()))));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        show(argv[1]);
        return 0;
    }
    umask(022);
    REQUIRE(chmod(".", 0755) == 0);
    make_files();
    CHECK_CHILD("files", files_without());
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    pid_t victim = check_fork();
    if (victim == 0) {
        REQUIRE(setgid(1234) == 0 && setuid(1234) == 0);
        REQUIRE(write(ready[1], "x", 1) == 1);
        pause();
        _exit(0);
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    pid_t mine = check_fork();
    if (mine == 0) {
        pause();
        _exit(0);
    }
    CHECK_CHILD("others", others_without(victim, mine));
    REQUIRE(kill(victim, SIGKILL) == 0 && kill(mine, SIGKILL) == 0);
    check_wait(victim);
    check_wait(mine);
    CHECK_CHILD("system", system_without());
    one_each();
    return 0;
}
