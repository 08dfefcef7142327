// A child in its parent's memory clears its word (CLONE_CHILD_CLEARTID) when it leaves that memory, by execve(2) as by its end.
#include "../check.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int word;
static char stack[65536] __attribute__((aligned(16)));

static int run(void *with_exec)
{
    char *const arguments[] = { "word_cleared_by_exec", "as-child", NULL };
    if (with_exec)
        execv("/proc/self/exe", arguments);
    return 3;
}

// What has become of the word by the time that the parent goes on, or is told, and of the child.
static void see(const char *name, int flags, void *with_exec)
{
    word = 1;
    pid_t child = clone(run, stack + sizeof stack, flags | CLONE_CHILD_CLEARTID | SIGCHLD, with_exec, NULL, NULL, &word);
    REQUIRE(child > 0);
    int status;
    if (!(flags & CLONE_VFORK) && (flags & CLONE_VM))
        while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) != 0)
            syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 1, NULL, NULL, 0);
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(name, word);
    CHECK_STATUS(name, status);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return 7;
    see("vfork-exec", CLONE_VM | CLONE_VFORK, &word);
    see("shared-exec", CLONE_VM, &word);
    see("shared-end", CLONE_VM, NULL);
    see("own-memory-exec", 0, &word);
    return 0;
}
