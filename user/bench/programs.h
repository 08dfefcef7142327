// Programs of Debian's, and the disk that they are on.
#pragma once
#include "bench.h"
#include <sys/wait.h>

// Debian's Linux has its drivers in modules, which the archive has in the order in which they are to be loaded.
static inline void load_modules(void)
{
    for (int number = 0;; number++) {
        char path[32];
        snprintf(path, sizeof path, "/.ebb/modules/%02d", number);
        int module = open(path, O_RDONLY);
        if (module < 0)
            break;
        must(syscall(SYS_finit_module, module, "", 0), path);
        close(module);
    }
}

// Starts a program, with a file as its input and below another root if these are not NULL. What it writes goes to a file in memory, which a program such as grep does not take for nowhere.
static inline pid_t start_in(const char *root, const char *input, const char *const argv[])
{
    static char *const environment[] = { "PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C", "TZ=UTC", NULL };
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        int output = open("/output", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        int from = open(input ? input : "/dev/null", O_RDONLY);
        if (output < 0 || from < 0 || dup2(from, 0) < 0 || dup2(output, 1) < 0 || (root && (chroot(root) < 0 || chdir("/") < 0)))
            _exit(126);
        execve(argv[0], (char *const *)argv, environment);
        _exit(127);
    }
    return pid;
}

// Runs a program to its end.
static inline void run_in(const char *root, const char *input, const char *const argv[])
{
    pid_t pid = start_in(root, input, argv);
    int status = -1;
    must(waitpid(pid, &status, 0), "wait");
    if (status != 0) {
        printf("bench: %s ended with status %#x\n", argv[0], status);
        errno = ECHILD;
        fail("a program");
    }
}
