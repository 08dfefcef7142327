// clone(2) with a thread-local storage that no processor takes: nothing is made, so nothing is left to wait for.
#include "../check.h"
#include <sched.h>

// Makes a child as fork does, with CLONE_SETTLS and that address. The child never returns here.
static long clone_with(unsigned long flags, unsigned long tls)
{
    long made = syscall(SYS_clone, flags | SIGCHLD, 0, NULL, NULL, tls);
    if (made == 0)
        syscall(SYS_exit_group, 0);
    return made;
}

int main(void)
{
    int status;
    CHECK("not-canonical", clone_with(CLONE_SETTLS, 0x8000000000000000));
    CHECK("of-the-kernel", clone_with(CLONE_SETTLS, 0xffff800000000000));
    CHECK("just-above", clone_with(CLONE_SETTLS, 0x7ffffffff000));
    CHECK("nobody-to-wait-for", waitpid(-1, &status, 0));
    CHECK("thread", clone_with(CLONE_SETTLS | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, 0x8000000000000000));
    CHECK("with-pidfd", syscall(SYS_clone, CLONE_SETTLS | CLONE_PIDFD | SIGCHLD, 0, &status, NULL, 0x8000000000000000));
    CHECK("lowest-descriptor", dup(0));
    CHECK("still-nobody", waitpid(-1, &status, WNOHANG));
    CHECK_CHILD("good", _exit(3));
    return 0;
}
