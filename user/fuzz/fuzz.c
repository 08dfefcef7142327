// Random system calls, from a seed: the kernel must survive all of them.
//
//     fuzz SEED COUNT      makes about COUNT calls
//     fuzz SEED SECONDSs   makes calls for that long
//
// Only for guests: it runs as root, and what it does to the system it runs on is random. As process 1 it takes its
// arguments from the kernel's command line, mounts /dev and /proc and powers the machine off at the end.
//
// Workers in an empty root directory make calls from the whole x86-64 table with arguments that are sometimes what the
// call expects and sometimes anything: descriptors that are open, closed or absurd, pointers to memory that is there,
// missing, read-only or ends in the middle, huge and negative lengths. A supervisor restarts workers that died or are
// stuck, collects what they leave behind, prints progress, and ends with the line `fuzz: N calls, seed S, done`.
// Left out are calls that would end or change the machine by design: reboot, loading kernels and modules, signals to
// foreign processes, hanging up the console, real-time priorities for root.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 4
#define PAGE 4096
#define LAST_CALL 462

struct shared {
    atomic_ulong calls;
    struct {
        atomic_ulong beats;
        atomic_int call;
    } worker[WORKERS];
};

static struct shared *shared;

// xorshift64*: the same numbers on every run with the same seed.
static uint64_t state;

static uint64_t next(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
}

static unsigned below(unsigned limit)
{
    return (unsigned)((next() >> 32) * limit >> 32);
}

