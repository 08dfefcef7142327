// Random bytes without a system call: the vDSO's getrandom, with a state of each thread's in memory that a child finds wiped; and that kind of memory.
#include "../check.h"
#include "../vdso.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#define PAGE 4096

typedef ssize_t getrandom_fn(void *, size_t, unsigned, void *, size_t);

static getrandom_fn *get;
static struct { uint32_t size, prot, flags, reserved[13]; } parameters;

static void *new_state(void)
{
    void *state = mmap(NULL, PAGE, parameters.prot, parameters.flags, -1, 0);
    return state == MAP_FAILED ? NULL : state;
}

static ssize_t fill(void *to, size_t len, void *state)
{
    return get(to, len, 0, state, parameters.size);
}

static int is_zero(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return 0;
    return 1;
}

#define LEN 16

static int order(const void *one, const void *other)
{
    return memcmp(one, other, LEN);
}

// How often a value comes again among so many.
static int repeated(unsigned char (*values)[LEN], size_t count)
{
    int same = 0;
    qsort(values, count, LEN, order);
    for (size_t i = 1; i < count; i++)
        same += memcmp(values[i - 1], values[i], LEN) == 0;
    return same;
}

#define THREADS 4
#define EACH 2000
static unsigned char made[THREADS * EACH + 8][LEN];

static void *make(void *to)
{
    unsigned char (*values)[LEN] = to;
    void *state = new_state();
    for (int i = 0; i < EACH; i++)
        if (fill(values[i], LEN, state) != LEN)
            return "failed";
    munmap(state, PAGE);
    return NULL;
}

