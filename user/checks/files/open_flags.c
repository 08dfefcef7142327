// open(2): what each flag does to an existing, a missing and a special file.
#include "../check.h"

int main(void)
{
    struct stat st;
    CHECK("missing", open("missing", O_RDONLY));
    CHECK("missing-directory", open("no/such", O_CREAT | O_WRONLY, 0644));
    CHECK("empty-path", open("", O_RDONLY));
    int fd = open("f", O_CREAT | O_EXCL | O_WRONLY, 0666);
    CHECK_TRUE("create-exclusive", fd >= 0);
    CHECK("write", write(fd, "hello", 5));
    CHECK("read-from-write-only", read(fd, &st, 1));
    close(fd);
    CHECK("create-exclusive-again", open("f", O_CREAT | O_EXCL | O_WRONLY, 0666));
    fd = open("f", O_RDONLY);
    CHECK("write-to-read-only", write(fd, "x", 1));
    CHECK("truncate-read-only", ftruncate(fd, 0));
    close(fd);
    REQUIRE(stat("f", &st) == 0);
    CHECK("size", st.st_size);
    CHECK("mode-after-umask", st.st_mode & 07777);
    fd = open("f", O_WRONLY | O_TRUNC);
    REQUIRE(fstat(fd, &st) == 0);
    CHECK("size-after-truncate", st.st_size);
    close(fd);
    CHECK("directory-flag-on-file", open("f", O_RDONLY | O_DIRECTORY));
    CHECK("file-as-directory", open("f/x", O_RDONLY));
    CHECK("trailing-slash-on-file", open("f/", O_RDONLY));
    CHECK("create-with-trailing-slash", open("new/", O_CREAT | O_WRONLY, 0644));
    REQUIRE(mkdir("d", 0755) == 0);
    CHECK("write-directory", open("d", O_WRONLY));
    CHECK("create-on-directory", open("d", O_CREAT | O_RDONLY, 0644));
    fd = open("d", O_RDONLY | O_DIRECTORY);
    CHECK_TRUE("open-directory", fd >= 0);
    CHECK("read-directory", read(fd, &st, 1));
    close(fd);
    REQUIRE(symlink("f", "link") == 0);
    CHECK("nofollow-link", open("link", O_RDONLY | O_NOFOLLOW));
    CHECK("exclusive-on-link", open("link", O_CREAT | O_EXCL | O_WRONLY, 0644));
    REQUIRE(symlink("made-through-link", "dangling") == 0);
    fd = open("dangling", O_CREAT | O_WRONLY, 0600);
    CHECK_TRUE("create-through-dangling-link", fd >= 0 && access("made-through-link", F_OK) == 0);
    close(fd);
    fd = open("f", O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    CHECK("status-flags", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_CREAT | O_TRUNC));
    CHECK("descriptor-flags", fcntl(fd, F_GETFD));
    close(fd);
    CHECK("bad-path-pointer", open(BAD_POINTER, O_RDONLY));
    // The lowest free number is used.
    int a = open("f", O_RDONLY), b = open("f", O_RDONLY);
    close(a);
    CHECK_TRUE("lowest-descriptor", open("f", O_RDONLY) == a && b > a);
    CHECK("creat-on-existing", creat("f", 0600) == b + 1);
    return 0;
}
