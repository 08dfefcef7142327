// A pipe begins to carry packets while another thread writes bytes: all arrives.
#include "together.h"

#define ROUNDS 5000

static int ends[2];
static long lost;

static void make_pipe(void)
{
    REQUIRE(pipe2(ends, O_NONBLOCK) == 0);
}

static void write_packet(void)
{
    REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK | O_DIRECT) == 0);
    REQUIRE(write(ends[1], "packet", 6) == 6);
}

static void write_bytes(void)
{
    REQUIRE(write(ends[1], "b", 1) == 1 && write(ends[1], "ytes", 4) == 4);
}

static void read_all(void)
{
    char text[64];
    long got = 0, now;
    while ((now = read(ends[0], text, sizeof text)) > 0)
        got += now;
    lost += got != 11 || now != -1;
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    together(ROUNDS, make_pipe, write_packet, write_bytes, read_all);
    CHECK("lost", lost);
    return 0;
}
