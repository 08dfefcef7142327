// O_PATH descriptors: names, not contents.
#include "../check.h"

int main(void)
{
    char buffer[64];
    struct stat st;
    check_write_file("f", "text");
    REQUIRE(symlink("f", "link") == 0 && mkdir("d", 0755) == 0);
    check_write_file("d/inner", "inner text");
    int fd = open("f", O_PATH);
    CHECK_TRUE("open", fd >= 0);
    CHECK("read", read(fd, buffer, 4));
    CHECK("write", write(fd, buffer, 4));
    CHECK("fchmod", syscall(SYS_fchmod, fd, 0600));
    CHECK("ftruncate", ftruncate(fd, 0));
    CHECK("lseek", lseek(fd, 0, SEEK_SET));
    CHECK("fstat", fstat(fd, &st));
    CHECK("size", st.st_size);
    CHECK("flags", (fcntl(fd, F_GETFL) & O_PATH) != 0);
    int link = open("link", O_PATH | O_NOFOLLOW);
    CHECK_TRUE("link-itself", link >= 0 && fstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    memset(buffer, 0, sizeof buffer);
    CHECK("readlinkat-empty", readlinkat(link, "", buffer, sizeof buffer));
    CHECK_STR("target", buffer);
    int directory = open("d", O_PATH | O_DIRECTORY);
    int inner = openat(directory, "inner", O_RDONLY);
    memset(buffer, 0, sizeof buffer);
    CHECK("openat-through", read(inner, buffer, sizeof buffer));
    CHECK("stat-empty-path", fstatat(directory, "", &st, AT_EMPTY_PATH) == 0 ? S_ISDIR(st.st_mode) : -1);
    CHECK("stat-empty-path-without-flag", fstatat(directory, "", &st, 0));
    CHECK("fchdir", fchdir(directory));
    CHECK_STR("after-fchdir", check_read_file("inner"));
    snprintf(buffer, sizeof buffer, "/proc/self/fd/%d", fd);
    int reopened = open(buffer, O_RDONLY);
    CHECK("reopen-through-proc", read(reopened, buffer, 64));
    return 0;
}
