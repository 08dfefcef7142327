// splice, tee and vmsplice between pipes and files.
#include "../check.h"
#include <sys/uio.h>

int main(void)
{
    int a[2], b[2];
    char buffer[32] = { 0 };
    check_write_file("in", "spliced through a pipe");
    int in = open("in", O_RDONLY), out = open("out", O_RDWR | O_CREAT, 0644);
    REQUIRE(in >= 0 && out >= 0 && pipe2(a, O_NONBLOCK) == 0 && pipe2(b, O_NONBLOCK) == 0);
    CHECK("file-to-pipe", splice(in, NULL, a[1], NULL, 7, 0));
    CHECK("file-position", lseek(in, 0, SEEK_CUR));
    CHECK("tee", tee(a[0], b[1], 100, 0));
    CHECK("tee-copy", read(b[0], buffer, sizeof buffer));
    CHECK_STR("tee-text", buffer);
    CHECK("pipe-to-file", splice(a[0], NULL, out, NULL, 100, 0));
    CHECK_STR("file-text", check_read_file("out"));
    CHECK("empty", splice(a[0], NULL, out, NULL, 100, SPLICE_F_NONBLOCK));
    off_t from = 8;
    CHECK("with-offset", splice(in, &from, a[1], NULL, 7, 0));
    CHECK("offset", from);
    CHECK("pipe-to-pipe", splice(a[0], NULL, b[1], NULL, 7, 0));
    memset(buffer, 0, sizeof buffer);
    CHECK("moved", read(b[0], buffer, sizeof buffer));
    CHECK_STR("moved-text", buffer);
    CHECK("no-pipe", splice(in, NULL, out, NULL, 5, 0));
    CHECK("offset-on-pipe", splice(a[0], &from, out, NULL, 5, 0));
    CHECK("tee-needs-pipes", tee(in, a[1], 5, 0));
    struct iovec vector = { "vm", 2 };
    CHECK("vmsplice", vmsplice(a[1], &vector, 1, 0));
    memset(buffer, 0, sizeof buffer);
    CHECK("vmsplice-read", read(a[0], buffer, sizeof buffer));
    CHECK_STR("vmsplice-text", buffer);
    CHECK("zero", splice(in, NULL, a[1], NULL, 0, 0));
    // Where the pipe may wait, only the first bytes are waited for.
    int c[2], d[2];
    REQUIRE(pipe(c) == 0 && pipe(d) == 0 && write(c[1], "there", 5) == 5);
    CHECK("what-is-there", splice(c[0], NULL, out, NULL, 100, 0));
    REQUIRE(write(c[1], "there", 5) == 5);
    CHECK("what-is-there-to-pipe", splice(c[0], NULL, d[1], NULL, 100, 0));
    REQUIRE(write(c[1], "there", 5) == 5);
    close(c[1]);
    CHECK("the-rest", splice(c[0], NULL, d[1], NULL, 100, 0));
    CHECK("the-end", splice(c[0], NULL, d[1], NULL, 100, 0));
    CHECK("both-arrived", read(d[0], buffer, sizeof buffer));
    REQUIRE(ftruncate(in, 1 << 20) == -1 && truncate("in", 1 << 20) == 0);
    from = 0;
    CHECK("no-more-than-fits", splice(in, &from, d[1], NULL, 1 << 20, 0));
    CHECK("offset-behind-it", from);
    CHECK("full", splice(in, &from, d[1], NULL, 1 << 20, SPLICE_F_NONBLOCK));
    CHECK("offset-kept", from);
    return 0;
}
