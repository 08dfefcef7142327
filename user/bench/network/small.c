// What `bench` measures, too: one byte there and back, and connections that carry nothing.
#include "network.h"

enum { ROUND_TRIPS = 1000, CONNECTIONS = 500 };

static long tcp_there_and_back(void)
{
    tcp_round_trip(ROUND_TRIPS);
    return ROUND_TRIPS;
}

static long udp_there_and_back(void)
{
    udp_round_trip(ROUND_TRIPS);
    return ROUND_TRIPS;
}

static long connect_and_close(void)
{
    tcp_connect(CONNECTIONS);
    return CONNECTIONS;
}

const struct row small_rows[] = {
    { "tcp-round-trip", tcp_there_and_back },
    { "udp-round-trip", udp_there_and_back },
    { "tcp-connect", connect_and_close },
    { 0 },
};
