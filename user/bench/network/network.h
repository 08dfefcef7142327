// Rows of `network`: what sockets cost that talk to each other over the loopback device.
#pragma once
#define _GNU_SOURCE
#include "../sockets.h"

struct row {
    const char *name;
    // Gives how many operations stand between its two marks; where a row has no marks, what was measured.
    long (*run)(void);
};

extern const struct row small_rows[], stream_rows[], datagram_rows[], connection_rows[];

// Rows of servers on a disk.
extern const struct row server_rows[];

// Mounts the disk with the servers, if the machine has one.
void mount_servers(void);

// Where a file system in memory is mounted.
#define MEMORY "/tmp"