// What some calls expect, by argument: f descriptor, p path, b buffer, s its size, i small number, o flag bits,
// a page address, l page length, t time, P process, g signal, m mode, x the address of a word in shared memory.
static const struct {
    short number;
    const char *arguments;
} signatures[] = {
    { SYS_read, "fbs" }, { SYS_write, "fbs" }, { SYS_open, "pom" }, { SYS_close, "f" }, { SYS_stat, "pb" },
    { SYS_fstat, "fb" }, { SYS_lstat, "pb" }, { SYS_poll, "bit" }, { SYS_lseek, "fsi" }, { SYS_mmap, "aloofl" },
    { SYS_mprotect, "ali" }, { SYS_munmap, "al" }, { SYS_brk, "a" }, { SYS_rt_sigaction, "gbbs" },
    { SYS_rt_sigprocmask, "ibbs" }, { SYS_ioctl, "fob" }, { SYS_pread64, "fbss" }, { SYS_pwrite64, "fbss" },
    { SYS_readv, "fbi" }, { SYS_writev, "fbi" }, { SYS_access, "pi" }, { SYS_pipe, "b" }, { SYS_select, "ibbbt" },
    { SYS_mremap, "allia" }, { SYS_msync, "ali" }, { SYS_mincore, "alb" }, { SYS_madvise, "ali" }, { SYS_dup, "f" },
    { SYS_dup2, "ff" }, { SYS_nanosleep, "tb" }, { SYS_setitimer, "ibb" }, { SYS_sendfile, "ffbs" }, { SYS_wait4, "Pbib" },
    { SYS_kill, "Pg" }, { SYS_fcntl, "fib" }, { SYS_flock, "fi" }, { SYS_fsync, "f" }, { SYS_truncate, "ps" },
    { SYS_ftruncate, "fs" }, { SYS_getdents64, "fbs" }, { SYS_getcwd, "bs" }, { SYS_chdir, "p" }, { SYS_fchdir, "f" },
    { SYS_rename, "pp" }, { SYS_mkdir, "pm" }, { SYS_rmdir, "p" }, { SYS_creat, "pm" }, { SYS_link, "pp" },
    { SYS_unlink, "p" }, { SYS_symlink, "pp" }, { SYS_readlink, "pbs" }, { SYS_chmod, "pm" }, { SYS_chown, "pii" },
    { SYS_getrlimit, "ib" }, { SYS_setrlimit, "ib" }, { SYS_getrusage, "ib" }, { SYS_sysinfo, "b" }, { SYS_setpgid, "PP" },
    { SYS_getpgid, "P" }, { SYS_getsid, "P" }, { SYS_sigaltstack, "bb" }, { SYS_mknod, "pmi" }, { SYS_statfs, "pb" },
    { SYS_getpriority, "iP" }, { SYS_prctl, "iiiii" }, { SYS_chroot, "p" }, { SYS_futex, "xiitxi" },
    { SYS_rt_sigtimedwait, "bbts" }, { SYS_rt_sigqueueinfo, "Pgb" }, { SYS_rt_sigsuspend, "bs" },
    { SYS_sched_yield, "" }, { SYS_clone, "oabbi" }, { SYS_epoll_wait, "fbii" }, { SYS_epoll_ctl, "fifb" },
    { SYS_tgkill, "PPg" }, { SYS_utimes, "pb" }, { SYS_waitid, "iPbib" }, { SYS_openat, "fpom" }, { SYS_mkdirat, "fpm" },
    { SYS_newfstatat, "fpbo" }, { SYS_unlinkat, "fpo" }, { SYS_renameat, "fpfp" }, { SYS_linkat, "fpfpo" },
    { SYS_symlinkat, "pfp" }, { SYS_readlinkat, "fpbs" }, { SYS_fchmodat, "fpm" }, { SYS_faccessat, "fpi" },
    { SYS_pselect6, "ibbbtb" }, { SYS_ppoll, "bitbs" }, { SYS_splice, "fbfbsi" }, { SYS_tee, "ffsi" },
    { SYS_utimensat, "fpbi" }, { SYS_epoll_pwait, "fbiibs" }, { SYS_timerfd_create, "io" }, { SYS_eventfd2, "io" },
    { SYS_fallocate, "fiss" }, { SYS_timerfd_settime, "fibb" }, { SYS_signalfd4, "fbso" }, { SYS_epoll_create1, "o" },
    { SYS_dup3, "ffo" }, { SYS_pipe2, "bo" }, { SYS_preadv, "fbiss" }, { SYS_pwritev, "fbiss" }, { SYS_prlimit64, "Pibb" },
    { SYS_renameat2, "fpfpi" }, { SYS_getrandom, "bsi" }, { SYS_memfd_create, "po" }, { SYS_execve, "pbb" },
    { SYS_copy_file_range, "fbfbsi" }, { SYS_timer_create, "ibb" }, { SYS_timer_settime, "iibb" },
    { SYS_clock_nanosleep, "iitb" }, { SYS_set_robust_list, "bs" }, { SYS_socketpair, "iiib" }, { 435, "bs" }, { 436, "iii" },
    { SYS_shmget, "qso" }, { SYS_shmat, "qao" }, { SYS_shmdt, "a" }, { SYS_shmctl, "qib" }, { SYS_semget, "qio" },
    { SYS_semop, "qbi" }, { SYS_semtimedop, "qbit" }, { SYS_semctl, "qiib" }, { SYS_msgget, "qo" }, { SYS_msgsnd, "qbso" },
    { SYS_msgrcv, "qbsio" }, { SYS_msgctl, "qib" },
    { 437, "fpbs" }, { 439, "fpio" }, { 434, "Po" }, { 424, "fgbi" }, { 332, "fpoob" },
};

static int is_forbidden(int number, int privileged)
{
    switch (number) {
    case SYS_reboot:
    case SYS_kexec_load:
    case SYS_kexec_file_load:
    case SYS_init_module:
    case SYS_finit_module:
    case SYS_delete_module:
    case SYS_vhangup:
    case SYS_exit:
    case SYS_exit_group:
        return 1;
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr:
    case SYS_setpriority:
    case SYS_ioperm:
    case SYS_iopl:
    case SYS_ptrace:
    case SYS_process_vm_writev:
    case SYS_clock_settime:
    case SYS_settimeofday:
        return privileged;
    default:
        return 0;
    }
}

static int sends_signals(int number)
{
    return number == SYS_kill || number == SYS_tkill || number == SYS_tgkill || number == SYS_rt_sigqueueinfo ||
           number == SYS_rt_tgsigqueueinfo || number == SYS_prlimit64 || number == SYS_sched_setaffinity ||
           number == SYS_migrate_pages || number == SYS_move_pages || number == SYS_fcntl;
}

// The workers' memory: 16 pages with random content, a read-only page, one without access, then nothing.
static char *memory;
static int *words;

