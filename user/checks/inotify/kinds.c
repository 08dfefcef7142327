// inotify(7) on files of all kinds, and of programs that are executed.
#include "inotify.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(int count, char **arguments)
{
    if (count > 1)
        return 0;
    start_watching();
    char bytes[4096];

    REQUIRE(mkdir("d", 0755) == 0 && mkfifo("d/fifo", 0644) == 0);
    watch("d", IN_ALL_EVENTS);
    watch("d/fifo", IN_ALL_EVENTS);
    int fifo = open("d/fifo", O_RDWR);
    show("a FIFO is opened");
    REQUIRE(write(fifo, "abc", 3) == 3);
    show("written");
    REQUIRE(read(fifo, bytes, 10) == 3);
    show("read");
    REQUIRE(close(fifo) == 0);
    show("closed");

    int listener = socket(AF_UNIX, SOCK_STREAM, 0), peer = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { AF_UNIX, "d/socket" };
    REQUIRE(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    watch("d/socket", IN_ALL_EVENTS);
    REQUIRE(connect(peer, (void *)&address, sizeof address) == 0 && write(peer, "x", 1) == 1);
    REQUIRE(close(peer) == 0 && close(listener) == 0);
    show("a socket's file");
    REQUIRE(unlink("d/socket") == 0);
    show("is unlinked");

    watch("/dev/null", IN_ALL_EVENTS);
    int null = open("/dev/null", O_RDWR);
    REQUIRE(write(null, "x", 1) == 1 && read(null, bytes, 1) == 0 && close(null) == 0);
    show("a device");

    watch("/proc/self/status", IN_ALL_EVENTS);
    int status = open("/proc/self/status", O_RDONLY);
    REQUIRE(read(status, bytes, 100) == 100 && close(status) == 0);
    show("procfs");

    // A program that is executed: this one.
    int source = open(arguments[0], O_RDONLY), target = open("d/program", O_WRONLY | O_CREAT, 0755);
    ssize_t length;
    while ((length = read(source, bytes, sizeof bytes)) > 0)
        REQUIRE(write(target, bytes, length) == length);
    REQUIRE(close(source) == 0 && close(target) == 0);
    int program = watch("d/program", IN_OPEN | IN_CLOSE);
    show("a program is made");
    CHECK_CHILD("it is executed", {
        execl("d/program", "program", "again", NULL);
        _exit(1);
    });
    show_when("it was executed", IN_CLOSE_NOWRITE);
    REQUIRE(inotify_rm_watch(watcher, program) == 0);

    // Only places.
    watch("d/program", IN_ALL_EVENTS);
    show("watched anew");
    int link = open("d", O_RDONLY | O_DIRECTORY);
    CHECK("through /proc/self/fd", ({ snprintf(bytes, sizeof bytes, "/proc/self/fd/%d", link); inotify_add_watch(watcher, bytes, IN_ALL_EVENTS) > 0; }));
    REQUIRE(close(link) == 0);
    return 0;
}
