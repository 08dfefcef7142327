// A lease and an open that it rules out do not both succeed, however close together they come.
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
    return 0;
}
