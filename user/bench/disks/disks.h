// Rows of `disks`: what programs cost whose files are on a disk.
#pragma once
#define _GNU_SOURCE
#include "../bench.h"
#include "../mark.h"

// Where the disk's file system is mounted.
#define DISK "/mnt"

struct row {
    const char *name;
    // What has to be there first; NULL for nothing. It does not count.
    void (*prepare)(const struct row *row);
    // Whether the disk is mounted anew afterwards, so that nothing of it is in memory.
    int cold;
    // What counts.
    void (*run)(const struct row *row);
    // What is to go again; NULL for nothing. It does not count.
    void (*clean)(const struct row *row);
    // Of rows that read or write a file: what they do.
    struct {
        enum { READ, WRITE } way;
        enum { IN_ORDER, RANDOM } order;
        long size, count;
        int flags;
        // Whether each write is followed by fsync(2), or only the last.
        int sync_each;
    } access;
};

extern const struct row access_rows[], program_rows[];

// Has the disk keep all that was written.
void sync_disk(void);
