// memfd_create: an anonymous file and its seals.
#include "../check.h"
#include <sys/mman.h>

int main(void)
{
    int fd = memfd_create("scratch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_TRUE("create", fd >= 0);
    CHECK("cloexec", fcntl(fd, F_GETFD));
    CHECK("write", write(fd, "content", 7));
    struct stat st;
    CHECK("size", fstat(fd, &st) == 0 ? st.st_size : -1);
    CHECK("regular", S_ISREG(st.st_mode));
    char *view = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK_TRUE("map", view != MAP_FAILED && memcmp(view, "content", 7) == 0);
    view[0] = 'K';
    char c = 0;
    CHECK_TRUE("mapping-is-file", pread(fd, &c, 1, 0) == 1 && c == 'K');
    munmap(view, 4096);
    CHECK("no-seals", fcntl(fd, F_GET_SEALS));
    CHECK("seal-shrink", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    CHECK("shrink", ftruncate(fd, 1));
    CHECK("grow", ftruncate(fd, 100));
    CHECK("seal-write", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    CHECK("sealed-write", write(fd, "x", 1));
    CHECK("sealed-sealing", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    CHECK("seals", fcntl(fd, F_GET_SEALS));
    int plain = memfd_create("plain", 0);
    CHECK("seals-not-allowed", fcntl(plain, F_ADD_SEALS, F_SEAL_GROW));
    CHECK("bad-flags", memfd_create("x", 0x8000));
    return 0;
}
