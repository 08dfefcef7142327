// Mappings that change while other threads touch and fork them, forks of processes whose other threads write, and a mapped file.
#include "stress.h"

#include <setjmp.h>

#define WINDOW_PAGES 8

// What the window is at the moment, with the number of the change above it.
enum kind { CHANGING, WRITABLE, READABLE, CLOSED };
static atomic_long window_state;
static atomic_int over;
static volatile uint64_t *window, *elsewhere;
static uint64_t tag;

static _Thread_local sigjmp_buf escape;

static void on_fault(int number)
{
    (void)number;
    siglongjmp(escape, 1);
}

static void become(enum kind kind)
{
    atomic_store(&window_state, (((window_state >> 2) + 1) << 2) | kind);
}

// Changes the window again and again. It says what the window is only once the call that made it so has returned.
static void change_window(void)
{
    size_t size = WINDOW_PAGES * PAGE;
    void *place = (void *)window;
    for (int i = 0; i < 100; i++) {
        become(CHANGING);
        enum kind kind = CLOSED;
        switch (any(6)) {
        case 0:
            MUST(munmap(place, size) == 0);
            break;
        case 1:
            MUST(mmap(place, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
            break;
        case 2:
            MUST(mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
            kind = READABLE;
            break;
        case 3:
            MUST(mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
            *window = tag;
            MUST(mprotect(place, size, PROT_READ) == 0);
            HOLDS(*window == tag, "a protected page holds %#lx", (long)*window);
            kind = READABLE;
            break;
        case 4:
            MUST(mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
            *window = tag;
            MUST(mremap(place, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)elsewhere) == (void *)elsewhere);
            HOLDS(*elsewhere == tag, "a moved page holds %#lx", (long)*elsewhere);
            break;
        default:
            MUST(mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
            MUST(madvise(place, size, MADV_DONTNEED) == 0);
            kind = WRITABLE;
        }
        become(kind);
        if (any(4) == 0)
            nap();
        else
            for (volatile int spin = (int)any(2000); spin > 0; spin--)
                ;
    }
    atomic_store(&over, 1);
}

// Touches the window: a fault or a right value, and the one that is due where nothing changed meanwhile.
static void touch_window(void)
{
    volatile long touches = 0;
    while (!over) {
        volatile uint64_t *word = window + any(WINDOW_PAGES) * (PAGE / sizeof *window);
        int writes = any(2);
        // All that is used after a jump back is volatile.
        volatile long before = window_state;
        volatile int faulted = 1;
        if (sigsetjmp(escape, 0) == 0) {
            if (writes) {
                *word = tag;
            } else {
                uint64_t value = *word;
                HOLDS(value == 0 || value == tag, "a page holds %#lx, which is of others", (long)value);
            }
            faulted = 0;
        }
        if (before == window_state) {
            enum kind kind = before & 3;
            HOLDS(kind != CLOSED || faulted, "what is not mapped was %s", writes ? "written" : "read");
            HOLDS(kind != READABLE || !writes || faulted, "what is read-only was written");
            HOLDS(kind != READABLE || writes || !faulted, "what is readable was not read");
            HOLDS(kind != WRITABLE || !faulted, "what is writable was not %s", writes ? "written" : "read");
        }
        touches++;
    }
    count(touches);
}

// Forks meanwhile: a child has the window as it was before a change or after it, so all of it can be read or nothing.
static void fork_window(void)
{
    while (!over) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            volatile int readable = 0;
            for (volatile int page = 0; page < WINDOW_PAGES; page++) {
                if (sigsetjmp(escape, 0) == 0) {
                    uint64_t value = window[page * (PAGE / sizeof *window)];
                    HOLDS(value == 0 || value == tag, "a child's page holds %#lx, which is of others", (long)value);
                    readable++;
                }
            }
            HOLDS(readable == 0 || readable == WINDOW_PAGES, "a child has %d of %d pages", readable, WINDOW_PAGES);
            _exit(0);
        }
        int status = status_of(pid);
        HOLDS(status == 0, "a child ended with %#x", status);
        nap();
    }
}

static void change_touch_or_fork(int index)
{
    if (index == 0)
        change_window();
    else if (index == 1)
        fork_window();
    else
        touch_window();
}

static void window_round(void)
{
    struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
    sigaction(SIGSEGV, &action, NULL);
    // Nothing else maps anything meanwhile, so the holes stay holes.
    size_t size = WINDOW_PAGES * PAGE;
    char *reserved = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(reserved != MAP_FAILED);
    window = (uint64_t *)reserved;
    elsewhere = (uint64_t *)(reserved + size);
    tag = (uint64_t)getpid() << 32 | 0xeb;
    over = 0;
    // The threads' stacks are mapped before the first hole is there.
    become(CLOSED);
    threads(4, change_touch_or_fork);
    MUST(munmap(reserved, 2 * size) == 0);
}

static volatile uint64_t *forked_words;

// Writes without end; its writes go where it reads, fork or not.
static void write_or_fork(int index)
{
    volatile uint64_t *word = &forked_words[index * (PAGE / sizeof *word)];
    if (index > 0) {
        uint64_t own = *word;
        while (!over) {
            *word = ++own;
            HOLDS(*word == own, "a word is %lu after %lu was written", (long)*word, (long)own);
        }
        return;
    }
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            // What the other threads write from now on is in the parent only.
            uint64_t first[3] = { 0, forked_words[PAGE / sizeof *word], forked_words[2 * PAGE / sizeof *word] };
            for (int look = 0; look < 20; look++) {
                sched_yield();
                for (int other = 1; other < 3; other++)
                    if (forked_words[other * (PAGE / sizeof *word)] != first[other])
                        _exit(1);
            }
            _exit(0);
        }
        int status = status_of(pid);
        HOLDS(status == 0, "a child sees what its parent's threads write (status %#x)", status);
    }
    over = 1;
    count(4);
}

static void forked_round(void)
{
    void *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED);
    memset(memory, 0, 3 * PAGE);
    forked_words = memory;
    over = 0;
    threads(3, write_or_fork);
    MUST(munmap(memory, 3 * PAGE) == 0);
}

