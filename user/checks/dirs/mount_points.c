// What is mounted on a directory stays there, however many other files are looked up and forgotten meanwhile.
#include "../check.h"
#include <sys/mount.h>

enum { FILES = 3000 };

// Where nobody may mount there is nothing to compare.
static int may;

#define CHECK_IF(name, condition) CHECK_TRUE(name, !may || (condition))

int main(void)
{
    REQUIRE(mkdir("place", 0755) == 0 && mkdir("files", 0755) == 0);
    may = mount("none", "place", "tmpfs", 0, "size=1m") == 0;
    CHECK_IF("made", mkdir("place/inside", 0755) == 0);
    struct stat before = { 0 }, after = { 0 }, status;
    REQUIRE(stat("place", &before) == 0);
    for (int number = 0; number < 2 * FILES; number++) {
        char name[32];
        snprintf(name, sizeof name, "files/%d", number % FILES);
        REQUIRE(number >= FILES || mkdir(name, 0755) == 0);
        REQUIRE(stat(name, &status) == 0);
    }
    CHECK_IF("found", stat("place", &after) == 0 && before.st_dev == after.st_dev && before.st_ino == after.st_ino);
    CHECK_IF("what is in it", access("place/inside", F_OK) == 0);
    CHECK_IF("busy", rmdir("place") == -1 && errno == EBUSY);
    CHECK_IF("unmounted", umount("place") == 0);
    CHECK_IF("gone", access("place/inside", F_OK) == -1 && errno == ENOENT);
    CHECK("removed", rmdir("place"));
    return 0;
}
