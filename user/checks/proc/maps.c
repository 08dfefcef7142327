// /proc/self/maps of a program with many mappings: read in small and large parts, from anywhere.
#include "../check.h"
#include <sys/mman.h>

#define PAGE 4096
#define MAPPINGS 600
#define ROOM (1 << 20)

// Reads the rest in parts of at most `size`; its length. No part is longer than `longest` afterwards.
static size_t read_all(int file, char *to, size_t size, size_t *longest)
{
    size_t len = 0;
    for (;;) {
        ssize_t got = read(file, to + len, len + size > ROOM ? ROOM - len : size);
        if (got <= 0)
            return len;
        if ((size_t)got > *longest)
            *longest = got;
        len += got;
    }
}

int main(void)
{
    char *mappings = mmap(NULL, MAPPINGS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 1; i < MAPPINGS; i += 2)
        mprotect(mappings + i * PAGE, PAGE, PROT_READ);
    static char whole[ROOM], parts[ROOM];

    int file = open("/proc/self/maps", O_RDONLY);
    size_t longest = 0;
    size_t len = read_all(file, whole, ROOM, &longest);
    CHECK("a large read gives a page at most", longest <= PAGE);
    CHECK("it ends with a line", len > 0 && whole[len - 1] == '\n');
    CHECK("and stays at its end", read(file, parts, PAGE));

    int lines = 0, in_order = 1;
    unsigned long before = 0;
    for (char *line = whole; line < whole + len; line = strchr(line, '\n') + 1) {
        char *rest;
        unsigned long start = strtoul(line, &rest, 16), end = strtoul(rest + 1, NULL, 16);
        in_order &= start >= before && end > start;
        before = end;
        lines += start >= (unsigned long)mappings && end <= (unsigned long)(mappings + MAPPINGS * PAGE);
    }
    CHECK("lines of the mappings", lines);
    CHECK("in order, each once", in_order);

    lseek(file, 0, SEEK_SET);
    size_t small = read_all(file, parts, 100, &longest);
    CHECK("the same in small parts", small == len && memcmp(whole, parts, len) == 0);
    size_t offset = len / 2;
    ssize_t got = pread(file, parts, 1000, offset);
    CHECK("the same from its middle", got > 0 && memcmp(whole + offset, parts, got) == 0);
    got = pread(file, parts, 1000, 10);
    CHECK("and again from near its start", got > 0 && memcmp(whole + 10, parts, got) == 0);
    CHECK("behind its end", pread(file, parts, 1000, len + 5000));
    CHECK("seek from its end", lseek(file, 0, SEEK_END));
    CHECK("seek to its middle", lseek(file, 1000, SEEK_SET));
    got = read(file, parts, 50);
    CHECK("read there", got == 50 && memcmp(whole + 1000, parts, 50) == 0);
    CHECK("and where it is then", lseek(file, 0, SEEK_CUR));

    // What is unmapped behind the part that was read is not seen any more.
    lseek(file, 0, SEEK_SET);
    read(file, parts, 1000);
    munmap(mappings, MAPPINGS * PAGE);
    size_t rest = read_all(file, parts, ROOM, &longest);
    CHECK("shorter once they are gone", rest < len / 2);
    return 0;
}
