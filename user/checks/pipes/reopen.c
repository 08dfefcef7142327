// A pipe that is opened again through /proc/self/fd: the same pipe, and nobody waits for the other side.
#include "../check.h"

static int again(int fd, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags);
}

int main(void) {
    int ends[2];
    char bytes[8] = "";
    CHECK("pipe", pipe(ends));
    int reader = again(ends[0], O_RDONLY);
    CHECK_TRUE("open-reader", reader >= 0);
    CHECK("write", write(ends[1], "abc", 3));
    CHECK("read-again", read(reader, bytes, 8));
    CHECK_STR("bytes", bytes);
    int writer = again(ends[0], O_WRONLY);
    CHECK_TRUE("open-writer", writer >= 0);
    close(ends[1]);
    CHECK("write-again", write(writer, "de", 2));
    CHECK("read", read(ends[0], bytes, 8));
    close(writer);
    CHECK("end", read(ends[0], bytes, 8));
    int late = again(reader, O_RDONLY);
    CHECK_TRUE("open-without-writer", late >= 0);
    CHECK("end-again", read(late, bytes, 8));
    close(late);
    writer = again(reader, O_WRONLY | O_NONBLOCK);
    CHECK_TRUE("open-writer-late", writer >= 0);
    close(reader);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    CHECK("write-without-reader", write(writer, "f", 1));
    reader = again(writer, O_RDONLY | O_NONBLOCK);
    CHECK_TRUE("open-reader-late", reader >= 0);
    close(writer);
    CHECK("end-late", read(reader, bytes, 8));
    return 0;
}
