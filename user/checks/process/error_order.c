// Calls with several wrong arguments: which error is found first. What cannot tell its result (prlimit, sigaction, sigprocmask, wait4, waitid) has
// been done all the same on Linux; on Ebb a call that fails has done nothing.
#include "../check.h"
#include <sys/resource.h>
#include <sys/timerfd.h>

#define NOBODY 0x3fffffff
#define BEYOND ((void *)0xffff800000000000)

int main(void)
{
    struct rlimit limit = { 20, 10 };
    CHECK("prlimit-bad-limit-of-nobody", syscall(SYS_prlimit64, NOBODY, RLIMIT_NOFILE, BAD_POINTER, NULL));
    CHECK("prlimit-unknown-of-nobody", syscall(SYS_prlimit64, NOBODY, 99, NULL, NULL));
    CHECK("prlimit-unknown-bad-limit", syscall(SYS_prlimit64, 0, 99, BAD_POINTER, NULL));
    CHECK("prlimit-unknown", syscall(SYS_prlimit64, 0, 99, NULL, NULL));
    CHECK("prlimit-inverted-of-nobody", syscall(SYS_prlimit64, NOBODY, RLIMIT_NOFILE, &limit, NULL));
    CHECK("prlimit-inverted-bad-old", syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, BAD_POINTER));
    CHECK("prlimit-negative", syscall(SYS_prlimit64, -1, RLIMIT_NOFILE, NULL, NULL));
    CHECK_CHILD("prlimit-set-and-bad-old", limit = (struct rlimit){ 100, 200 }; CHECK("call", syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, BAD_POINTER)));
    CHECK_CHILD("prlimit-of-a-stranger", pid_t parent = getppid(); REQUIRE(setuid(1000) == 0); CHECK("get", syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, NULL, &limit));
                CHECK("unknown", syscall(SYS_prlimit64, parent, 99, NULL, &limit)); CHECK("bad", syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, BAD_POINTER, NULL)));
    CHECK("setrlimit-unknown-bad", syscall(SYS_setrlimit, 99, BAD_POINTER));
    CHECK("getrlimit-unknown-bad", syscall(SYS_getrlimit, 99, BAD_POINTER));
    char action[64] = { 0 };
    CHECK("sigaction-kill", syscall(SYS_rt_sigaction, SIGKILL, action, NULL, 8L));
    CHECK("sigaction-kill-bad", syscall(SYS_rt_sigaction, SIGKILL, BAD_POINTER, NULL, 8L));
    CHECK("sigaction-kill-ask", syscall(SYS_rt_sigaction, SIGKILL, NULL, action, 8L));
    CHECK("sigaction-kill-ask-bad", syscall(SYS_rt_sigaction, SIGKILL, NULL, BAD_POINTER, 8L));
    CHECK("sigaction-none-bad", syscall(SYS_rt_sigaction, 0, BAD_POINTER, NULL, 8L));
    CHECK("sigaction-beyond-bad", syscall(SYS_rt_sigaction, 65, BAD_POINTER, NULL, 8L));
    CHECK("sigaction-beyond", syscall(SYS_rt_sigaction, 65, NULL, NULL, 8L));
    CHECK("sigaction-size-bad", syscall(SYS_rt_sigaction, 65, BAD_POINTER, NULL, 4L));
    CHECK("sigaction-bad-old", syscall(SYS_rt_sigaction, SIGUSR1, action, BAD_POINTER, 8L));
    sigset_t all;
    sigfillset(&all);
    CHECK("sigprocmask-how-bad", syscall(SYS_rt_sigprocmask, 99, BAD_POINTER, NULL, 8L));
    CHECK("sigprocmask-how", syscall(SYS_rt_sigprocmask, 99, &all, NULL, 8L));
    CHECK("sigprocmask-how-without-set", syscall(SYS_rt_sigprocmask, 99, NULL, NULL, 8L));
    CHECK("sigprocmask-bad-old", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, BAD_POINTER, 8L));
    REQUIRE(sigemptyset(&all) == 0 && syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8L) == 0);
    CHECK("sigpending-size-bad", syscall(SYS_rt_sigpending, BAD_POINTER, 9L));
    CHECK("sigtimedwait-size-bad", syscall(SYS_rt_sigtimedwait, BAD_POINTER, NULL, NULL, 4L));
    CHECK("sigtimedwait-bad-time", syscall(SYS_rt_sigtimedwait, &all, NULL, BAD_POINTER, 8L));
    CHECK("sigtimedwait-wrong-time", syscall(SYS_rt_sigtimedwait, &all, NULL, &(struct timespec){ 0, -1 }, 8L));
    char stack[24] = { 0 };
    stack[8] = 77;
    CHECK("sigaltstack-flags-bad-old", syscall(SYS_sigaltstack, stack, BAD_POINTER));
    CHECK("sigaltstack-bad", syscall(SYS_sigaltstack, BAD_POINTER, BAD_POINTER));
    CHECK("kill-nobody-signal", kill(NOBODY, 99));
    CHECK("kill-signal", kill(getpid(), 99));
    CHECK("kill-least", kill((pid_t)0x80000000, 99));
    CHECK("kill-least-none", kill((pid_t)0x80000000, 0));
    CHECK("kill-negative-signal", kill(getpid(), -1));
    CHECK("tkill-nobody-signal", syscall(SYS_tkill, NOBODY, 99));
    CHECK("tkill-none", syscall(SYS_tkill, 0, 99));
    CHECK("tkill-signal", syscall(SYS_tkill, getpid(), 99));
    CHECK("tgkill-nobody-signal", syscall(SYS_tgkill, NOBODY, NOBODY, 99));
    siginfo_t info = { .si_code = SI_QUEUE };
    CHECK("queue-zero", syscall(SYS_rt_sigqueueinfo, getpid(), 0, &info));
    CHECK("queue-zero-bad", syscall(SYS_rt_sigqueueinfo, getpid(), 0, BAD_POINTER));
    CHECK("queue-zero-nobody", syscall(SYS_rt_sigqueueinfo, NOBODY, 0, &info));
    CHECK("queue-nobody-bad", syscall(SYS_rt_sigqueueinfo, NOBODY, SIGUSR1, BAD_POINTER));
    CHECK("queue-beyond-bad", syscall(SYS_rt_sigqueueinfo, getpid(), 99, BAD_POINTER));
    CHECK("queue-beyond-nobody", syscall(SYS_rt_sigqueueinfo, NOBODY, 99, &info));
    CHECK("queue-negative-pid", syscall(SYS_rt_sigqueueinfo, -1, SIGUSR1, &info));
    info.si_code = 0;
    CHECK("queue-as-kernel-nobody", syscall(SYS_rt_sigqueueinfo, NOBODY, SIGUSR1, &info));
    CHECK("queue-as-kernel-zero", syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info));
    CHECK("thread-queue-zero-bad", syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), 0, BAD_POINTER));
    CHECK("thread-queue-nobody-bad", syscall(SYS_rt_tgsigqueueinfo, NOBODY, NOBODY, SIGUSR1, BAD_POINTER));
    CHECK("thread-queue-none-bad", syscall(SYS_rt_tgsigqueueinfo, 0, 0, SIGUSR1, BAD_POINTER));
    CHECK("thread-queue-none", syscall(SYS_rt_tgsigqueueinfo, 0, 0, SIGUSR1, &info));
    CHECK("waitid-options-none", syscall(SYS_waitid, P_ALL, 0, NULL, 0, NULL));
    CHECK("waitid-options-unknown", syscall(SYS_waitid, P_ALL, 0, NULL, WEXITED | 0x100, NULL));
    CHECK("waitid-type", syscall(SYS_waitid, 99, 0, NULL, WEXITED, NULL));
    CHECK("waitid-type-options", syscall(SYS_waitid, 99, 0, NULL, 0, NULL));
    CHECK("waitid-pid-zero", syscall(SYS_waitid, P_PID, 0, NULL, WEXITED, NULL));
    CHECK("waitid-pid-negative", syscall(SYS_waitid, P_PID, -1, NULL, WEXITED, NULL));
    CHECK("waitid-group-negative", syscall(SYS_waitid, P_PGID, -1, NULL, WEXITED, NULL));
    CHECK("waitid-group-none", syscall(SYS_waitid, P_PGID, NOBODY, NULL, WEXITED, NULL));
    CHECK("waitid-descriptor", syscall(SYS_waitid, P_PIDFD, 999, NULL, WEXITED, NULL));
    CHECK("waitid-descriptor-negative", syscall(SYS_waitid, P_PIDFD, -1, NULL, WEXITED, NULL));
    CHECK("waitid-nobody-bad", syscall(SYS_waitid, P_ALL, 0, BAD_POINTER, WEXITED, BAD_POINTER));
    CHECK("wait4-options", syscall(SYS_wait4, -1, NULL, 0x100, NULL));
    CHECK("wait4-least", syscall(SYS_wait4, 0x80000000, NULL, 0, NULL));
    CHECK("wait4-nobody-bad", syscall(SYS_wait4, -1, BAD_POINTER, 0, BAD_POINTER));
    pid_t pid = check_fork();
    if (pid == 0)
        _exit(5);
    CHECK("waitid-bad", syscall(SYS_waitid, P_PID, pid, BAD_POINTER, WEXITED, NULL));
    pid = check_fork();
    if (pid == 0)
        _exit(5);
    CHECK("waitid-bad-usage", syscall(SYS_waitid, P_PID, pid, &info, WEXITED, BAD_POINTER));
    pid = check_fork();
    if (pid == 0)
        _exit(5);
    CHECK("wait4-bad-usage", syscall(SYS_wait4, pid, NULL, 0, BAD_POINTER));
    check_write_file("script", "#!/nowhere\n");
    check_write_file("empty", "");
    check_write_file("text", "some text\n");
    REQUIRE(mkdir("d", 0755) == 0 && chmod("script", 0755) == 0 && chmod("empty", 0755) == 0);
    char *bad_list[] = { "a", BAD_POINTER, NULL };
    CHECK("execve-bad-bad", syscall(SYS_execve, BAD_POINTER, BAD_POINTER, BAD_POINTER));
    CHECK("execve-bad-arguments", syscall(SYS_execve, "script", BAD_POINTER, NULL));
    CHECK("execve-bad-environment", syscall(SYS_execve, "script", NULL, BAD_POINTER));
    CHECK("execve-bad-argument", syscall(SYS_execve, "script", bad_list, NULL));
    CHECK("execve-bad-variable", syscall(SYS_execve, "script", NULL, bad_list));
    CHECK("execve-empty-bad", syscall(SYS_execve, "empty", bad_list, NULL));
    CHECK("execve-empty", syscall(SYS_execve, "empty", NULL, NULL));
    CHECK("execve-script", syscall(SYS_execve, "script", NULL, NULL));
    CHECK("execve-kernel-arguments", syscall(SYS_execve, "script", BEYOND, NULL));
    CHECK("execve-no-path", syscall(SYS_execve, "", BAD_POINTER, NULL));
    CHECK("execveat-flags-bad", syscall(SYS_execveat, AT_FDCWD, BAD_POINTER, BAD_POINTER, NULL, 0x10));
    CHECK("timer-create-clock-bad", syscall(SYS_timer_create, 99, BAD_POINTER, BAD_POINTER));
    CHECK("timer-create-bad", syscall(SYS_timer_create, CLOCK_REALTIME, BAD_POINTER, NULL));
    CHECK("timer-settime-none-bad", syscall(SYS_timer_settime, 9999, 0, BAD_POINTER, NULL));
    CHECK("timer-settime-none-null", syscall(SYS_timer_settime, 9999, 0, NULL, NULL));
    CHECK("timer-gettime-none-bad", syscall(SYS_timer_gettime, 9999, BAD_POINTER));
    CHECK("clock-gettime-none-bad", syscall(SYS_clock_gettime, 99, BAD_POINTER));
    CHECK("clock-settime-none-bad", syscall(SYS_clock_settime, 99, BAD_POINTER));
    CHECK("clock-settime-monotonic-bad", syscall(SYS_clock_settime, CLOCK_MONOTONIC, BAD_POINTER));
    CHECK("clock-nanosleep-none-bad", syscall(SYS_clock_nanosleep, 99, 0, BAD_POINTER, NULL));
    CHECK("timerfd-settime-closed-bad", syscall(SYS_timerfd_settime, 999, 0, BAD_POINTER, NULL));
    CHECK("timerfd-settime-flags-closed", syscall(SYS_timerfd_settime, 999, 99, &(struct itimerspec){ 0 }, NULL));
    CHECK("timerfd-gettime-closed-bad", syscall(SYS_timerfd_gettime, 999, BAD_POINTER));
    CHECK("setitimer-which-bad", syscall(SYS_setitimer, 9, BAD_POINTER, NULL));
    CHECK("getitimer-which-bad", syscall(SYS_getitimer, 9, BAD_POINTER));
    CHECK("getrusage-who-bad", syscall(SYS_getrusage, 9, BAD_POINTER));
    return 0;
}
