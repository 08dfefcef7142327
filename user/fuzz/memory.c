// Running out: programs that take all memory, processes, files or mappings. They must fail or be killed, the first
// process must live on, and what they held must come back.
//
//     memory
//
// Only for guests, as process 1 or its child. Prints a line for each scenario and `memory: N scenarios, M failed, done`.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// In KiB.
static long free_memory(void)
{
    char line[128];
    long value = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemFree: %ld kB", &value) == 1)
            break;
    if (file)
        fclose(file);
    return value;
}

static void take_anonymous(void)
{
    for (;;) {
        char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            _exit(1);
        memset(memory, 1, 1 << 20);
    }
}

static void take_shared(void)
{
    for (;;) {
        char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            _exit(1);
        memset(memory, 1, 1 << 20);
    }
}

static void many_takers(void)
{
    for (int i = 0; i < 12; i++)
        if (fork() == 0)
            take_anonymous();
    while (wait(NULL) > 0)
        ;
}

static void fill_files(void)
{
    static char block[1 << 16];
    int fd = open("/tmp/full", O_WRONLY | O_CREAT, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    int error = errno;
    unlink("/tmp/full");
    _exit(error == ENOSPC || error == ENOMEM ? 0 : 9);
}

static void many_files(void)
{
    char name[64];
    mkdir("/tmp/many", 0700);
    int count = 0;
    for (; count < 200000; count++) {
        snprintf(name, sizeof name, "/tmp/many/%d", count);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    while (count-- > 0) {
        snprintf(name, sizeof name, "/tmp/many/%d", count);
        unlink(name);
    }
    _exit(rmdir("/tmp/many") == 0 ? 0 : 9);
}

static void many_processes(void)
{
    int count = 0;
    for (; count < 20000; count++) {
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0) {
            pause();
            _exit(0);
        }
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0)
        ;
    _exit(count > 100 ? 0 : 9);
}

static void many_mappings(void)
{
    static char block[1 << 16];
    for (long i = 0; i < 200000; i++)
        if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            break;
    // What goes over all of them: telling them, copying them, taking them away.
    int fd = open("/proc/self/maps", O_RDONLY);
    while (read(fd, block, sizeof block) > 0)
        ;
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    munmap((void *)0x100000000, 0x7ff000000000);
    _exit(0);
}

static void full_pipes(void)
{
    static char block[1 << 16];
    int fds[2];
    for (int i = 0; i < 100; i++)
        if (fork() == 0) {
            while (pipe2(fds, O_NONBLOCK) == 0)
                while (write(fds[1], block, sizeof block) > 0)
                    ;
            pause();
        }
    sleep(3);
    kill(0, SIGKILL);
}

static void deep_recursion(void)
{
    volatile char room[1 << 16];
    room[0] = 1;
    if (room[0])
        deep_recursion();
    room[1] = 1;
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    { "anonymous memory", take_anonymous }, { "shared memory", take_shared },  { "twelve at once", many_takers },
    { "a full file system", fill_files },   { "many files", many_files },      { "many processes", many_processes },
    { "many mappings", many_mappings },     { "full pipes", full_pipes }, { "a deep stack", deep_recursion },
};

int main(void)
{
    int first = getpid() == 1;
    if (first) {
        mkdir("/dev", 0755);
        mkdir("/proc", 0555);
        mkdir("/tmp", 01777);
        mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
        mount("proc", "/proc", "proc", 0, NULL);
        int console = open("/dev/console", O_RDWR);
        for (int fd = 0; console >= 0 && fd < 3; fd++)
            dup2(console, fd);
    } else if (getppid() != 1) {
        fprintf(stderr, "memory: to be run in a guest, by process 1\n");
        return 2;
    }
    int count = sizeof scenarios / sizeof scenarios[0], failed = 0;
    for (int i = 0; i < count; i++) {
        long before = free_memory();
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, 0);
            scenarios[i].run();
            _exit(0);
        }
        waitpid(pid, &status, 0);
        // Those that were left behind, if the first was killed for all.
        kill(-pid, SIGKILL);
        // What orphans held takes a moment longer.
        long after = 0;
        for (int wait_ms = 0; wait_ms < 3000; wait_ms += 100) {
            while (first && waitpid(-1, NULL, WNOHANG) > 0)
                ;
            after = free_memory();
            if (after >= before - before / 20)
                break;
            usleep(100000);
        }
        int came_back = after >= before - before / 20;
        int is_well = came_back && !(WIFEXITED(status) && WEXITSTATUS(status) == 9);
        failed += !is_well;
        printf("memory: %s: %s %d, %ld KiB free before, %ld after%s\n", scenarios[i].name,
               WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), before, after,
               is_well ? "" : ": NOT WELL");
        fflush(stdout);
    }
    printf("memory: %d scenarios, %d failed, done\n", count, failed);
    fflush(stdout);
    if (first) {
        sync();
        reboot(RB_POWER_OFF);
    }
    return failed != 0;
}
