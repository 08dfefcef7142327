// execve: arguments, environment, what survives, scripts, errors.
#include "../check.h"
#include <sys/auxv.h>
#include <sys/resource.h>

extern char **environ;

static void after_exec(int argc, char **argv)
{
    if (strncmp(argv[1], "arguments", 9) == 0) {
        for (int i = 0; i < argc; i++)
            check_line("  argument %d: %s\n", i, argv[i]);
        for (char **e = environ; *e; e++)
            check_line("  environment: %s\n", *e);
    } else if (strcmp(argv[1], "signals") == 0) {
        struct sigaction a, b;
        sigset_t mask, pending;
        sigaction(SIGUSR1, NULL, &a);
        sigaction(SIGUSR2, NULL, &b);
        sigprocmask(SIG_BLOCK, NULL, &mask);
        sigpending(&pending);
        CHECK("handler-reset", a.sa_handler == SIG_DFL);
        CHECK("ignore-kept", b.sa_handler == SIG_IGN);
        CHECK("mask-kept", sigismember(&mask, SIGHUP));
        CHECK("pending-kept", sigismember(&pending, SIGHUP));
        stack_t stack;
        sigaltstack(NULL, &stack);
        CHECK("alternate-stack-gone", stack.ss_flags == SS_DISABLE);
    } else if (strcmp(argv[1], "descriptors") == 0) {
        CHECK("kept", fcntl(20, F_GETFD));
        CHECK("closed", fcntl(21, F_GETFD));
        CHECK("position", lseek(20, 0, SEEK_CUR));
    } else if (strcmp(argv[1], "attributes") == 0) {
        CHECK("umask", umask(0));
        CHECK("nice", getpriority(PRIO_PROCESS, 0));
        CHECK_TRUE("same-pid", getpid() == atoi(argv[2]));
        CHECK_TRUE("alarm-kept", check_alarm_left > 0);
        CHECK("directory", access("here", F_OK));
    } else if (strcmp(argv[1], "auxiliary") == 0) {
        CHECK("page-size", getauxval(AT_PAGESZ));
        CHECK("clock-tick", getauxval(AT_CLKTCK));
        CHECK("secure", getauxval(AT_SECURE));
        CHECK("uid", getauxval(AT_UID));
        CHECK_TRUE("random", getauxval(AT_RANDOM) != 0);
        CHECK("program-header-size", getauxval(AT_PHENT));
        CHECK_TRUE("entry-and-headers", getauxval(AT_ENTRY) != 0 && getauxval(AT_PHDR) != 0 && getauxval(AT_PHNUM) > 0);
        CHECK_STR("filename", check_base((char *)getauxval(AT_EXECFN)));
        CHECK_STR("platform", (char *)getauxval(AT_PLATFORM));
    } else if (strcmp(argv[1], "empty") == 0) {
        CHECK("reached", 1);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *self = "/proc/self/exe";
    if (argc > 1)
        after_exec(argc, argv);
    if (argc == 0) {
        check_line("argc: 0\n");
        _exit(0);
    }
    check_write_file("here", "0123456789");
    CHECK_CHILD("arguments", char *const list[] = { "name", "arguments", "", "with space", NULL };
                char *const environment[] = { "A=1", "EMPTY=", "no-equals", NULL }; execve(self, list, environment); _exit(errno));
    CHECK_CHILD("no-environment", char *const list[] = { "name", "arguments", NULL }; execve(self, list, NULL); _exit(errno));
    CHECK_CHILD("signals", signal(SIGUSR1, (void (*)(int))strsignal); signal(SIGUSR2, SIG_IGN); sigset_t mask; sigemptyset(&mask);
                sigaddset(&mask, SIGHUP); sigprocmask(SIG_BLOCK, &mask, NULL); raise(SIGHUP); static char stack_memory[16384];
                stack_t stack = { .ss_sp = stack_memory, .ss_size = sizeof stack_memory }; REQUIRE(sigaltstack(&stack, NULL) == 0);
                execl(self, "name", "signals", NULL); _exit(errno));
    CHECK_CHILD("descriptors", int fd = open("here", O_RDONLY); REQUIRE(lseek(fd, 4, SEEK_SET) == 4); REQUIRE(dup2(fd, 20) == 20);
                REQUIRE(dup3(fd, 21, O_CLOEXEC) == 21); execl(self, "name", "descriptors", NULL); _exit(errno));
    CHECK_CHILD("attributes", umask(051); setpriority(PRIO_PROCESS, 0, 19); char id[16]; snprintf(id, sizeof id, "%d", getpid());
                execl(self, "name", "attributes", id, NULL); _exit(errno));
    CHECK_CHILD("auxiliary", REQUIRE(symlink("/proc/self/exe", "program") == 0); execl("./program", "x", "auxiliary", NULL); _exit(errno));

    CHECK("missing", execl("missing", "x", NULL));
    CHECK("not-executable", execl("here", "x", NULL));
    CHECK("directory", execl(".", "x", NULL));
    CHECK("below-file", execl("here/x", "x", NULL));
    REQUIRE(chmod("here", 0755) == 0);
    CHECK("no-format", execve("here", (char *[]){ "x", NULL }, NULL));
    check_write_file("empty", "");
    REQUIRE(chmod("empty", 0755) == 0);
    CHECK("empty-file", execve("empty", (char *[]){ "x", NULL }, NULL));
    check_write_file("elf", "\177ELF");
    REQUIRE(chmod("elf", 0755) == 0);
    CHECK("truncated-elf", execve("elf", (char *[]){ "x", NULL }, NULL));
    // A script runs its interpreter with one argument, its own path and the rest.
    int script = open("script", O_WRONLY | O_CREAT, 0755);
    char target[4096];
    ssize_t length = readlink(self, target, sizeof target - 1);
    REQUIRE(length > 0);
    target[length] = 0;
    REQUIRE(length < 200 && dprintf(script, "#! %s arguments two words \nrest\n", target) > 0);
    close(script);
    CHECK_CHILD("script", char *const list[] = { "ignored", "one", "two", NULL }; char *const environment[] = { "S=1", NULL };
                pid_t inner = check_fork(); if (inner == 0) { dup2(open("captured", O_WRONLY | O_CREAT, 0644), 1);
                execve("./script", list, environment); _exit(errno); } CHECK_STATUS("inner", check_wait(inner)));
    char *text = strdup(check_read_file("captured"));
    char *second = strstr(text, "  argument 1");
    check_line("script-arguments:\n%s\n", second ? second : text);
    check_write_file("lost", "#!/no/such/interpreter\n");
    REQUIRE(chmod("lost", 0755) == 0);
    CHECK("script-without-interpreter", execl("lost", "lost", NULL));
    check_write_file("bare", "#!\n");
    REQUIRE(chmod("bare", 0755) == 0);
    CHECK("script-without-name", execve("bare", (char *[]){ "x", NULL }, NULL));
    check_write_file("again", "#!./again\n");
    REQUIRE(chmod("again", 0755) == 0);
    CHECK("script-of-itself", execl("again", "again", NULL));
    // One argument of 128 KiB is too long.
    char *long_argument = malloc(140000);
    memset(long_argument, 'l', 139999);
    long_argument[139999] = 0;
    CHECK("argument-too-long", execl(self, "x", long_argument, NULL));
    long_argument[100000] = 0;
    CHECK_CHILD("argument-long", execl(self, "x", "empty", long_argument, NULL); _exit(errno));
    // The program being run cannot be written, nor a file that is open for writing be run.
    CHECK_CHILD("text-busy", int out = open("copy", O_WRONLY | O_CREAT, 0755); int in = open(self, O_RDONLY); char block[65536]; ssize_t n;
                while ((n = read(in, block, sizeof block)) > 0) REQUIRE(write(out, block, n) == n);
                CHECK("run-while-written", execl("./copy", "x", "empty", NULL)));
    CHECK_CHILD("run-copy", execl("./copy", "x", "empty", NULL); _exit(errno));
    int program = open("copy", O_RDONLY);
    CHECK_CHILD("execveat-empty-path", syscall(322, program, "", (char *[]){ "x", "empty", NULL }, NULL, AT_EMPTY_PATH); _exit(errno));
    CHECK_CHILD("fexecve-relative", int d = open(".", O_RDONLY); syscall(322, d, "copy", (char *[]){ "x", "empty", NULL }, NULL, 0); _exit(errno));
    return 0;
}
