// How processes end, as their parent sees it.
#include "../check.h"

static void leave(void)
{
    check_line("atexit: ran\n");
}

int main(void)
{
    CHECK_CHILD("zero", _exit(0));
    CHECK_CHILD("code", _exit(42));
    CHECK_CHILD("only-low-byte", _exit(0x1234));
    CHECK_CHILD("negative", _exit(-1));
    CHECK_CHILD("atexit", atexit(leave); exit(3));
    CHECK_CHILD("raw-exit", syscall(SYS_exit, 7));
    CHECK_CHILD("exit-group", syscall(SYS_exit_group, 8));
    CHECK_CHILD("abort", abort());
    CHECK_CHILD("kill", raise(SIGKILL));
    CHECK_CHILD("term", raise(SIGTERM));
    CHECK_CHILD("user-signal", raise(SIGUSR1));
    CHECK_CHILD("alarm", alarm(0); raise(SIGALRM));
    CHECK_CHILD("realtime", raise(SIGRTMIN + 2));
    CHECK_CHILD("ignored-by-default", raise(SIGCHLD); raise(SIGURG); raise(SIGWINCH); raise(SIGCONT); _exit(4));
    CHECK_CHILD("power", raise(SIGPWR));
    CHECK_CHILD("io", raise(SIGIO));
    CHECK_CHILD("stack-fault", raise(SIGSTKFLT));
    CHECK_CHILD("system", raise(SIGSYS));
    return 0;
}
