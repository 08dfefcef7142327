// /proc/PID/syscall: in which call a thread waits, and who may see that.
#include "../check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int ends[2];
static atomic_int tid;
static char byte;

static void *read_byte(void *unused)
{
    tid = (int)syscall(SYS_gettid);
    REQUIRE(read(ends[0], &byte, 1) == 1);
    return unused;
}

// The file's line, once it does not say that the thread runs.
static const char *line_of(int id)
{
    static char name[64];
    snprintf(name, sizeof name, "/proc/self/task/%d/syscall", id);
    for (;;) {
        const char *text = check_read_file(name);
        if (strcmp(text, "running") != 0)
            return text;
        check_sleep_ms(1);
    }
}

int main(void)
{
    pthread_t thread;
    REQUIRE(pipe(ends) == 0);
    REQUIRE(pthread_create(&thread, NULL, read_byte, NULL) == 0);
    while (tid == 0)
        check_sleep_ms(1);
    long number;
    uint64_t arguments[3];
    // It may wait for something else before it reads.
    for (int look = 0; look < 1000; look++) {
        REQUIRE(sscanf(line_of(tid), "%ld 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64, &number, &arguments[0], &arguments[1], &arguments[2]) >= 1);
        if (number == SYS_read)
            break;
        check_sleep_ms(1);
    }
    CHECK("reads", number == SYS_read);
    CHECK("its descriptor", arguments[0] == (uint64_t)ends[0]);
    CHECK("to where", arguments[1] == (uintptr_t)&byte);
    CHECK("so much", arguments[2]);
    int fields = 0;
    for (const char *at = line_of(tid); at; at = strchr(at + 1, ' '))
        fields++;
    CHECK("fields", fields);
    REQUIRE(write(ends[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0);

    // Who looks at itself is in the call by which it reads.
    REQUIRE(sscanf(check_read_file("/proc/self/syscall"), "%ld", &number) == 1);
    CHECK("of the reader", number == SYS_read);

    struct stat status;
    REQUIRE(stat("/proc/self/syscall", &status) == 0);
    CHECK("mode", (int)(status.st_mode & 07777));
    return 0;
}
