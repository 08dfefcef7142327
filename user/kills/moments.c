// What a workload is doing when it is killed.
#include "kills.h"
#include <sys/sem.h>
#include <sys/wait.h>

static void idle(void)
{
    for (;;)
        pause();
}

static void forks(void)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid < 0)
            sched_yield();
        else if (any(4))
            waitpid(pid, NULL, 0);
    }
}

static void breeds(void)
{
    // Children have children, up to a number of them all.
    for (int i = 0; i < 7; i++)
        fork();
    idle();
}

static void executes(void)
{
    execl("/init", "/init", "--execute", NULL);
    idle();
}

static void executes_children(void)
{
    for (;;) {
        pid_t pid = once_in(2) ? vfork() : fork();
        if (pid == 0) {
            execl("/init", "/init", "--nothing", NULL);
            _exit(1);
        }
        waitpid(-1, NULL, pid < 0 ? WNOHANG : 0);
    }
}

static char content[1 << 20];

static void writes(void)
{
    int file = memfd_create("written", 0);
    for (;;)
        for (int i = 0; i < 16; i++)
            (void)!pwrite(file, content, sizeof content, (long)i << 20);
}

static void writes_to_pipe(void)
{
    int ends[2];
    if (pipe(ends) < 0)
        idle();
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    for (;;) {
        (void)!write(ends[1], content, 1 + any(500000));
        if (any(4))
            (void)!read(ends[0], content, sizeof content);
    }
}

static char *map(size_t size, int flags)
{
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        idle();
    return memory;
}

// The end of many pages, again and again.
static void unmaps(void)
{
    for (;;) {
        size_t size = (1 + any(4000)) * (size_t)PAGE;
        char *memory = map(size, MAP_POPULATE | (any(2) ? MAP_SHARED : MAP_PRIVATE));
        munmap(memory, size);
    }
}

static void unmaps_areas(void)
{
    for (;;) {
        int count = 1 + any(2000);
        char *memory = map((size_t)count * PAGE, MAP_SHARED);
        for (int i = 0; i < count; i += 2)
            mprotect(memory + (long)i * PAGE, PAGE, PROT_READ);
        munmap(memory, (size_t)count * PAGE);
    }
}

static void faults(void)
{
    size_t pages = 4000;
    char *memory = map(pages * PAGE, MAP_PRIVATE);
    for (;;) {
        for (size_t i = 0; i < pages; i++)
            ((volatile char *)memory)[i * PAGE] = 1;
        madvise(memory, pages * PAGE, MADV_DONTNEED);
    }
}

static void truncates(void)
{
    int file = memfd_create("truncated", 0);
    for (;;) {
        for (int i = 0; i < 500; i++)
            (void)!pwrite(file, "", 1, (long)i * (1 + any(50)) * PAGE);
        if (ftruncate(file, 0) < 0)
            idle();
    }
}

static void opens_and_closes(void)
{
    for (;;) {
        int from = dup(0);
        descriptor_kinds[any(17)].make(1 + any(30));
        syscall(SYS_close_range, from < 0 ? 100 : from, ~0u, 0);
    }
}

static void sends(void)
{
    for (;;) {
        int from = dup(0);
        socket_kinds[any(9)].make(1 + any(100));
        syscall(SYS_close_range, from < 0 ? 100 : from, ~0u, 0);
    }
}

// Who waits outside is let on; or the set is removed.
static void sets_semaphores(void)
{
    for (;;)
        if (once_in(200))
            semctl(board->waited_for, 0, IPC_RMID);
        else if (semctl(board->waited_for, 0, SETVAL, 1 + any(100)) < 0)
            idle();
}

static void ends(void) { _exit(0); }

static void end_of_thread(void) { }

static void threads_that_end(void)
{
    char *stacks = map(16 * PAGE, MAP_PRIVATE);
    for (;;)
        for (int i = 0; i < 16; i++) {
            volatile int *tid = (int *)(stacks + i * PAGE);
            if (spawn(end_of_thread, stacks + i * PAGE, (int *)tid) < 0)
                sched_yield();
            while (*tid != 0)
                sched_yield();
        }
}

static void moves_memory(void)
{
    size_t size = 500 * PAGE;
    char *memory = map(size, MAP_PRIVATE | MAP_POPULATE);
    for (;;) {
        char *moved = mremap(memory, size, size + PAGE, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED || (memory = mremap(moved, size + PAGE, size, MREMAP_MAYMOVE)) == MAP_FAILED)
            idle();
    }
}

static void makes_everything(void)
{
    for (;;) {
        file_kinds[any(7)].make(1 + any(10));
        task_kinds[any(12)].make(1 + any(5));
    }
}

const struct moment moments[] = {
    { "idle", idle },
    { "idle", idle },
    { "idle", idle },
    { "forks", forks },
    { "breeds", breeds },
    { "executes", executes },
    { "executes-children", executes_children },
    { "writes", writes },
    { "writes-to-pipe", writes_to_pipe },
    { "unmaps", unmaps },
    { "unmaps-areas", unmaps_areas },
    { "faults", faults },
    { "truncates", truncates },
    { "opens-and-closes", opens_and_closes },
    { "sends", sends },
    { "sets-semaphores", sets_semaphores },
    { "ends", ends },
    { "threads-that-end", threads_that_end },
    { "moves-memory", moves_memory },
    { "makes-everything", makes_everything },
};
const int moment_count = sizeof moments / sizeof moments[0];