static const char *const paths[] = {
    "a", "b", "d", "d/a", "d/e", "d/e/f", ".", "..", "/", "link", "loop", "dangling", "fifo", "", "a/b", "//d//../a", "d/",
    "program", "long", "/proc/self/exe",
    // In place of the question mark stands the worker's number.
    "ov/m", "ov/m/a", "ov/m/d", "ov/m/d/b", "ov/m/new", "ov/m/d/new", "ov/u/a",
    "cg/w?", "cg/w?/x", "cg/w?/x/y", "cg/w?/cgroup.procs", "cg/w?/x/cgroup.procs", "cg/w?/cgroup.threads", "cg/w?/cgroup.events",
    "cg/w?/cgroup.freeze", "cg/w?/x/cgroup.freeze", "cg/w?/cgroup.kill", "cg/w?/cgroup.subtree_control", "cg/w?/x/cgroup.type",
    "cg/w?/pids.max", "cg/w?/cpu.weight", "cg/w?/cpu.stat", "cg/w?/x/pids.current", "cg/w?/cgroup.max.descendants",
};

static const uint64_t numbers[] = {
    0, 1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 100, 255, 256, 511, 512, 1000, 4095, 4096, 4097, 8192, 65535, 65536, 1 << 20,
    0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffff, 0x800000000000, 0x7fffffffffffffff,
    0x8000000000000000, (uint64_t)-1, (uint64_t)-2, (uint64_t)-100, (uint64_t)-4096, 0xffff800000000000,
};

// What files of control groups understand.
static const char *const settings[] = { "0", "1", "max", "3", "+pids", "-pids", "+cpu +pids", "100" };

static int number_of_worker;

static char *some_memory(void)
{
    switch (below(10)) {
    case 0:
        // Ends in the middle of what is asked for.
        return memory + 16 * PAGE - below(64);
    case 1:
        // Read-only, without access, or missing.
        return memory + (16 + below(3)) * PAGE - below(2) * below(32);
    case 2:
        return (char *)(uintptr_t)numbers[below(sizeof numbers / sizeof numbers[0])];
    default:
        return memory + below(15 * PAGE) / 8 * 8;
    }
}

static uint64_t argument(char kind)
{
    if (below(12) == 0)
        kind = "fpbsioaltPgmx?"[below(14)];
    switch (kind) {
    case 'f':
        return below(10) == 0 ? numbers[below(sizeof numbers / sizeof numbers[0])] : below(16) == 0 ? (uint64_t)AT_FDCWD : below(24);
    case 'p': {
        const char *path = paths[below(sizeof paths / sizeof paths[0])];
        char *place = below(8) == 0 ? some_memory() : memory + below(15 * PAGE);
        if (strcmp(path, "long") == 0)
            return (uint64_t)(uintptr_t)(memory + below(PAGE));
        if (place >= memory && place < memory + 15 * PAGE) {
            strcpy(place, path);
            if (strchr(place, '?'))
                *strchr(place, '?') = '0' + number_of_worker;
        }
        return (uint64_t)(uintptr_t)place;
    }
    case 'b':
        if (below(24) == 0)
            return (uint64_t)(uintptr_t)strcpy(memory + below(15 * PAGE), settings[below(sizeof settings / sizeof settings[0])]);
        return below(12) == 0 ? 0 : (uint64_t)(uintptr_t)some_memory();
    case 's':
        return below(3) ? below(3 * PAGE) : numbers[below(sizeof numbers / sizeof numbers[0])];
    case 'i':
        return below(6) ? below(12) : numbers[below(sizeof numbers / sizeof numbers[0])];
    case 'o':
        return below(4) == 0 ? next() : (1ull << below(32)) | (below(2) ? 1ull << below(24) : 0) | below(8);
    case 'a':
        return below(4) ? (uint64_t)(uintptr_t)memory + (uint64_t)below(40) * PAGE + 32 * PAGE : (uint64_t)(uintptr_t)some_memory();
    case 'l':
        return below(4) ? below(20) * PAGE : numbers[below(sizeof numbers / sizeof numbers[0])];
    case 't': {
        uint64_t *time = (uint64_t *)(memory + below(15 * PAGE) / 16 * 16);
        time[0] = below(8) ? 0 : numbers[below(sizeof numbers / sizeof numbers[0])];
        time[1] = below(8) ? below(3000000) : numbers[below(sizeof numbers / sizeof numbers[0])];
        return below(16) == 0 ? 0 : (uint64_t)(uintptr_t)time;
    }
    case 'q':
        // A key, or the id of one of the first objects.
        return below(8) ? below(4) | below(2) << 15 : numbers[below(sizeof numbers / sizeof numbers[0])];
    case 'P':
        return below(3) ? (uint64_t)getpid() : 0;
    case 'g':
        return below(8) ? below(66) : numbers[below(sizeof numbers / sizeof numbers[0])];
    case 'm':
        return below(4) == 0 ? next() & 0xffff : 0755 & ~below(512);
    case 'x':
        return (uint64_t)(uintptr_t)(words + below(8));
    default:
        return below(2) ? numbers[below(sizeof numbers / sizeof numbers[0])] : next();
    }
}

