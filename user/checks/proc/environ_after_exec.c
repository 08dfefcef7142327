// `/proc/PID/environ` stands for the memory that the process had when it was opened: who could look into that does not see the environment of the next program.
#include "../check.h"

#include <fcntl.h>

int main(int argc, char **argv)
{
    int started[2], gate[2];
    char byte = 0, name[64], text[256];
    if (argc > 1) {
        REQUIRE(write(atoi(argv[1]), &byte, 1) == 1);
        return read(atoi(argv[2]), &byte, 1) == 1 ? 3 : 4;
    }
    REQUIRE(pipe(started) == 0 && pipe(gate) == 0);
    pid_t pid = check_fork();
    if (pid == 0) {
        char first[16], second[16];
        snprintf(first, sizeof first, "%d", started[1]);
        snprintf(second, sizeof second, "%d", gate[0]);
        if (read(gate[0], &byte, 1) != 1)
            _exit(1);
        execle("/proc/self/exe", "next", first, second, NULL, (char *[]){ "SECRET=1", NULL });
        _exit(2);
    }
    snprintf(name, sizeof name, "/proc/%d/environ", pid);
    int before = open(name, O_RDONLY);
    REQUIRE(before >= 0);
    REQUIRE(write(gate[1], &byte, 1) == 1 && read(started[0], &byte, 1) == 1);
    CHECK("of-the-last-program", read(before, text, sizeof text));
    int now = open(name, O_RDONLY);
    ssize_t len = read(now, text, sizeof text);
    CHECK("of-the-next-program", len == 9 && memcmp(text, "SECRET=1", 9) == 0);
    REQUIRE(write(gate[1], &byte, 1) == 1);
    CHECK_STATUS("ends", check_wait(pid));
    return 0;
}
