// Names that are changed on one core while another looks them up: what exists all the time is always found.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define TURNS 20000

static atomic_int over;

static void put(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

// A new file takes the place of one in use, again and again.
static void *replace(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        put("new", i % 2 ? "one" : "two");
        REQUIRE(rename("new", "name") == 0);
    }
    over = 1;
    return unused;
}

// Two names exchange their files.
static void *exchange(void *unused)
{
    for (int i = 0; i < TURNS; i++)
        REQUIRE(syscall(SYS_renameat2, AT_FDCWD, "left", AT_FDCWD, "right", RENAME_EXCHANGE) == 0);
    over = 1;
    return unused;
}

// A file comes and goes.
static void *come_and_go(void *unused)
{
    for (int i = 0; i < TURNS; i++)
        unlink("perhaps");
    over = 1;
    return unused;
}

static pthread_t start(void *(*work)(void *))
{
    pthread_t thread;
    over = 0;
    REQUIRE(pthread_create(&thread, NULL, work, NULL) == 0);
    return thread;
}

int main(void)
{
    put("name", "one");
    pthread_t thread = start(replace);
    long missing = 0, torn = 0, gone = 0;
    while (!over) {
        struct stat status;
        missing += stat("name", &status) != 0;
        int fd = open("name", O_RDONLY);
        if (fd < 0) {
            missing++;
            continue;
        }
        char text[8] = { 0 };
        torn += read(fd, text, sizeof text) != 3 || (strcmp(text, "one") != 0 && strcmp(text, "two") != 0);
        gone += fstat(fd, &status) != 0 || status.st_nlink > 1;
        close(fd);
    }
    pthread_join(thread, NULL);
    CHECK("replaced-missing", missing);
    CHECK("replaced-torn", torn);
    CHECK("replaced-links", gone);

    put("left", "l");
    put("right", "r");
    thread = start(exchange);
    missing = 0;
    while (!over) {
        missing += access("left", F_OK) != 0;
        missing += access("right", F_OK) != 0;
    }
    pthread_join(thread, NULL);
    CHECK("exchanged-missing", missing);

    thread = start(come_and_go);
    long refused = 0;
    while (!over) {
        int fd = open("perhaps", O_CREAT | O_RDWR, 0644);
        refused += fd < 0;
        close(fd);
    }
    pthread_join(thread, NULL);
    CHECK("open-or-create-refused", refused);
    return 0;
}