static volatile int ticks;

static void tick(int number)
{
    ticks += number == SIGALRM;
}

// Puts back what calls may have taken away: the timer that interrupts them, the descriptors, the directory's content.
static void refresh(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct sigaction action = { .sa_handler = tick };
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
    setitimer(ITIMER_REAL, &timer, NULL);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (below(8) == 0)
        for (int fd = 3; fd < 24; fd++)
            if (below(3) == 0)
                close(fd);
    mkdir("d", 0777);
    mkdir("d/e", 0777);
    if (symlink("a", "link") == 0) {
        symlink("loop", "loop");
        symlink("missing", "dangling");
        mkfifo("fifo", 0666);
    }
    int fds[2];
    open("a", O_RDWR | O_CREAT, 0666);
    open("d", O_RDONLY);
    if (pipe2(fds, O_NONBLOCK) == 0 && below(2)) {
        fcntl(fds[0], F_SETFL, 0);
        fcntl(fds[1], F_SETFL, 0);
    }
    epoll_create1(0);
    eventfd(0, EFD_NONBLOCK);
    for (int i = 0; i < 15 * PAGE; i += 8)
        if (below(4) == 0)
            *(uint64_t *)(memory + i) = below(2) ? numbers[below(sizeof numbers / sizeof numbers[0])] : below(24);
    memset(memory, 'n', PAGE / 8);
}

static void one_call(int index, int privileged)
{
    int number;
    const char *kinds = "??????";
    if (below(4)) {
        unsigned choice = below(sizeof signatures / sizeof signatures[0]);
        number = signatures[choice].number;
        kinds = signatures[choice].arguments;
    } else if (below(64))
        number = (int)below(LAST_CALL + 1);
    else
        number = (int)(int32_t)next();
    if (is_forbidden(number, privileged) || (number > 335 && number < 424))
        return;
    uint64_t a[6];
    size_t known = strlen(kinds);
    for (size_t i = 0; i < 6; i++)
        a[i] = i < known ? argument(kinds[i]) : argument("?bi"[below(3)]);
    if (sends_signals(number)) {
        // Never to a foreign process.
        a[0] = number == SYS_fcntl ? a[0] : (uint64_t)getpid();
        if (number == SYS_fcntl && (a[1] & 0xffffffff) == F_SETOWN)
            a[2] = (uint64_t)getpid();
    }
    if (number == SYS_clone)
        // A shared address space without a stack of its own ends both: leave that to chance once in a while.
        a[0] = below(16) ? (a[0] & ~0x100ull) | SIGCHLD : a[0];
    if (number == SYS_close && (a[0] & 0xffffffff) < 3)
        return;
    pid_t before = getpid();
    atomic_store(&shared->worker[index].call, number);
    syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    atomic_fetch_add(&shared->calls, 1);
    atomic_fetch_add(&shared->worker[index].beats, 1);
    if (getpid() != before) {
        // A child: a few calls, then the end.
        if (below(2))
            _exit(0);
        alarm(1);
        signal(SIGALRM, SIG_DFL);
        _exit((int)below(3));
    }
}

static void limit(int which, rlim_t value)
{
    struct rlimit both = { value, value };
    setrlimit(which, &both);
}