#define MAPPED_WORKERS 3
#define MAPPED_TURNS 2000

static int mapped_file;

static void count_in_file(int index)
{
    atomic_long *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mapped_file, 0);
    MUST(words != MAP_FAILED);
    for (int i = 0; i < MAPPED_TURNS; i++) {
        atomic_fetch_add(&words[0], 1);
        atomic_fetch_add(&words[1 + index], 1);
    }
    MUST(munmap(words, PAGE) == 0);
}

static void mapped_file_round(void)
{
    mapped_file = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(mapped_file >= 0 && ftruncate(mapped_file, PAGE) == 0);
    processes(MAPPED_WORKERS, count_in_file);
    long words[1 + MAPPED_WORKERS];
    MUST(pread(mapped_file, words, sizeof words, 0) == sizeof words);
    HOLDS(words[0] == MAPPED_WORKERS * MAPPED_TURNS, "together %ld of %d", words[0], MAPPED_WORKERS * MAPPED_TURNS);
    for (int i = 1; i <= MAPPED_WORKERS; i++)
        HOLDS(words[i] == MAPPED_TURNS, "worker %d: %ld of %d", i, words[i], MAPPED_TURNS);
    close(mapped_file);
    MUST(unlink("mapped") == 0);
    count(MAPPED_WORKERS * MAPPED_TURNS);
}

#define FAR_TABLES 600
#define FAR_APART (2L << 20)
#define FAR_SIZE (FAR_TABLES * FAR_APART)
#define FAR_WORKERS 4
#define FAR_TURNS 5
// After so many changes, of which each takes longer than a fault, everybody has had some turns.
#define FAR_PATIENCE 500

static char *far_places[2], *beside_far;
static atomic_long far_turns[FAR_WORKERS];
static int zeros;

