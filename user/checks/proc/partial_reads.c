// Reads of texts into memory that is missing in part: a page that cannot be had ends the read, and one that only was not there yet is brought in.
#include "../check.h"
#include "../inet.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { PAGE = 4096, BEFORE = 100, LISTENERS = 60, ROOM = 64 << 10, READERS = 12, ROUNDS = 50 };

static char *pages(size_t len)
{
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    return at;
}

// Reads to the end, each read behind the last.
static size_t read_all(int fd, char *to, size_t room)
{
    size_t len = 0;
    ssize_t got;
    while ((got = read(fd, to + len, room - len)) > 0)
        len += got;
    REQUIRE(got == 0);
    return len;
}

// The first bytes go to the end of a page with none behind it, the others elsewhere.
static void in_two(const char *name, const char *path)
{
    char *whole = pages(ROOM), *parts = pages(ROOM), *short_room = pages(2 * PAGE);
    REQUIRE(mprotect(short_room + PAGE, PAGE, PROT_NONE) == 0);
    memset(whole, 0, ROOM), memset(parts, 0, ROOM);
    int fd = open(path, O_RDONLY);
    REQUIRE(fd >= 0);
    size_t len = read_all(fd, whole, ROOM);
    REQUIRE(len > BEFORE && lseek(fd, 0, SEEK_SET) == 0);
    check_line("%s: %zd\n", name, read(fd, short_room + PAGE - BEFORE, 2 * BEFORE));
    CHECK("none-behind", read(fd, short_room + PAGE, BEFORE));
    CHECK("offset", lseek(fd, 0, SEEK_CUR));
    memcpy(parts, short_room + PAGE - BEFORE, BEFORE);
    CHECK_TRUE("the-same", BEFORE + read_all(fd, parts + BEFORE, ROOM - BEFORE) == len && memcmp(whole, parts, len) == 0);
    close(fd);
}

// How many of these sockets a list of all names, which is read into memory that was never touched, or was.
static int listed(int fd, const int *ports, int is_touched)
{
    char *text = pages(ROOM);
    int count = 0;
    if (is_touched)
        memset(text, 1, ROOM);
    REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
    size_t len = read_all(fd, text, ROOM - 1);
    text[len] = 0;
    for (int i = 0; i < LISTENERS; i++) {
        char line[32];
        snprintf(line, sizeof line, " 0100007F:%04X 00000000:", ports[i]);
        count += strstr(text, line) != NULL;
    }
    munmap(text, ROOM);
    return count;
}

static struct {
    int fd;
    char text[PAGE];
    ssize_t len;
} shared;

// Reads the text again and again into memory that is not there yet; how often it was another one.
static void *read_beside_others(void *unused)
{
    long wrong = 0;
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        char *room = pages(2 * PAGE), *at = room + PAGE - BEFORE;
        wrong += pread(shared.fd, at, PAGE, 0) != shared.len || memcmp(at, shared.text, shared.len) != 0;
        munmap(room, 2 * PAGE);
    }
    return (void *)wrong;
}

// Many threads read an open file at once.
static void at_once(void)
{
    pthread_t readers[READERS];
    long wrong = 0;
    shared.fd = open("/proc/self/limits", O_RDONLY);
    REQUIRE(shared.fd >= 0 && (shared.len = pread(shared.fd, shared.text, PAGE, 0)) > BEFORE);
    for (int i = 0; i < READERS; i++)
        REQUIRE(pthread_create(&readers[i], NULL, read_beside_others, NULL) == 0);
    for (int i = 0; i < READERS; i++) {
        void *count;
        REQUIRE(pthread_join(readers[i], &count) == 0);
        wrong += (long)count;
    }
    CHECK("wrong-at-once", wrong);
    close(shared.fd);
}

int main(void)
{
    in_two("limits", "/proc/self/limits");
    in_two("maps", "/proc/self/maps");

    at_once();

    // A text that did not get to its reader is not what the next one gets.
    char name[32] = "";
    int fd = open("/proc/self/comm", O_RDONLY);
    REQUIRE(fd >= 0 && prctl(PR_SET_NAME, "before") == 0);
    CHECK("no-memory", pread(fd, (void *)PAGE, sizeof name, 0));
    REQUIRE(prctl(PR_SET_NAME, "after") == 0);
    CHECK("comm", pread(fd, name, sizeof name - 1, 0));
    CHECK_STR("comm-is", name);
    close(fd);

    int listeners[LISTENERS], ports[LISTENERS];
    for (int i = 0; i < LISTENERS; i++) {
        listeners[i] = listener4(1);
        ports[i] = port_of(listeners[i]);
    }
    fd = open("/proc/net/tcp", O_RDONLY);
    REQUIRE(fd >= 0);
    CHECK("touched", listed(fd, ports, 1));
    CHECK("untouched", listed(fd, ports, 0));
    // The list is made anew.
    close(listeners[0]);
    CHECK("one-less", listed(fd, ports, 0));
    return 0;
}
