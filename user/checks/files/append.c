// O_APPEND: each write goes to the end, whatever the position is, also between processes.
#include "../check.h"

int main(void)
{
    int a = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    int b = open("log", O_WRONLY | O_APPEND);
    REQUIRE(a >= 0 && b >= 0);
    CHECK("first", write(a, "aa", 2));
    CHECK("second", write(b, "bbb", 3));
    CHECK("third", write(a, "c", 1));
    CHECK("position", lseek(a, 0, SEEK_CUR));
    CHECK("seek-back", lseek(a, 0, SEEK_SET));
    CHECK("after-seek", write(a, "d", 1));
    CHECK_STR("text", check_read_file("log"));
    CHECK("clear-flag", fcntl(a, F_SETFL, 0));
    CHECK("seek", lseek(a, 0, SEEK_SET));
    CHECK("overwrite", write(a, "X", 1));
    CHECK_STR("text-overwritten", check_read_file("log"));

    // Four processes append 50 lines each; none is lost or torn.
    check_write_file("shared", "");
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = check_fork();
        if (pids[i] == 0) {
            int fd = open("shared", O_WRONLY | O_APPEND);
            char line[9];
            memset(line, 'a' + i, 8);
            line[8] = '\n';
            for (int j = 0; j < 50; j++)
                REQUIRE(write(fd, line, 9) == 9);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++)
        check_wait(pids[i]);
    FILE *file = fopen("shared", "r");
    char line[64];
    int whole = 0, counts[4] = { 0 };
    while (fgets(line, sizeof line, file)) {
        int owner = line[0] - 'a';
        if (strlen(line) == 9 && strspn(line, (char[]){ line[0], 0 }) == 8 && owner >= 0 && owner < 4) {
            whole++;
            counts[owner]++;
        }
    }
    CHECK("lines-whole", whole);
    CHECK_TRUE("lines-of-each", counts[0] == 50 && counts[1] == 50 && counts[2] == 50 && counts[3] == 50);
    return 0;
}
