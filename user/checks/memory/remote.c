// Another process's memory: more than one step copies, and what is copied before something cannot be.
#include "../check.h"
#include <sys/mman.h>
#include <sys/uio.h>

#define PAGE 4096
#define SIZE (16 << 20)

int main(void)
{
    int ready[2], go[2];
    REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
    unsigned char *p = mmap((void *)(1ul << 44), SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(p != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < SIZE / PAGE; i++)
            p[i * PAGE] = (unsigned char)(i * 7);
        char byte = 1;
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(99);
        long changed = 0;
        for (int i = 0; i < SIZE / PAGE; i++)
            changed += p[i * PAGE] != 9;
        _exit(changed != 0);
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    // Its own pages are not there yet: each is brought in on the way.
    unsigned char *here = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec local = { here, SIZE }, remote = { p, SIZE };
    CHECK("read", process_vm_readv(child, &local, 1, &remote, 1, 0));
    long wrong = 0;
    for (int i = 0; i < SIZE / PAGE; i++)
        wrong += here[i * PAGE] != (unsigned char)(i * 7);
    CHECK("wrong", wrong);
    memset(here, 9, SIZE);
    CHECK("write", process_vm_writev(child, &local, 1, &remote, 1, 0));
    // The remote side ends within the range; then the local side does.
    struct iovec parts[2] = { { p, PAGE }, { (char *)p + SIZE - PAGE, 2 * PAGE } };
    local.iov_len = 3 * PAGE;
    CHECK("remote-ends", process_vm_readv(child, &local, 1, parts, 2, 0));
    CHECK("remote-missing", process_vm_readv(child, &local, 1, &(struct iovec){ (char *)p + SIZE, PAGE }, 1, 0));
    munmap(here + PAGE, PAGE);
    CHECK("local-missing", process_vm_readv(child, &(struct iovec){ here + PAGE, PAGE }, 1, &remote, 1, 0));
    CHECK("nothing", process_vm_readv(child, &local, 0, &remote, 1, 0));
    CHECK("flags", process_vm_readv(child, &local, 1, &remote, 1, 1));
    REQUIRE(write(go[1], &byte, 1) == 1);
    int status;
    waitpid(child, &status, 0);
    CHECK_STATUS("child", status);
    return 0;
}
