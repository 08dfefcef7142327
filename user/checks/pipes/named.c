// FIFOs: opening waits for the other side, or not.
#include "../check.h"

int main(void)
{
    char buffer[16] = { 0 };
    CHECK("mkfifo", mkfifo("fifo", 0600));
    CHECK("again", mkfifo("fifo", 0600));
    CHECK("write-nonblock-alone", open("fifo", O_WRONLY | O_NONBLOCK));
    int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    CHECK_TRUE("read-nonblock-alone", reader >= 0);
    CHECK("read-without-writer", read(reader, buffer, 1));
    int writer = open("fifo", O_WRONLY | O_NONBLOCK);
    CHECK_TRUE("write-nonblock-with-reader", writer >= 0);
    CHECK("read-empty", read(reader, buffer, 1));
    CHECK("write", write(writer, "hello", 5));
    CHECK("read", read(reader, buffer, sizeof buffer));
    close(writer);
    CHECK("end", read(reader, buffer, 1));
    writer = open("fifo", O_WRONLY);
    CHECK("again-after-end", write(writer, "x", 1));
    CHECK("read-again", read(reader, buffer, 1));
    close(reader);
    signal(SIGPIPE, SIG_IGN);
    CHECK("no-reader", write(writer, "x", 1));
    close(writer);
    // Blocking opens meet.
    pid_t child = check_fork();
    if (child == 0) {
        int fd = open("fifo", O_WRONLY);
        REQUIRE(write(fd, "meet", 4) == 4);
        _exit(0);
    }
    int fd = open("fifo", O_RDONLY);
    CHECK("met", read(fd, buffer, sizeof buffer));
    CHECK("end-after", read(fd, buffer, sizeof buffer));
    CHECK_STATUS("child", check_wait(child));
    close(fd);
    int both = open("fifo", O_RDWR);
    CHECK_TRUE("read-write", both >= 0);
    CHECK("self-write", write(both, "loop", 4));
    CHECK("self-read", read(both, buffer, 4));
    CHECK("truncate-flag", open("fifo", O_RDONLY | O_TRUNC | O_NONBLOCK) >= 0);
    CHECK("seek", lseek(both, 0, SEEK_CUR));
    CHECK("unlinked-works", unlink("fifo") == 0 ? write(both, "yes", 3) : -1);
    // An open that waits can be interrupted.
    REQUIRE(mkfifo("alone", 0600) == 0);
    struct sigaction nothing = { .sa_handler = (void (*)(int))strsignal };
    REQUIRE(sigaction(SIGUSR1, &nothing, NULL) == 0);
    pid_t parent = getpid();
    child = check_fork();
    if (child == 0)
        for (;;) {
            check_sleep_ms(20);
            kill(parent, SIGUSR1);
        }
    CHECK("interrupted-open", open("alone", O_RDONLY));
    kill(child, SIGKILL);
    check_wait(child);
    return 0;
}
