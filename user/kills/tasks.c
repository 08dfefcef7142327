// Threads, processes, and what belongs to them.
#include "kills.h"
#include <sys/epoll.h>

static void stay(void)
{
    for (;;)
        call3(SYS_pause, 0, 0, 0);
}

static volatile int never_woken;

// From linux/futex.h.
enum { WAIT = 0, PRIVATE = 128 };

static int computing;

// Waits in one of several ways, without the C library: threads have its memory of the one that made them.
static void wait_somehow(unsigned way)
{
    static int ends[2];
    struct timespec late = { 1000000, 0 };
    uint64_t mask = 0;
    char byte;
    for (;;)
        switch (way % 8) {
        case 0:
            call6(SYS_futex, (long)&never_woken, WAIT | PRIVATE, 0, 0, 0, 0);
            break;
        case 1:
            call6(SYS_futex, (long)&board->robust_locked, WAIT, board->robust_locked, (long)&late, 0, 0);
            break;
        case 2:
            if (ends[0] == 0)
                call3(SYS_pipe2, (long)ends, 0, 0);
            call3(SYS_read, ends[0], (long)&byte, 1);
            break;
        case 3: {
            struct pollfd all[MOST_LINKS];
            for (int i = 0; i < link_count; i++)
                all[i] = (struct pollfd){ links[i].inside, POLLPRI, 0 };
            call3(SYS_poll, (long)all, link_count, -1);
            break;
        }
        case 4: {
            struct epoll_event event;
            long set = call3(SYS_epoll_create1, 0, 0, 0);
            call4(SYS_epoll_wait, set, (long)&event, 1, -1);
            call3(SYS_close, set, 0, 0);
            break;
        }
        case 5:
            call3(SYS_nanosleep, (long)&late, 0, 0);
            break;
        case 6:
            call3(SYS_rt_sigsuspend, (long)&mask, sizeof mask, 0);
            break;
        default:
            // A few are enough to have the rest wait for their turn.
            if (__atomic_add_fetch(&computing, 1, __ATOMIC_RELAXED) > 3)
                stay();
            for (;;)
                never_woken = 0;
        }
}

static unsigned next_way;

static void run_thread(void) { wait_somehow(__atomic_add_fetch(&next_way, 1, __ATOMIC_RELAXED)); }

static void start_threads(void (*run)(void), int amount)
{
    char *stacks = mmap(NULL, (size_t)amount * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED)
        return;
    for (int i = 0; i < amount; i++)
        if (spawn(run, stacks + (long)i * PAGE, (int *)(stacks + (long)i * PAGE)) < 0)
            return;
}

static void threads(int amount)
{
    next_way = any(8);
    start_threads(run_thread, amount);
}

static void wait_at_one(void) { wait_somehow(0); }

static void same_threads(int amount) { start_threads(wait_at_one, amount); }

static void children(int amount)
{
    for (int i = 0; i < amount; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return;
        if (pid == 0)
            wait_somehow(any(8));
    }
}

// Each has what its parent had, and something of its own.
static void rich_children(int amount)
{
    for (int i = 0; i < amount; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return;
        if (pid == 0) {
            memory_kinds[any(6)].make(1 + any(100));
            descriptor_kinds[any(5)].make(1 + any(20));
            if (any(3) == 0)
                threads(1 + any(5));
            wait_somehow(any(7));
        }
    }
}

// Each is the child of the one before.
static void lineage(int amount)
{
    if (fork() != 0)
        return;
    while (--amount > 0 && fork() == 0)
        if (once_in(2))
            setsid();
    wait_somehow(any(7));
}

static void zombies(int amount)
{
    for (int i = 0; i < amount; i++)
        switch (fork()) {
        case -1:
            return;
        case 0:
            _exit(0);
        }
}

static void orphans(int amount)
{
    for (int i = 0; i < amount; i++)
        switch (fork()) {
        case -1:
            return;
        case 0:
            if (fork() == 0)
                wait_somehow(any(7));
            _exit(0);
        }
}

static void stopped(int amount)
{
    for (int i = 0; i < amount; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return;
        if (pid == 0)
            stay();
        kill(pid, SIGSTOP);
    }
}

static void vfork_parents(int amount)
{
    for (int i = 0; i < amount; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return;
        if (pid == 0) {
            if (vfork() == 0)
                stay();
            stay();
        }
    }
}

static void signals(int amount)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    union sigval value = { .sival_int = 1 };
    for (int i = 0; i < amount; i++)
        if (sigqueue(getpid(), SIGRTMIN + any(20), value) < 0)
            return;
}

// From linux/futex.h.
struct robust_head {
    struct robust *first;
    long offset;
    struct robust *pending;
};

enum { WAITERS = 0x80000000u };

// The calling thread holds mutexes that the kernel gives up for it.
static void hold(struct robust *list, int count, struct robust_head *head)
{
    uint32_t owner = (uint32_t)call3(SYS_gettid, 0, 0, 0);
    for (int i = 0; i < count; i++) {
        list[i].word = owner | (i % 3 ? 0 : WAITERS);
        list[i].next = i + 1 < count ? &list[i + 1] : (struct robust *)head;
    }
    *head = (struct robust_head){ count > 0 ? list : (struct robust *)head, offsetof(struct robust, word), NULL };
    call3(SYS_set_robust_list, (long)head, sizeof *head, 0);
}

enum { ROBUST_EACH = 2048 };
static struct robust *robust_lists;
static int robust_next, robust_each;

static void run_robust(void)
{
    int index = __atomic_fetch_add(&robust_next, 1, __ATOMIC_RELAXED);
    struct robust_head head;
    hold(robust_lists + (long)index * ROBUST_EACH, robust_each, &head);
    stay();
}

static void robust_threads(int amount)
{
    size_t size = (size_t)amount * ROBUST_EACH * sizeof *robust_lists;
    robust_lists = mmap(NULL, size, PROT_READ | PROT_WRITE, (any(2) ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (robust_lists == MAP_FAILED)
        return;
    robust_next = 0;
    robust_each = once_in(3) ? ROBUST_EACH : 1 + any(100);
    start_threads(run_robust, amount);
    sched_yield();
}

// In memory that processes outside share: they find that the owners have died.
static void robust_shared(int amount)
{
    static struct robust_head head;
    int none = 0;
    if (__atomic_compare_exchange_n(&board->robust_locked, &none, -1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        hold(board->robust, amount, &head);
        board->robust_locked = amount;
    }
}

const struct kind task_kinds[] = {
    { "threads", 600, threads },
    { "same-threads", 600, same_threads },
    { "children", 150, children },
    { "rich-children", 40, rich_children },
    { "lineage", 30, lineage },
    { "zombies", 100, zombies },
    { "orphans", 100, orphans },
    { "stopped", 60, stopped },
    { "vfork-parents", 30, vfork_parents },
    { "signals", 2000, signals },
    { "robust-threads", 30, robust_threads },
    { "robust-shared", 2000, robust_shared },
    { 0 },
};
