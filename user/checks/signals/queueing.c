// Whom rt_sigqueueinfo, rt_tgsigqueueinfo and pidfd_send_signal find, and what they let a program say.
#include "../check.h"
#include <pthread.h>
#include <sys/prctl.h>

static volatile sig_atomic_t caught, value;

static void note(int signal, siginfo_t *info, void *context)
{
    (void)context;
    caught = signal;
    value = info->si_value.sival_int;
}

static siginfo_t info_with(int code)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGUSR1;
    info.si_code = code;
    info.si_pid = getpid();
    info.si_value.sival_int = 777;
    return info;
}

static int ends[2];
static volatile pid_t tid;

static void *wait_in_thread(void *argument)
{
    char byte;
    tid = (pid_t)syscall(SYS_gettid);
    siginfo_t info = info_with(SI_USER);
    // To itself a thread may say anything, by its own id.
    CHECK("own-thread-as-user", syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGUSR1, &info));
    CHECK("first-thread-as-user", syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGUSR1, &info));
    CHECK("own-process-as-user", syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info));
    REQUIRE(write(ends[1], "x", 1) == 1);
    (void)argument;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
        ;
    return NULL;
}

static int open_process(pid_t pid, const char *name, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d%s", pid, name);
    return open(path, flags);
}

static long send(int fd, int signal)
{
    return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    pthread_t thread;
    char byte;
    int up[2];
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0 && pipe(ends) == 0 && pipe(up) == 0);
    int swap = ends[1];
    ends[1] = up[1];
    up[1] = swap;
    REQUIRE(pthread_create(&thread, NULL, wait_in_thread, NULL) == 0);
    while (read(up[0], &byte, 1) < 0)
        REQUIRE(errno == EINTR);
    caught = 0;
    siginfo_t info = info_with(SI_QUEUE);
    CHECK("to-a-thread-id", syscall(SYS_rt_sigqueueinfo, tid, SIGUSR1, &info));
    while (!caught)
        sched_yield();
    check_line("value: %d\n", value);
    info = info_with(SI_USER);
    CHECK("to-a-thread-id-as-user", syscall(SYS_rt_sigqueueinfo, tid, SIGUSR1, &info));
    CHECK("to-itself-as-user", syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info));
    CHECK("nobody", syscall(SYS_rt_sigqueueinfo, 0x3fffffff, SIGUSR1, &info));
    CHECK("kill-thread-id", kill(tid, 0));
    REQUIRE(write(up[1], "x", 1) == 1);
    pthread_join(thread, NULL);

    pid_t child = check_fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    int directory = open_process(child, "", O_RDONLY | O_DIRECTORY);
    int task = open_process(child, "/task", O_RDONLY | O_DIRECTORY);
    int text = open_process(child, "/status", O_RDONLY);
    int path = open_process(child, "", O_PATH | O_DIRECTORY);
    int root = open("/proc", O_RDONLY | O_DIRECTORY);
    REQUIRE(directory >= 0 && task >= 0 && text >= 0 && path >= 0 && root >= 0);
    CHECK("directory", send(directory, 0));
    CHECK("task", send(task, 0));
    CHECK("text", send(text, 0));
    CHECK("path-only", send(path, 0));
    CHECK("proc", send(root, 0));
    CHECK("standard-input", send(0, 0));
    CHECK("kill", send(directory, SIGKILL));
    CHECK_STATUS("killed", check_wait(child));
    CHECK("gone", send(directory, 0));
    return 0;
}
