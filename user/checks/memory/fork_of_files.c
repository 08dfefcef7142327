// fork: what a private mapping of a file shows in the child, when pages were written before it became read-only.
#include "../check.h"
#include <sys/mman.h>

#define PAGES 8
#define PAGE 4096

int main(void)
{
    char page[PAGE];
    int file = open("file", O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    for (int i = 0; i < PAGES; i++) {
        memset(page, 'a' + i, PAGE);
        REQUIRE(write(file, page, PAGE) == PAGE);
    }
    char *text = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    char *data = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    REQUIRE(text != MAP_FAILED && data != MAP_FAILED);
    // Some pages are touched before the fork, some are not.
    CHECK("text", text[0] + text[3 * PAGE]);
    data[2 * PAGE] = 'X';
    CHECK("protect", mprotect(data, PAGES * PAGE, PROT_READ));
    CHECK_CHILD("read-only-in-child", int right = 0; for (int i = 0; i < PAGES; i++) right += text[i * PAGE] == 'a' + i;
                _exit(right));
    CHECK_CHILD("written-then-protected", _exit(data[2 * PAGE] == 'X' && data[2 * PAGE + 1] == 'c' && data[PAGE] == 'b'));
    // A part that becomes writable again in a child, and its own child.
    CHECK_CHILD("generations", REQUIRE(mprotect(text, 2 * PAGE, PROT_READ | PROT_WRITE) == 0); text[PAGE] = 'Y';
                REQUIRE(mprotect(text, 2 * PAGE, PROT_READ) == 0); pid_t grandchild = check_fork();
                if (grandchild == 0) _exit(text[PAGE] == 'Y' && text[0] == 'a' && text[2 * PAGE] == 'c');
                _exit(WEXITSTATUS(check_wait(grandchild))));
    CHECK("parent-keeps", text[PAGE]);
    // The file's later content shows in pages that nobody copied.
    REQUIRE(pwrite(file, "Z", 1, 5 * PAGE) == 1);
    CHECK_CHILD("later-content", _exit(text[5 * PAGE]));
    return 0;
}
