// A set-user-ID program that is traced by who may not trace whom he likes gains nothing; one that is traced by root does.
#include "tracee.h"

static void copy(const char *from, const char *to)
{
    char buffer[65536];
    int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_WRONLY, 0755);
    ssize_t len;
    REQUIRE(in >= 0 && out >= 0);
    while ((len = read(in, buffer, sizeof buffer)) > 0)
        REQUIRE(write(out, buffer, len) == len);
    close(in);
    close(out);
}

static void become(int uid)
{
    if (uid)
        REQUIRE(setgid(uid) == 0 && setuid(uid) == 0);
}

// Runs the program as a user, traced by a process of another, or by nobody.
static void run(const char *name, int user, int tracer, int is_traced)
{
    check_line("%s\n", name);
    pid_t parent = check_fork();
    if (parent == 0) {
        if (tracer == user)
            become(user);
        pid_t child = check_fork();
        if (child == 0) {
            if (is_traced)
                REQUIRE(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
            if (tracer != user)
                become(user);
            execl("./program", "./program", "--show", NULL);
            _exit(99);
        }
        int status;
        while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
            ptrace(PTRACE_CONT, child, 0, 0);
        _exit(WEXITSTATUS(status));
    }
    CHECK_STATUS("end", check_wait(parent));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        check_line("real %d, effective %d\n", (int)getuid(), (int)geteuid());
        return 0;
    }
    (void)argv;
    copy("/proc/self/exe", "program");
    REQUIRE(chown("program", 4000, 4000) == 0 && chmod("program", 06755) == 0 && chmod(".", 0755) == 0);
    run("untraced", 4001, 4001, 0);
    run("traced by its user", 4001, 4001, 1);
    run("traced by root", 4001, 0, 1);
    REQUIRE(chown("program", 0, 0) == 0 && chmod("program", 04755) == 0);
    run("root's, untraced", 4001, 4001, 0);
    run("root's, traced by its user", 4001, 4001, 1);
    run("root's, traced by root", 4001, 0, 1);
    return 0;
}
