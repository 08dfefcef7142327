// A directory whose names exchange their files on one core while another core asks for its size and times: neither waits for the other for ever.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define TURNS 20000

static atomic_int over;

static void *exchange(void *unused)
{
    for (int i = 0; i < TURNS; i++)
        REQUIRE(syscall(SYS_renameat2, AT_FDCWD, "directory/left", AT_FDCWD, "directory/right", RENAME_EXCHANGE) == 0);
    over = 1;
    return unused;
}

int main(void)
{
    pthread_t thread;
    struct stat about;
    long errors = 0;
    REQUIRE(mkdir("directory", 0755) == 0 && mkdir("directory/left", 0755) == 0 && mkdir("directory/right", 0755) == 0);
    REQUIRE(pthread_create(&thread, NULL, exchange, NULL) == 0);
    while (!over) {
        errors += stat("directory", &about) != 0;
        errors += stat("directory/left", &about) != 0;
    }
    pthread_join(thread, NULL);
    CHECK("errors", errors);
    CHECK("links", stat("directory", &about) == 0 ? (long)about.st_nlink : -1);
    return 0;
}
