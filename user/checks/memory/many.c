// As many mappings as there can be: the limit is an error, and everything still works there.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096
#define MOST 65530

int main(void)
{
    long count = 0;
    char *last = NULL;
    for (;;) {
        // Neighbours differ, so that they stay apart.
        int rights = count % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
        char *p = mmap(NULL, PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            break;
        last = p;
        count++;
    }
    CHECK("error", errno == ENOMEM);
    CHECK_TRUE("limit", count > MOST - 100 && count < MOST);
    CHECK_CHILD("fork", _exit(last[0] + 3));
    // What would split an area is refused, what only shrinks the list is not.
    CHECK("unmap", munmap(last, PAGE));
    char *again = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_TRUE("one-more", again == last);
    int fd = open("/proc/self/maps", O_RDONLY);
    long lines = 0;
    static char text[1 << 16];
    for (ssize_t len; (len = read(fd, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < len; i++)
            lines += text[i] == '\n';
    CHECK_TRUE("maps", lines > MOST - 100);
    // Holes all over, and none of them has room.
    for (long i = 1; i < count; i += 50)
        munmap(last + i * PAGE, PAGE);
    CHECK_TRUE("two-pages", mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    CHECK("unmap-all", munmap(last, (size_t)count * PAGE));
    CHECK_TRUE("map", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    return 0;
}
