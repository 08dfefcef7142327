// inotify(7): what is told of a file's content and attributes, whichever way they are read and changed.
#include "inotify.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/xattr.h>

int main(void)
{
    REQUIRE(mkdir("d", 0755) == 0);
    check_write_file("d/file", "some text that can be read");
    check_write_file("d/source", "text");
    start_watching();
    watch("d", IN_ALL_EVENTS);
    watch("d/file", IN_ALL_EVENTS);
    int fd = open("d/file", O_RDWR);
    show("open");
    char bytes[8];
    REQUIRE(read(fd, bytes, 4) == 4);
    show("read");
    REQUIRE(pread(fd, bytes, 4, 1000) == 0);
    show("read at the end");
    struct iovec pieces[2] = { { bytes, 2 }, { bytes + 4, 2 } };
    REQUIRE(readv(fd, pieces, 2) == 4);
    show("readv");
    REQUIRE(write(fd, bytes, 4) == 4);
    show("write");
    REQUIRE(writev(fd, pieces, 2) == 4);
    show("writev");
    REQUIRE(pwrite(fd, bytes, 1, 3) == 1 && pwrite(fd, bytes, 1, 4) == 1);
    show("pwrite twice");
    REQUIRE(write(fd, bytes, 0) == 0);
    show("write of nothing");
    REQUIRE(pread(fd, bytes, 1, 0) == 1 && pwrite(fd, bytes, 1, 0) == 1 && pread(fd, bytes, 1, 0) == 1);
    show("read, write, read");
    REQUIRE(ftruncate(fd, 10) == 0);
    show("ftruncate");
    REQUIRE(truncate("d/file", 20) == 0);
    show("truncate");
    REQUIRE(posix_fallocate(fd, 0, 100) == 0);
    show("fallocate");
    int source = open("d/source", O_RDONLY);
    show("open of another");
    off_t from = 0;
    REQUIRE(sendfile(fd, source, &from, 4) == 4);
    // Linux 6.1 tells these two twice.
    show_kinds("sendfile");
    off64_t start = 0, to = 0;
    REQUIRE(copy_file_range(source, &start, fd, &to, 4, 0) == 4);
    show_kinds("copy_file_range");
    REQUIRE(fsync(fd) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    show("fsync, lseek");
    REQUIRE(fchmod(fd, 0600) == 0);
    show("fchmod");
    REQUIRE(chmod("d/file", 0640) == 0);
    show("chmod");
    REQUIRE(chown("d/file", 1, 1) == 0);
    show("chown");
    REQUIRE(chown("d/file", -1, -1) == 0);
    show("chown to nobody");
    struct timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
    REQUIRE(futimens(fd, times) == 0);
    show("both times");
    times[0].tv_nsec = UTIME_OMIT;
    REQUIRE(futimens(fd, times) == 0);
    show("time of change");
    times[0].tv_nsec = UTIME_NOW, times[1].tv_nsec = UTIME_OMIT;
    REQUIRE(futimens(fd, times) == 0);
    show("time of access");
    times[0].tv_nsec = UTIME_OMIT;
    REQUIRE(futimens(fd, times) == 0);
    show("no time");
    if (setxattr("d/file", "trusted.some", "value", 5, 0) == 0) {
        show("setxattr");
        REQUIRE(removexattr("d/file", "trusted.some") == 0);
        show("removexattr");
    }
    REQUIRE(getxattr("d/file", "trusted.some", bytes, 8) == -1);
    struct stat stat_of;
    REQUIRE(stat("d/file", &stat_of) == 0 && access("d/file", R_OK) == 0);
    show("stat, access, getxattr");
    volatile char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(memory != MAP_FAILED);
    memory[0] = memory[1];
    REQUIRE(msync((void *)memory, 4096, MS_SYNC) == 0);
    show("mapping");
    int copy = dup(fd);
    REQUIRE(close(fd) == 0);
    show("close of one descriptor");
    REQUIRE(close(copy) == 0);
    show("close of the last, while it is mapped");
    REQUIRE(munmap((void *)memory, 4096) == 0);
    show_when("munmap", IN_CLOSE_WRITE);
    REQUIRE(close(source) == 0);
    show("close of another");
    fd = open("d/file", O_WRONLY | O_TRUNC);
    // Linux 6.1 tells the other first.
    show_kinds("open to truncate");
    REQUIRE(close(fd) == 0);
    show("close");
    fd = open("d/file", O_WRONLY | O_APPEND);
    REQUIRE(write(fd, "more", 4) == 4);
    CHECK_CHILD("a child", write(fd, "more", 4));
    REQUIRE(close(fd) == 0);
    show("append, fork, close");
    fd = open("d/file", O_RDONLY);
    CHECK_CHILD("a child that closes last", { close(fd); });
    pid_t pid = check_fork();
    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
    REQUIRE(close(fd) == 0);
    show("closed here, open in a child");
    REQUIRE(kill(pid, SIGKILL) == 0 && check_wait(pid) > 0);
    show_when("the child was killed", IN_CLOSE_NOWRITE);
    CHECK("open of a directory for writing", open("d", O_RDWR));
    CHECK("open of nothing", open("d/nothing", O_RDWR));
    show("what failed");
    DIR *list = opendir("d");
    show("opendir");
    REQUIRE(list && readdir(list));
    show("readdir");
    closedir(list);
    show("closedir");
    REQUIRE(chmod("d", 0700) == 0);
    show("chmod of the directory");
    // A pipe between files.
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    fd = open("d/file", O_RDWR);
    REQUIRE(fd >= 0);
    show("open once more");
    REQUIRE(write(ends[1], "abc", 3) == 3 && read(ends[0], bytes, 3) == 3);
    show("a pipe");
    REQUIRE(close(fd) == 0);
    show("close once more");
    return 0;
}