// An overlay below the worker's root.
static void make_overlay(const char *root)
{
    static const char *const directories[] = { "ov", "ov/l", "ov/l/d", "ov/u", "ov/w", "ov/m" };
    static const char *const files[] = { "ov/l/a", "ov/l/d/b" };
    char path[128], options[512];
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, directories[i]);
        mkdir(path, 0777);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i]);
        int file = open(path, O_CREAT | O_WRONLY, 0666);
        if (file >= 0)
            (void)!ftruncate(file, 100000), close(file);
    }
    snprintf(path, sizeof path, "%s/ov/m/d", root);
    if (access(path, F_OK) == 0)
        return;
    snprintf(path, sizeof path, "%s/ov/m", root);
    snprintf(options, sizeof options, "lowerdir=%s/ov/l,upperdir=%s/ov/u,workdir=%s/ov/w,redirect_dir=on", root, root, root);
    mount("none", path, "overlay", 0, options);
}

// Control groups below the worker's root, one of which is its own.
static void make_groups(const char *root, int index)
{
    char path[128];
    snprintf(path, sizeof path, "%s/cg", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/cg/cgroup.procs", root);
    if (access(path, F_OK) != 0) {
        snprintf(path, sizeof path, "%s/cg", root);
        mount("none", path, "cgroup2", 0, NULL);
    }
    snprintf(path, sizeof path, "%s/cg/cgroup.subtree_control", root);
    int control = open(path, O_WRONLY);
    if (control >= 0) {
        (void)!write(control, "+cpu +pids", 10);
        close(control);
    }
    static const char *const own[] = {
        "", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "cgroup.freeze", "cgroup.kill", "pids.max", "cpu.weight",
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        snprintf(path, sizeof path, "%s/cg/w%d/%s", root, index, own[i]);
        if (i == 0)
            mkdir(path, 0755);
        (void)!chown(path, 1000 + index, 1000 + index);
    }
}


static void work(int index, uint64_t seed)
{
    state = seed | 1;
    char root[32];
    snprintf(root, sizeof root, "/tmp/fuzz-%d", index);
    mkdir("/tmp", 01777);
    mkdir(root, 0777);
    chmod(root, 0777);
    setsid();
    number_of_worker = index;
    make_groups(root, index);
    make_overlay(root);
    memory = mmap((void *)0x10000000, 80 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + 16 * PAGE, PAGE, PROT_READ);
    mprotect(memory + 17 * PAGE, PAGE, PROT_NONE);
    munmap(memory + 18 * PAGE, 62 * PAGE);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    open("/dev/zero", O_RDWR);
    open("/proc", O_RDONLY);
    open("/proc/self/maps", O_RDONLY);
    if (chdir(root) != 0 || chroot(root) != 0)
        _exit(1);
    limit(RLIMIT_NOFILE, 40);
    limit(RLIMIT_FSIZE, 1 << 20);
    limit(RLIMIT_AS, 256 << 20);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NPROC, 50);
    // Two of the workers are root, with fewer calls; the others are nobody in particular.
    int privileged = index < WORKERS / 2;
    if (!privileged && (setgid(1000 + index) != 0 || setuid(1000 + index) != 0))
        _exit(1);
    for (int i = 0;; i++) {
        if (i % 64 == 0)
            refresh();
        one_call(index, privileged);
    }
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static pid_t workers[WORKERS];

static int worker_of(pid_t pid)
{
    for (int i = 0; i < WORKERS; i++)
        if (workers[i] == pid)
            return i;
    return -1;
}

// Orphans of workers become children of this process (it is a subreaper); they are not needed any more.
static void kill_orphans(void)
{
    DIR *processes = opendir("/proc");
    if (!processes)
        return;
    for (struct dirent *entry; (entry = readdir(processes));) {
        pid_t pid = atoi(entry->d_name);
        char path[64], text[512];
        if (pid <= 1 || pid == getpid() || worker_of(pid) >= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        int fd = open(path, O_RDONLY);
        ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
        close(fd);
        text[length > 0 ? length : 0] = 0;
        char *end = strrchr(text, ')');
        int parent = 0;
        if (end && sscanf(end + 2, "%*c %d", &parent) == 1 && parent == getpid())
            kill(pid, SIGKILL);
    }
    closedir(processes);
}

static void start(int index, uint64_t seed, unsigned long incarnation)
{
    pid_t pid = fork();
    if (pid == 0)
        work(index, seed * 0x9e3779b97f4a7c15ull + (uint64_t)index * 1000003 + incarnation * 7919);
    if (pid > 0)
        workers[index] = pid;
}

// Of an Ebb that measures how long it keeps interrupts off: the longest stretch of all.
static void print_stretch(void)
{
    char line[256] = "";
    FILE *file = fopen("/proc/ebb/stretch", "r");
    if (!file)
        return;
    if (fgets(line, sizeof line, file))
        printf("\nstretch: random calls: %s", line);
    fclose(file);
}

static void supervise(uint64_t seed, unsigned long count, long milliseconds)
{
    unsigned long restarts = 0, beats[WORKERS] = { 0 };
    long moved[WORKERS], begun = now_ms(), shown = begun, swept = begun;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int i = 0; i < WORKERS; i++) {
        start(i, seed, 0);
        moved[i] = begun;
    }
    for (;;) {
        struct timespec nap = { 0, 5000000 };
        nanosleep(&nap, NULL);
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG | __WALL)) > 0) {
            int index = worker_of(ended);
            if (index >= 0) {
                workers[index] = 0;
                start(index, seed, ++restarts);
                moved[index] = now_ms();
            }
        }
        long now = now_ms();
        for (int i = 0; i < WORKERS; i++) {
            unsigned long beat = atomic_load(&shared->worker[i].beats);
            if (beat != beats[i]) {
                beats[i] = beat;
                moved[i] = now;
            } else if (now - moved[i] > 1000) {
                moved[i] = now;
                if (workers[i] > 0)
                    kill(workers[i], SIGKILL);
                else
                    start(i, seed, ++restarts);
            }
        }
        if (now - swept > 500) {
            swept = now;
            kill_orphans();
        }
        unsigned long calls = atomic_load(&shared->calls);
        if (now - shown > 5000) {
            shown = now;
            printf("\nfuzz: %lu calls, %lu restarts, %ld s\n", calls, restarts, (now - begun) / 1000);
            fflush(stdout);
        }
        if ((count && calls >= count) || (milliseconds && now - begun >= milliseconds))
            break;
    }
    for (int i = 0; i < WORKERS; i++)
        if (workers[i] > 0)
            kill(workers[i], SIGKILL);
    for (int i = 0; i < 100; i++) {
        kill_orphans();
        struct timespec nap = { 0, 2000000 };
        nanosleep(&nap, NULL);
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
            ;
    }
    print_stretch();
    // What a worker wrote to the console may not end with a line.
    printf("\nfuzz: %lu calls, seed %lu, done\n", (unsigned long)atomic_load(&shared->calls), (unsigned long)seed);
    fflush(stdout);
}

