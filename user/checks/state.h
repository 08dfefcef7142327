// What a process does, as /proc tells it.
#pragma once
#include "check.h"

// The letter that stands for it.
static inline char check_state(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *text = check_read_file(path);
    const char *end = text ? strrchr(text, ')') : NULL;
    return end ? end[2] : '?';
}

// Until a child waits, or has ended.
static inline pid_t check_waits(pid_t pid)
{
    while (!strchr("SZ", check_state(pid)))
        check_sleep_ms(1);
    return pid;
}