// What lines of a file that begin so say in total.
static long field(const char *path, const char *name)
{
    char line[256];
    long sum = 0, value;
    FILE *file = fopen(path, "r");
    REQUIRE(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%ld", &value) == 1)
            sum += value;
    fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    get = (getrandom_fn *)vdso_find("__vdso_getrandom");
    CHECK_TRUE("found", get != NULL);
    if (!get)
        return 1;
    memset(&parameters, 7, sizeof parameters);
    CHECK("parameters", get(NULL, 0, 0, &parameters, ~0ul));
    if (argc > 1) {
        unsigned char bytes[LEN] = { 0 };
        CHECK("after-exec", fill(bytes, LEN, new_state()));
        CHECK_TRUE("random", !is_zero(bytes, LEN));
        return 0;
    }
    CHECK_TRUE("short-name", vdso_find("getrandom") == (void *)get);
    CHECK_TRUE("size", parameters.size > 32 && parameters.size <= PAGE);
    CHECK("prot", parameters.prot);
    CHECK("flags", parameters.flags);
    CHECK_TRUE("reserved", is_zero((unsigned char *)parameters.reserved, sizeof parameters.reserved));

    unsigned char *state = new_state();
    REQUIRE(state);
    CHECK("nothing", fill(NULL, 0, state));
    static unsigned char bytes[100000 / LEN + 1][LEN];
    static const size_t lengths[] = { 1, 15, 16, 31, 32, 33, 63, 64, 65, 95, 96, 97, 128, 160, 191, 192, 193, 4096, 100000 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t len = lengths[i];
        memset(bytes, 0, sizeof bytes);
        CHECK("filled", fill(bytes, len, state));
        CHECK_TRUE("not-further", is_zero((unsigned char *)bytes + len, sizeof bytes - len));
        CHECK_TRUE("last-part", len < 16 || !is_zero((unsigned char *)bytes + len - 8, 8));
        CHECK("repeated", repeated(bytes, len / LEN));
    }
    for (int i = 0; i < EACH; i++)
        fill(made[i], LEN, state);
    CHECK("repeated-calls", repeated(made, EACH));

    // Flags, sizes and places.
    unsigned char byte[LEN];
    for (unsigned flags = 0; flags < 16; flags++)
        CHECK("with-flags", get(byte, LEN, flags, state, parameters.size));
    CHECK("unknown-flags", get(byte, LEN, 1u << 30, state, parameters.size));
    CHECK("wrong-size", get(byte, LEN, 0, state, parameters.size - 1));
    CHECK("no-size", get(byte, LEN, 0, state, 0));
    CHECK("no-buffer-wrong-size", get(NULL, LEN, 0, state, 1));
    CHECK("two-pages", get(byte, LEN, 0, state + PAGE - parameters.size + 8, parameters.size));
    CHECK("nothing-in-two-pages", get(byte, 0, 0, state + PAGE - 8, parameters.size));
    CHECK("nothing-with-unknown-flags", get(byte, 0, 1u << 30, state, parameters.size));
    CHECK("last-in-page", get(byte, LEN, 0, state + PAGE - parameters.size, parameters.size));

    // A child goes on with no key of its parent's.
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    fill(made[0], 1, state);
    int before = !is_zero(state, parameters.size);
    for (int i = 1; i <= 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            int wiped = is_zero(state, parameters.size);
            fill(made[i], LEN, state);
            REQUIRE(write(ends[1], made[i], LEN) == LEN);
            // A child's child, too.
            pid_t grandchild = fork();
            if (grandchild == 0) {
                int wiped_again = is_zero(state, parameters.size);
                fill(made[i], LEN, state);
                REQUIRE(write(ends[1], made[i], LEN) == LEN);
                _exit(wiped_again);
            }
            int status;
            REQUIRE(waitpid(grandchild, &status, 0) == grandchild);
            _exit(wiped + 2 * WEXITSTATUS(status));
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK("wiped", WEXITSTATUS(status));
    }
    CHECK_TRUE("parent-keeps", before && !is_zero(state, parameters.size));
    for (int i = 0; i < 8; i++)
        REQUIRE(read(ends[0], made[i], LEN) == LEN);
    fill(made[8], LEN, state);
    CHECK("repeated-in-children", repeated(made, 9));

    // On all cores.
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, make, made + i * EACH) == 0);
    // Another generation may begin at any time.
    int urandom = open("/dev/urandom", O_WRONLY);
    for (int i = 0; i < 100; i++)
        REQUIRE(write(urandom, "entropy", 7) == 7);
    close(urandom);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        REQUIRE(pthread_join(threads[i], &failed) == 0);
        CHECK_TRUE("thread", failed == NULL);
    }
    for (int i = 0; i < 8; i++)
        REQUIRE(getrandom(made[THREADS * EACH + i], LEN, 0) == LEN);
    CHECK("repeated-in-threads", repeated(made, THREADS * EACH + 8));
    CHECK_CHILD("exec", execl("/proc/self/exe", argv[0], "again", NULL));

    // Memory that may be dropped.
    int file = open("file", O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, PAGE) == 0);
    CHECK_MAP("of-a-file", mmap(NULL, PAGE, PROT_READ, MAP_DROPPABLE, file, 0));
    CHECK_MAP("locked", mmap(NULL, PAGE, PROT_READ, MAP_DROPPABLE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
    CHECK_MAP("grows", mmap(NULL, PAGE, PROT_READ, MAP_DROPPABLE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0));
    CHECK_MAP("other-type", mmap(NULL, PAGE, PROT_READ, MAP_DROPPABLE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    CHECK("keep", madvise(memory, PAGE, MADV_KEEPONFORK));
    CHECK("wipe", madvise(memory, PAGE, MADV_WIPEONFORK));
    CHECK("dump", madvise(memory, PAGE, MADV_DODUMP));
    CHECK("no-dump", madvise(memory, PAGE, MADV_DONTDUMP));
    CHECK("no-fork", madvise(memory + 3 * PAGE, PAGE, MADV_DONTFORK));
    CHECK("free", madvise(memory, PAGE, MADV_FREE));
    CHECK("drop", madvise(memory, PAGE, MADV_DONTNEED));
    long locked = field("/proc/self/status", "VmLck:");
    CHECK("lock", mlock(memory, PAGE));
    CHECK("counts", field("/proc/self/status", "VmLck:") - locked);
    CHECK("unlock", munlock(memory, PAGE));
    memset(memory, 1, 3 * PAGE);
    CHECK("protect", mprotect(memory + PAGE, PAGE, PROT_READ));
    CHECK_CHILD("in-child", CHECK_TRUE("zeros", is_zero((unsigned char *)memory, 3 * PAGE)); CHECK_TRUE("writes", (memory[0] = 2) == 2));
    CHECK_CHILD("store", memory[PAGE] = 2);
    CHECK_CHILD("not-in-child", memory[3 * PAGE] = 2);
    char *moved = mremap(memory, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    CHECK_TRUE("moved", moved != MAP_FAILED);
    moved[0] = moved[PAGE] = 3;
    CHECK_CHILD("moved-in-child", CHECK_TRUE("zeros", is_zero((unsigned char *)moved, 2 * PAGE)));
    CHECK("unmap", munmap(moved, 2 * PAGE));
    return 0;
}
