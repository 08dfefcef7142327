// getrandom(2) gives all that was asked for, also where that is long, and what there is before a bad address.

#include "../check.h"

#include <sys/mman.h>
#include <sys/random.h>

int main(void) {
    size_t len = 1 << 20;
    char *at = mmap(NULL, len + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("1 MiB: %d\n", getrandom(at, len, 0) == (ssize_t)len);
    int zeros = 0;
    for (size_t page = 0; page < len / 4096; page++) {
        long last;
        memcpy(&last, at + page * 4096 + 4096 - sizeof last, sizeof last);
        zeros += last == 0;
    }
    printf("pages that were not filled: %d\n", zeros);
    munmap(at + len, 4096);
    printf("behind the end: %d\n", getrandom(at + len - 100000, 200000, 0) == 100000);
    printf("nothing: %ld\n", (long)getrandom(at, 0, 0));
    printf("bad address: %d\n", getrandom(at + len, 1, 0) == -1 && errno == EFAULT);
    return 0;
}
