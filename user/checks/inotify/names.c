// inotify(7): what is told of names that come, go and move, to who watches a directory and the files in it.
#include "inotify.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    REQUIRE(mkdir("d", 0755) == 0 && mkdir("other", 0755) == 0);
    start_watching();
    watch("d", IN_ALL_EVENTS);
    int fd = open("d/file", O_RDWR | O_CREAT, 0644);
    show("create");
    REQUIRE(close(fd) == 0);
    show("close");
    REQUIRE(mkdir("d/sub", 0755) == 0);
    show("mkdir");
    REQUIRE(symlink("nowhere", "d/link") == 0);
    show("symlink");
    REQUIRE(mkfifo("d/fifo", 0644) == 0);
    show("mkfifo");
    int endpoint = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { AF_UNIX, "d/socket" };
    REQUIRE(bind(endpoint, (void *)&address, sizeof address) == 0);
    show("bind");
    watch("d/file", IN_ALL_EVENTS);
    REQUIRE(link("d/file", "d/hard") == 0);
    show("link");
    REQUIRE(link("d/file", "other/far") == 0);
    show("link elsewhere");
    REQUIRE(unlink("d/hard") == 0);
    show("unlink of one name");
    REQUIRE(unlink("other/far") == 0);
    show("unlink elsewhere");
    REQUIRE(rename("d/file", "d/moved") == 0);
    show("rename inside");
    REQUIRE(rename("d/moved", "other/moved") == 0);
    show("rename out");
    REQUIRE(rename("other/moved", "d/file") == 0);
    show("rename in");
    check_write_file("d/victim", "x");
    show("another file");
    watch("d/victim", IN_ALL_EVENTS);
    REQUIRE(rename("d/file", "d/victim") == 0);
    show("rename over another");
    check_write_file("d/one", "1");
    check_write_file("other/two", "2");
    show("two files");
    watch("other", IN_ALL_EVENTS);
    REQUIRE(syscall(SYS_renameat2, AT_FDCWD, "d/one", AT_FDCWD, "other/two", 2 /* RENAME_EXCHANGE */) == 0);
    show("exchange");
    REQUIRE(rename("other/two", "other/two") == 0);
    show("rename to itself");
    watch("d/sub", IN_ALL_EVENTS);
    REQUIRE(rename("d/sub", "other/sub") == 0);
    show("rename of a directory");
    check_write_file("other/sub/deep", "x");
    show("in the moved directory");
    REQUIRE(unlink("other/sub/deep") == 0);
    show("unlink in it");
    REQUIRE(rmdir("other/sub") == 0);
    show("rmdir");
    REQUIRE(mkdir("other/empty", 0755) == 0 && mkdir("other/over", 0755) == 0);
    watch("other/over", IN_ALL_EVENTS);
    show("two directories");
    REQUIRE(rename("other/empty", "other/over") == 0);
    show("a directory over another");
    CHECK("mkdir of what is there", mkdir("other/over", 0755));
    CHECK("unlink of nothing", unlink("other/nothing"));
    show("what failed");
    REQUIRE(unlink("d/victim") == 0);
    show("the last name");
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = 0;
    char path[300];
    for (int length = 15; length <= 255; length = length < 17 ? length + 1 : length == 17 ? 31 : length == 31 ? 32 : length == 32 ? 254 : length + 1) {
        snprintf(path, sizeof path, "d/%.*s", length, longest);
        REQUIRE(mkdir(path, 0755) == 0 && rmdir(path) == 0);
    }
    show("long names");
    return 0;
}