static void fill_far(char *place)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    MUST(mmap(place, FAR_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0) == place);
    for (long table = 0; table < FAR_TABLES; table++)
        place[table * FAR_APART] = 7;
}

// Unmaps, drops and moves pages of which each has a page table of its own.
static void change_far(void)
{
    fill_far(far_places[0]);
    for (int i = 0; i < 10; i++) {
        char *from = far_places[i % 2], *to = far_places[1 - i % 2];
        switch (any(4)) {
        case 0:
            MUST(madvise(from, FAR_SIZE, MADV_DONTNEED) == 0);
            HOLDS(from[any(FAR_TABLES) * FAR_APART] == 0, "a dropped page is not empty");
            fill_far(from);
            break;
        case 1:
            fill_far(from);
            break;
        case 2:
            MUST(mprotect(from, FAR_SIZE, PROT_READ) == 0 && mprotect(from, FAR_SIZE, PROT_READ | PROT_WRITE) == 0);
            break;
        }
        MUST(mremap(from, FAR_SIZE, FAR_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        for (int look = 0; look < 10; look++)
            HOLDS(to[any(FAR_TABLES) * FAR_APART] == 7, "a moved page is lost");
    }
    // From here on they move all the time: after some time everybody has had some turns nevertheless.
    long before[FAR_WORKERS], moves = 0;
    for (int index = 1; index < FAR_WORKERS; index++)
        before[index] = far_turns[index];
    for (int index = 1; index < FAR_WORKERS; index++)
        for (; far_turns[index] < before[index] + FAR_TURNS && moves < FAR_PATIENCE; moves++) {
            char *from = far_places[moves % 2], *to = far_places[1 - moves % 2];
            MUST(mremap(from, FAR_SIZE, FAR_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        }
    HOLDS(moves < FAR_PATIENCE, "%ld moves left others %ld, %ld and %ld turns", moves, far_turns[1] - before[1],
          far_turns[2] - before[2], far_turns[3] - before[3]);
    over = 1;
}

// Reads them meanwhile, if they are there.
static void read_far(void)
{
    while (!over) {
        if (sigsetjmp(escape, 0) == 0) {
            char value = *(volatile char *)(far_places[any(2)] + any(FAR_TABLES) * FAR_APART);
            HOLDS(value == 0 || value == 7, "a far page holds %d", value);
        }
        far_turns[1]++;
    }
    count(far_turns[1]);
}

// Has to do with other pages of the same address space meanwhile.
static void fault_beside_far(int index)
{
    for (; !over; far_turns[index]++) {
        if (index % 2) {
            MUST(read(zeros, (void *)8, 1) == -1 && errno == EFAULT);
        } else {
            // Not where the far pages are now and then.
            int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
            MUST(mmap(beside_far, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == beside_far);
            *beside_far = 1;
            MUST(mprotect(beside_far, PAGE, PROT_NONE) == 0);
        }
    }
    count(far_turns[index]);
}

static void change_read_or_fault(int index)
{
    if (index == 0)
        change_far();
    else if (index == 1)
        read_far();
    else
        fault_beside_far(index);
}

static void far_round(void)
{
    struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
    sigaction(SIGSEGV, &action, NULL);
    size_t size = 2 * FAR_SIZE + PAGE;
    char *reserved = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(reserved != MAP_FAILED);
    far_places[0] = reserved;
    far_places[1] = reserved + FAR_SIZE;
    beside_far = reserved + 2 * FAR_SIZE;
    zeros = open("/dev/zero", O_RDONLY);
    MUST(zeros >= 0);
    over = 0;
    memset(far_turns, 0, sizeof far_turns);
    threads(FAR_WORKERS, change_read_or_fault);
    close(zeros);
    MUST(munmap(reserved, size) == 0);
}

const struct family memory_families[] = {
    { "mappings", window_round },
    { "forks-beside-threads", forked_round },
    { "mapped-files", mapped_file_round },
    { "far-pages", far_round },
    { NULL, NULL },
};
