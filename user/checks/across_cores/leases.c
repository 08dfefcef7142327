// A lease and an open or truncation that it rules out do not both succeed, however close together they come.
#include "together.h"

#define ROUNDS 20000

static int file, opened, leased, kind, flags, both;

static void open_it(void)
{
    opened = open("file", flags | O_NONBLOCK);
}

static void lease_it(void)
{
    leased = fcntl(file, F_SETLEASE, kind);
}

// The file has a byte before.
static void fill(void)
{
    REQUIRE(truncate("file", 1) == 0);
}

static void truncate_it(void)
{
    opened = open("file", O_RDONLY | O_TRUNC | O_NONBLOCK);
}

static void end_opened(void)
{
    if (opened >= 0)
        close(opened);
}

static int truncated;

static void shorten(void)
{
    truncated = truncate("file", 0);
}

// Looks at the file while it has its lease, and gives it up.
static void lease_and_look(void)
{
    struct stat first, second;
    leased = fcntl(file, F_SETLEASE, kind);
    if (leased != 0)
        return;
    REQUIRE(fstat(file, &first) == 0);
    for (int i = 0; i < 3; i++)
        sched_yield();
    REQUIRE(fstat(file, &second) == 0);
    both += first.st_size != second.st_size;
    REQUIRE(fcntl(file, F_SETLEASE, F_UNLCK) == 0);
}

static void end_truncation(void)
{
    both += truncated != 0;
}

static void nothing(void)
{
}

static void end_both(void)
{
    both += opened >= 0 && leased == 0;
    if (opened >= 0)
        close(opened);
    if (leased == 0)
        REQUIRE(fcntl(file, F_SETLEASE, F_UNLCK) == 0);
}

int main(void)
{
    check_write_file("file", "text");
    // Who has a lease gets this one when somebody wants to open the file.
    signal(SIGIO, SIG_IGN);
    file = open("file", O_RDONLY);
    REQUIRE(file >= 0);
    kind = F_RDLCK;
    flags = O_WRONLY;
    together(ROUNDS, nothing, open_it, lease_it, end_both);
    CHECK("writers-beside-a-lease-to-read", both);

    both = 0;
    kind = F_WRLCK;
    flags = O_RDONLY;
    together(ROUNDS, nothing, open_it, lease_it, end_both);
    CHECK("readers-beside-a-lease-to-write", both);

    // Linux lets who only reads truncate beside a lease to read.
    both = 0;
    together(ROUNDS, fill, truncate_it, lease_and_look, end_opened);
    CHECK("opened-and-truncated-beside-a-lease-to-write", both);

    both = 0;
    kind = F_RDLCK;
    together(4 * ROUNDS, fill, shorten, lease_and_look, end_truncation);
    CHECK("truncated-beside-a-lease", both);
    return 0;
}
