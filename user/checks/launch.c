// Starts a program in a state that depends on nothing but this file: `launch CAPABILITIES LIMITS PROGRAM ARGV0 [ARGUMENT...]`.
//
// A check compares two systems, so what a process inherits must be the same on both, however the comparison was started: from a
// terminal, in the background of a script (where SIGINT and SIGQUIT are ignored), under `nohup`, with files left open, with
// another umask, with lower limits. CAPABILITIES is a mask in hexadecimal; what is not in it is given up, so that a guest's root
// may do what this host's root may. LIMITS are the host's hard limits by resource, with commas between, `-` for none: none is exceeded.
//
// The launcher leads a session without a terminal and stays, so that the program's process group is not an orphaned one. When the
// program ends, the rest of its group is killed and the launcher ends in the same way. SIGTERM to the launcher ends the program.
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The program's process group, for who ends it from outside.
static volatile pid_t program;

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(125);
    }
}

static void reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(0);
}

// `most` is LIMITS: what the host does not allow, the guest does not either.
static void reset_limits(const char *most)
{
    struct {
        int resource;
        rlim_t soft, hard;
    } limits[] = {
        { RLIMIT_CORE, 0, 1 << 30 },
        { RLIMIT_NOFILE, 1024, 4096 },
        { RLIMIT_NPROC, 4096, 4096 },
        { RLIMIT_STACK, 8 << 20, RLIM_INFINITY },
        { RLIMIT_MEMLOCK, 8 << 20, 8 << 20 },
        { RLIMIT_SIGPENDING, 4096, 4096 },
        { RLIMIT_MSGQUEUE, 819200, 819200 },
        { RLIMIT_NICE, 0, 0 },
        { RLIMIT_RTPRIO, 0, 0 },
        { RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY },
        { RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY },
        { RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY },
        { RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY },
        { RLIMIT_LOCKS, RLIM_INFINITY, RLIM_INFINITY },
        { RLIMIT_RSS, RLIM_INFINITY, RLIM_INFINITY },
        { RLIMIT_RTTIME, RLIM_INFINITY, RLIM_INFINITY },
    };
    for (int resource = 0; *most; resource++) {
        char *end;
        rlim_t hard = strtoull(most, &end, 10);
        for (size_t i = 0; end != most && i < sizeof limits / sizeof limits[0]; i++) {
            if (limits[i].resource == resource && limits[i].hard > hard)
                limits[i].hard = hard;
        }
        most += strcspn(most, ",");
        most += *most == ',';
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit limit = { limits[i].soft < limits[i].hard ? limits[i].soft : limits[i].hard, limits[i].hard };
        must(setrlimit(limits[i].resource, &limit) == 0, "launch: setrlimit");
    }
}

// The loopback device, which a Linux in a machine of its own begins with down. Who may not do that finds it up.
static void bring_loopback_up(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

static void limit_capabilities(unsigned long long kept)
{
    for (int capability = 0; capability < 64; capability++)
        if (!(kept >> capability & 1) && prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1)
            must(prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0, "launch: capabilities");
    struct { uint32_t version; int pid; } header = { 0x20080522, 0 };
    struct { uint32_t effective, permitted, inheritable; } sets[2];
    must(syscall(SYS_capget, &header, sets) == 0, "launch: capget");
    for (int half = 0; half < 2; half++) {
        uint32_t mask = (uint32_t)(kept >> 32 * half);
        sets[half].effective &= mask;
        sets[half].permitted &= mask;
        sets[half].inheritable = 0;
    }
    must(syscall(SYS_capset, &header, sets) == 0, "launch: capset");
}

// A leader of a process group cannot begin a session; so it joins a group that a child makes for it first.
static void begin_session(void)
{
    if (getsid(0) == getpid())
        return;
    pid_t child = fork();
    must(child >= 0, "launch: fork");
    if (child == 0)
        for (;;)
            pause();
    must(setpgid(child, child) == 0 && setpgid(0, child) == 0, "launch: setpgid");
    must(setsid() >= 0, "launch: setsid");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

// What the program mounts goes with it. Who may not leave the host's mounts may not mount anything either, and a guest ends with all it has.
static void leave_mounts(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "launch: private mounts");
}

// Its time is over: SIGTERM ends the program and so the launcher.
static void end(int number)
{
    (void)number;
    kill(-program, SIGKILL);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: launch CAPABILITIES LIMITS PROGRAM ARGV0 [ARGUMENT...]\n");
        return 125;
    }
    reset_signals();
    begin_session();
    syscall(SYS_close_range, 3u, ~0u, 0u);
    reset_limits(argv[2]);
    setpriority(PRIO_PROCESS, 0, 0);
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
    personality(PER_LINUX);
    prctl(PR_SET_TIMERSLACK, 50000, 0, 0, 0);
    umask(022);
    leave_mounts();
    bring_loopback_up();
    limit_capabilities(strtoull(argv[1], NULL, 16));

    program = fork();
    must(program >= 0, "launch: fork");
    if (program == 0) {
        setpgid(0, 0);
        execv(argv[3], argv + 4);
        perror(argv[3]);
        _exit(127);
    }
    setpgid(program, program);
    signal(SIGTERM, end);
    close(0);
    int status = 0;
    while (waitpid(program, &status, 0) < 0)
        must(errno == EINTR, "launch: waitpid");
    kill(-program, SIGKILL);
    if (WIFSIGNALED(status)) {
        signal(SIGTERM, SIG_DFL);
        raise(WTERMSIG(status));
        kill(getpid(), SIGKILL);
    }
    return WEXITSTATUS(status);
}
