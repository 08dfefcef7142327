// What the checks of inotify(7) share: reading all events that are there and showing them, with names for what they tell.
#pragma once
#include "../check.h"
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

#ifndef IN_MASK_CREATE
#define IN_MASK_CREATE 0x10000000
#endif

static int watcher;
// The watches have names here, so that numbers need not be the same.
static const char *watch_names[64];

static inline void start_watching(void)
{
    watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    REQUIRE(watcher >= 0);
}

static inline int watch(const char *path, unsigned mask)
{
    int wd = inotify_add_watch(watcher, path, mask);
    REQUIRE(wd > 0 && wd < 64);
    watch_names[wd] = path;
    return wd;
}

static inline const char *event_names(unsigned mask)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        { IN_ACCESS, "ACCESS" }, { IN_MODIFY, "MODIFY" }, { IN_ATTRIB, "ATTRIB" }, { IN_CLOSE_WRITE, "CLOSE_WRITE" },
        { IN_CLOSE_NOWRITE, "CLOSE_NOWRITE" }, { IN_OPEN, "OPEN" }, { IN_MOVED_FROM, "MOVED_FROM" }, { IN_MOVED_TO, "MOVED_TO" },
        { IN_CREATE, "CREATE" }, { IN_DELETE, "DELETE" }, { IN_DELETE_SELF, "DELETE_SELF" }, { IN_MOVE_SELF, "MOVE_SELF" },
        { IN_UNMOUNT, "UNMOUNT" }, { IN_Q_OVERFLOW, "Q_OVERFLOW" }, { IN_IGNORED, "IGNORED" }, { IN_ISDIR, "ISDIR" },
    };
    static char text[200];
    text[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (mask & names[i].bit) {
            if (text[0])
                strcat(text, "|");
            strcat(text, names[i].name);
            mask &= ~names[i].bit;
        }
    if (mask)
        snprintf(text + strlen(text), sizeof text - strlen(text), "|%#x", mask);
    return text;
}

static inline void show_event(const struct inotify_event *event)
{
    static unsigned first_cookie;
    const char *where = event->wd > 0 && event->wd < 64 && watch_names[event->wd] ? watch_names[event->wd] : "?";
    char cookie[32] = "";
    if (event->cookie) {
        // What belongs together has the same, and others have not.
        if (event->mask & IN_MOVED_FROM)
            first_cookie = event->cookie;
        snprintf(cookie, sizeof cookie, event->cookie == first_cookie ? ", cookie" : ", other cookie");
    }
    char name[300] = "";
    if (event->len)
        snprintf(name, sizeof name, " %s (%u)", event->name, event->len);
    check_line("    %s: %s%s%s\n", event->wd == -1 ? "-1" : where, event_names(event->mask), name, cookie);
}

// Shows all events that are there.
static inline void show(const char *what)
{
    check_line("%s\n", what);
    char buffer[8192] __attribute__((aligned(8)));
    ssize_t length;
    while ((length = read(watcher, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (void *)(buffer + at);
            show_event(event);
            at += sizeof *event + event->len;
        }
    if (length < 0 && errno != EAGAIN)
        check_line("    read: %s\n", check_errno_name(errno));
}

// Shows what has happened to each, in whatever order and however often.
static inline void show_kinds(const char *what)
{
    check_line("%s\n", what);
    unsigned kinds[64] = { 0 };
    char buffer[8192] __attribute__((aligned(8)));
    ssize_t length;
    while ((length = read(watcher, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (void *)(buffer + at);
            REQUIRE(event->wd > 0 && event->wd < 64);
            kinds[event->wd] |= event->mask;
            at += sizeof *event + event->len;
        }
    for (int wd = 0; wd < 64; wd++)
        if (kinds[wd])
            check_line("    %s: %s\n", watch_names[wd], event_names(kinds[wd]));
}

// Shows all events that come until there is one of that kind of a file itself: what comes soon, not at once.
static inline void show_when(const char *what, unsigned mask)
{
    check_line("%s\n", what);
    char buffer[8192] __attribute__((aligned(8)));
    for (unsigned seen = 0; !(seen & mask);) {
        struct pollfd ready = { watcher, POLLIN, 0 };
        REQUIRE(poll(&ready, 1, 60000) == 1);
        ssize_t length = read(watcher, buffer, sizeof buffer);
        REQUIRE(length > 0);
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (void *)(buffer + at);
            show_event(event);
            // Who watches the directory is told before who watches the file.
            seen |= event->len ? 0 : event->mask;
            at += sizeof *event + event->len;
        }
    }
}
