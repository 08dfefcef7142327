// Waiting for changes of cgroup.events.
#include "../cgroup.h"

static const char *poll_file(int fd, short interest, int timeout)
{
    static char text[64];
    struct pollfd one = { .fd = fd, .events = interest };
    int ready = poll(&one, 1, timeout);
    snprintf(text, sizeof text, "%d%s%s%s%s", ready, one.revents & POLLIN ? " in" : "", one.revents & POLLOUT ? " out" : "",
             one.revents & POLLPRI ? " pri" : "", one.revents & POLLERR ? " err" : "");
    return text;
}

static const char *again(int fd)
{
    static char text[64];
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = 0;
    for (char *letter = text; *letter; letter++)
        if (*letter == '\n')
            *letter = ' ';
    return text;
}

int main(void)
{
    cgroup_begin();
    EXPECT("a", "ok", make("a"));
    int fd = -1;
    DO(fd = open(at("a/cgroup.events"), O_RDONLY));
    EXPECT("not read yet", "1 pri err", poll_file(fd, POLLPRI, 0));
    EXPECT("read", "populated 0 frozen 0 ", again(fd));
    EXPECT("nothing new", "0", poll_file(fd, POLLPRI, 0));
    EXPECT("always readable", "1 in out", poll_file(fd, POLLIN | POLLOUT, 0));
    pid_t child = -1;
    DO(child = sleeper("a"));
    EXPECT("somebody came", "1 pri err", poll_file(fd, POLLPRI, 60000));
    EXPECT("until it is read", "1 pri err", poll_file(fd, POLLPRI, 0));
    EXPECT("read again", "populated 1 frozen 0 ", again(fd));
    EXPECT("nothing new again", "0", poll_file(fd, POLLPRI, 0));
    pid_t killer = -1;
    DO(killer = check_fork());
    if (killer == 0) {
        check_sleep_ms(20);
        put("a/cgroup.kill", "1");
        _exit(0);
    }
    EXPECT("waits for the end", "1 pri err", poll_file(fd, POLLPRI, 60000));
    EXPECT("empty", "populated 0 frozen 0 ", again(fd));
    DO(check_wait(child); check_wait(killer));
    DO(child = sleeper("a"); again(fd));
    EXPECT("freeze", "ok", put("a/cgroup.freeze", "1"));
    EXPECT("waits for that", "1 pri err", poll_file(fd, POLLPRI, 60000));
    EXPECT_SOON("frozen", strcmp(again(fd), "populated 1 frozen 1 ") == 0);
    DO(end(child));
    DO(close(fd));
    EXPECT_SOON("nobody is left", field("a/cgroup.events", "populated") == 0);
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
