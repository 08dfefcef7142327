// truncate, ftruncate: growing leaves zeros, shrinking forgets, limits are errors.
#include "../check.h"

int main(void)
{
    struct stat st;
    char buffer[8192];
    check_write_file("f", "abcdefgh");
    CHECK("shrink", truncate("f", 3));
    CHECK_STR("shrunk", check_read_file("f"));
    CHECK("grow", truncate("f", 6000));
    int fd = open("f", O_RDWR);
    REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
    CHECK("grown-size", st.st_size);
    CHECK("read", read(fd, buffer, sizeof buffer));
    int zeros = 0;
    for (int i = 3; i < 6000; i++)
        zeros += buffer[i] == 0;
    CHECK("zeros", zeros);
    CHECK("ftruncate-zero", ftruncate(fd, 0));
    CHECK("position-stays", lseek(fd, 0, SEEK_CUR));
    CHECK("write-beyond", write(fd, "x", 1));
    REQUIRE(fstat(fd, &st) == 0);
    CHECK("size-after", st.st_size);
    CHECK("negative", ftruncate(fd, -1));
    CHECK("truncate-negative", truncate("f", -5));
    CHECK("missing", truncate("missing", 0));
    CHECK("directory", truncate(".", 0));
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    CHECK("pipe", ftruncate(pipe_fds[1], 0));
    // A file cut inside a page and grown again shows zeros, not what was there.
    check_write_file("g", "0123456789");
    REQUIRE(truncate("g", 4) == 0 && truncate("g", 10) == 0);
    int g = open("g", O_RDONLY);
    CHECK("regrown", read(g, buffer, 64));
    CHECK_TRUE("regrown-zero", memcmp(buffer, "0123\0\0\0\0\0\0", 10) == 0);
    // A sparse file of a gigabyte takes (nearly) no blocks.
    int sparse = open("sparse", O_RDWR | O_CREAT, 0644);
    CHECK("sparse", ftruncate(sparse, 1L << 30));
    REQUIRE(fstat(sparse, &st) == 0);
    CHECK("sparse-size", st.st_size);
    CHECK_TRUE("sparse-blocks-few", st.st_blocks < 64);
    return 0;
}