// What another first process would have done.
static void become_init(void)
{
    mkdir("/dev", 0755);
    mkdir("/proc", 0555);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    if (console >= 0)
        for (int fd = 0; fd < 3; fd++)
            dup2(console, fd);
}

int main(int argc, char **argv)
{
    int first = getpid() == 1;
    if (first)
        become_init();
    else if (getppid() != 1) {
        // In a guest its parent is the agent. This is no proof, but it stops a slip of the hand.
        fprintf(stderr, "fuzz: to be run in a guest, by process 1\n");
        return 2;
    }
    // A kernel may put words of its own before the arguments.
    if (argc < 3) {
        fprintf(stderr, "usage: fuzz SEED COUNT | fuzz SEED SECONDSs\n");
        if (first)
            reboot(RB_POWER_OFF);
        return 2;
    }
    uint64_t seed = strtoull(argv[argc - 2], NULL, 0);
    char *end;
    unsigned long amount = strtoul(argv[argc - 1], &end, 0);
    int seconds = *end == 's';
    // Far from what workers map: their calls may write beyond the end of their own pages.
    char *room = mmap(NULL, 1025 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mmap(room + 1024 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (room == MAP_FAILED || shared == MAP_FAILED || amount == 0) {
        fprintf(stderr, "fuzz: nothing to do\n");
        return 2;
    }
    supervise(seed, seconds ? 0 : amount, seconds ? (long)amount * 1000 : 0);
    if (first) {
        sync();
        reboot(RB_POWER_OFF);
    }
    return 0;
}
