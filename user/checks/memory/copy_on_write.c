// fork: private memory is copied when written, shared memory is not.
#include "../check.h"
#include <sys/mman.h>

#define PAGES 64
#define PAGE 4096

int main(void)
{
    char *private = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(private != MAP_FAILED && shared != MAP_FAILED);
    for (int i = 0; i < PAGES; i++)
        private[i * PAGE] = shared[i * PAGE] = (char)i;
    CHECK_CHILD("child-sees", int right = 0; for (int i = 0; i < PAGES; i++) right += private[i * PAGE] == i; _exit(right));
    CHECK_CHILD("child-changes", for (int i = 0; i < PAGES; i++) private[i * PAGE] = shared[i * PAGE] = 100);
    int old = 0, new = 0;
    for (int i = 0; i < PAGES; i++) {
        old += private[i * PAGE] == i;
        new += shared[i * PAGE] == 100;
    }
    CHECK("private-unchanged", old);
    CHECK("shared-changed", new);
    // A page first touched by the child in shared memory appears for the parent.
    char *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_CHILD("child-first", fresh[7] = 7);
    CHECK("parent-sees", fresh[7]);
    // The parent's later writes do not reach a waiting child.
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        char c;
        REQUIRE(read(fds[0], &c, 1) == 1);
        _exit(private[0] == 0 && private[PAGE] == 1 ? shared[0] : 99);
    }
    private[0] = private[PAGE] = 55;
    shared[0] = 66;
    REQUIRE(write(fds[1], "g", 1) == 1);
    CHECK_STATUS("snapshot", check_wait(child));
    CHECK("parent-keeps", private[0]);
    // The kernel's own writes copy as well.
    int zero = open("/dev/zero", O_RDONLY);
    private[2 * PAGE] = 42;
    CHECK_CHILD("kernel-writes-in-child", REQUIRE(read(zero, private + 2 * PAGE, 10) == 10); _exit(private[2 * PAGE]));
    CHECK("not-in-parent", private[2 * PAGE]);
    // Three generations.
    CHECK_CHILD("generations", private[3 * PAGE] = 10; pid_t grandchild = check_fork();
                if (grandchild == 0) { private[3 * PAGE] += 5; _exit(private[3 * PAGE]); }
                int status = check_wait(grandchild); _exit(private[3 * PAGE] * 10 + WEXITSTATUS(status)));
    CHECK("generation-zero", private[3 * PAGE]);
    return 0;
}
