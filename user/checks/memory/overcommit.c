// What may be promised of memory: more than all there is at once is refused under the heuristic policy, unless nothing is reserved; and what was promised
// is counted.
#include "../check.h"
#include <sys/mman.h>

static long long of_meminfo(const char *name)
{
    const char *at = strstr(check_read_file("/proc/meminfo"), name);
    long long kibibytes = -1;
    REQUIRE(at && sscanf(at + strlen(name), ": %lld", &kibibytes) == 1);
    return kibibytes * 1024;
}

enum { PIECE = 64 << 20 };

// Whether a mapping of these kinds counts as promised.
static int is_counted(int prot, int flags)
{
    long long before = of_meminfo("Committed_AS");
    char *piece = mmap(NULL, PIECE, prot, flags | MAP_ANONYMOUS, -1, 0);
    REQUIRE(piece != MAP_FAILED);
    long long after = of_meminfo("Committed_AS");
    REQUIRE(munmap(piece, PIECE) == 0);
    long long end = of_meminfo("Committed_AS");
    return after - before >= PIECE / 2 && after - end >= PIECE / 2;
}

static int is_counted_when_writable(void)
{
    long long before = of_meminfo("Committed_AS");
    char *piece = mmap(NULL, PIECE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(piece != MAP_FAILED);
    long long read_only = of_meminfo("Committed_AS");
    REQUIRE(mprotect(piece, PIECE, PROT_READ | PROT_WRITE) == 0);
    long long after = of_meminfo("Committed_AS");
    REQUIRE(munmap(piece, PIECE) == 0);
    return read_only - before < PIECE / 2 && after - read_only >= PIECE / 2;
}

int main(void)
{
    int policy = atoi(check_read_file("/proc/sys/vm/overcommit_memory"));
    CHECK_TRUE("policy", policy >= 0 && policy <= 2);
    CHECK_TRUE("ratio", atoi(check_read_file("/proc/sys/vm/overcommit_ratio")) >= 0);
    size_t all = (size_t)(of_meminfo("MemTotal") + of_meminfo("SwapTotal")) + (1ul << 30);
    void *much = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_TRUE("more-than-all", policy == 1 ? much != MAP_FAILED : much == MAP_FAILED && errno == ENOMEM);
    void *free_of_it = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK_TRUE("unreserved", policy == 2 || free_of_it != MAP_FAILED);
    void *read_only = mmap(NULL, all, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_TRUE("read-only", read_only != MAP_FAILED);
    CHECK_TRUE("read-only-made-writable", policy == 1 || (mprotect(read_only, all, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM));
    CHECK_SOON("private-counts", is_counted(PROT_READ | PROT_WRITE, MAP_PRIVATE));
    CHECK_SOON("shared-counts", is_counted(PROT_READ | PROT_WRITE, MAP_SHARED));
    CHECK_SOON("counts-once-writable", is_counted_when_writable());
    CHECK_TRUE("limit-shown", of_meminfo("CommitLimit") > 0);
    return 0;
}
