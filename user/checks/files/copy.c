// sendfile and copy_file_range: positions and errors.
#include "../check.h"
#include <sys/sendfile.h>

int main(void)
{
    check_write_file("in", "The quick brown fox");
    int in = open("in", O_RDONLY);
    int out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0644);
    REQUIRE(in >= 0 && out >= 0);
    CHECK("sendfile", sendfile(out, in, NULL, 9));
    CHECK("input-moved", lseek(in, 0, SEEK_CUR));
    CHECK("output-moved", lseek(out, 0, SEEK_CUR));
    off_t offset = 10;
    CHECK("sendfile-offset", sendfile(out, in, &offset, 100));
    CHECK("offset-updated", offset);
    CHECK("input-kept", lseek(in, 0, SEEK_CUR));
    CHECK_STR("text", check_read_file("out"));
    CHECK("at-end", sendfile(out, in, &offset, 100));
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    offset = 4;
    CHECK("to-pipe", sendfile(pipe_fds[1], in, &offset, 5));
    char buffer[32] = { 0 };
    CHECK("from-pipe", read(pipe_fds[0], buffer, sizeof buffer - 1));
    CHECK_STR("pipe-text", buffer);
    CHECK("write-only-input", sendfile(out, pipe_fds[1], NULL, 5));
    CHECK("read-only-output", sendfile(in, in, NULL, 5));
    CHECK("bad-output", sendfile(200, in, NULL, 5));
    offset = -1;
    CHECK("negative-offset", sendfile(out, in, &offset, 5));

    REQUIRE(ftruncate(out, 0) == 0 && lseek(out, 0, SEEK_SET) == 0 && lseek(in, 0, SEEK_SET) == 0);
    CHECK("copy-range", copy_file_range(in, NULL, out, NULL, 5, 0));
    off_t from = 16, to = 8;
    CHECK("copy-range-offsets", copy_file_range(in, &from, out, &to, 50, 0));
    CHECK("from-updated", from);
    CHECK("to-updated", to);
    CHECK("copy-size", lseek(out, 0, SEEK_END));
    from = 0;
    CHECK("copy-flags", copy_file_range(in, &from, out, NULL, 5, 1));
    from = 0, to = 2;
    int same = open("in", O_RDWR);
    CHECK("copy-overlap", copy_file_range(same, &from, same, &to, 5, 0));
    int directory = open(".", O_RDONLY);
    CHECK("copy-directory", copy_file_range(directory, NULL, out, NULL, 5, 0));
    CHECK("copy-to-append", fcntl(out, F_SETFL, O_APPEND) == 0 ? copy_file_range(in, NULL, out, NULL, 5, 0) : -2);
    return 0;
}
