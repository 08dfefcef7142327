// Changes that are so large that they take several steps, also while other threads and processes use the memory.
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

#define PAGE 4096ul
#define PAGES 12288ul
#define SIZE (PAGES * PAGE)

static char *anonymous(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void fill(char *p)
{
    for (size_t i = 0; i < PAGES; i++)
        *(size_t *)(p + i * PAGE) = i + 1;
}

// How many pages have not what `fill` wrote.
static long wrong(const char *p, size_t first, size_t last)
{
    long count = 0;
    for (size_t i = first; i < last; i++)
        count += *(const size_t *)(p + i * PAGE) != i + 1;
    return count;
}

static void alone(void)
{
    char *p = anonymous(SIZE);
    REQUIRE(p != MAP_FAILED);
    fill(p);
    CHECK_CHILD("child-sees", _exit(wrong(p, 0, PAGES) != 0));
    CHECK_CHILD("child-writes", { fill(p + PAGE / 2); _exit(wrong(p + PAGE / 2, 0, PAGES - 1) != 0); });
    CHECK("parent-keeps", wrong(p, 0, PAGES));
    CHECK("read-only", mprotect(p, SIZE, PROT_READ));
    CHECK_CHILD("write", p[SIZE - 1] = 1);
    CHECK("writable", mprotect(p, SIZE, PROT_READ | PROT_WRITE));
    p[SIZE - 1] = 1;
    char *elsewhere = (char *)(1ul << 44);
    char *moved = mremap(p, SIZE, SIZE + 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere);
    CHECK_TRUE("moved", moved == elsewhere);
    CHECK("moved-content", wrong(moved, 0, PAGES));
    CHECK_CHILD("not-at-origin", _exit(p[0]));
    CHECK("shrink", mremap(moved, SIZE + 8 * PAGE, PAGE, 0) == moved ? 0 : -1);
    CHECK_CHILD("cut-off", _exit(moved[PAGE]));
    CHECK("first-page", wrong(moved, 0, 1));
    char *q = anonymous(SIZE);
    fill(q);
    char *over = mmap(q, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK_TRUE("replaced", over == q && q[0] == 0 && q[SIZE - PAGE] == 0);
    fill(q);
    CHECK("drop", madvise(q, SIZE - PAGE, MADV_DONTNEED));
    CHECK("dropped", q[0] + q[SIZE - 2 * PAGE]);
    CHECK("not-dropped", wrong(q, PAGES - 1, PAGES));
    CHECK("populate", madvise(q, SIZE, 23));
    CHECK("unmap", munmap(q, SIZE));
    CHECK_CHILD("unmapped", _exit(q[SIZE / 2]));
}

// A range of the size of half of all user addresses, with something at both ends.
static void sparse(void)
{
    size_t size = 1ul << 45;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(p != MAP_FAILED);
    p[0] = p[size - 1] = p[size / 2] = 1;
    CHECK_CHILD("sparse-child", _exit(p[0] + p[size - 1] + p[size / 2] + p[size / 4]));
    CHECK("sparse-protect", mprotect(p, size, PROT_READ));
    CHECK("sparse-drop", madvise(p, size, MADV_DONTNEED));
    CHECK("sparse-zeros", p[0] + p[size - 1]);
    CHECK("sparse-unmap", munmap(p, size));
}

static char *shared_pages;
static volatile int stop;

static void *changing(void *unused)
{
    // Maps and unmaps all the time: what fork copies must be as it was at one moment.
    while (!stop) {
        char *p = anonymous(64 * PAGE);
        memset(p, 1, 64 * PAGE);
        char *moved = mremap(p, 64 * PAGE, 128 * PAGE, MREMAP_MAYMOVE);
        mprotect(moved, 32 * PAGE, PROT_READ);
        munmap(moved, 128 * PAGE);
    }
    return unused;
}

static void *writing(void *unused)
{
    for (size_t i = 0; !stop; i = (i + 7) % PAGES)
        __atomic_fetch_add((size_t *)(shared_pages + i * PAGE) + 1, 1, __ATOMIC_RELAXED);
    return unused;
}

static void together(void)
{
    pthread_t threads[3];
    shared_pages = anonymous(SIZE);
    fill(shared_pages);
    pthread_create(&threads[0], NULL, changing, NULL);
    pthread_create(&threads[1], NULL, changing, NULL);
    pthread_create(&threads[2], NULL, writing, NULL);
    long bad = 0;
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(wrong(shared_pages, 0, PAGES) != 0);
        int status = -1;
        waitpid(pid, &status, 0);
        bad += status != 0;
    }
    CHECK("children", bad);
    for (int i = 0; i < 5; i++) {
        bad += mprotect(shared_pages, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0;
        char *p = anonymous(SIZE);
        fill(p);
        bad += wrong(p, 0, PAGES) + (munmap(p, SIZE) != 0);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK("changes", bad);
    CHECK("content", wrong(shared_pages, 0, PAGES));
}

// As many areas as there can be nearly, taken away at once and by the end of a program.
static void areas(void)
{
    size_t count = 10000;
    char *p = mmap(NULL, 2 * count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < count; i++)
        if (mprotect(p + 2 * i * PAGE, PAGE, PROT_READ | PROT_WRITE) != 0)
            break;
    p[0] = p[2 * (count - 1) * PAGE] = 3;
    CHECK_CHILD("areas-child", _exit(p[0] + p[2 * (count - 1) * PAGE] + p[2 * PAGE]));
    CHECK("areas-lock", mlock(p, PAGE));
    CHECK("areas-flag", madvise(p, 2 * count * PAGE, MADV_DONTFORK));
    CHECK_CHILD("areas-not-in-child", _exit(p[0]));
    CHECK("areas-flag-back", madvise(p, 2 * count * PAGE, MADV_DOFORK));
    CHECK("areas-protect", mprotect(p, 2 * count * PAGE, PROT_READ));
    CHECK("areas-content", p[0] + p[2 * (count - 1) * PAGE]);
    CHECK("areas-unmap", munmap(p, 2 * count * PAGE));
    CHECK_CHILD("areas-gone", _exit(p[0]));
}

int main(void)
{
    alone();
    sparse();
    together();
    areas();
    return 0;
}
