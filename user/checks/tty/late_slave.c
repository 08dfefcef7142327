// Pseudo-terminals: who waits at a master is told that its first slave came and went; a write that waits and loses its description is in nobody's way.
#include "../state.h"
#include <poll.h>
#include <pthread.h>
#include <termios.h>

static int master, slave;
static const char *name;

static void make(void)
{
    master = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    name = ptsname(master);
}

static void come_and_go(const char *what, int does_read)
{
    make();
    pid_t child = check_fork();
    if (child == 0) {
        char byte;
        struct pollfd one = { master, POLLIN, 0 };
        if (does_read)
            _exit(read(master, &byte, 1) < 0 ? errno : 0);
        poll(&one, 1, -1);
        _exit(one.revents);
    }
    check_waits(child);
    close(open(name, O_RDWR | O_NOCTTY));
    CHECK_STATUS(what, check_wait(child));
    close(master);
}

static char big[200000];

static void *write_all(void *_)
{
    (void)_;
    while (write(slave, big, sizeof big) > 0)
        ;
    return NULL;
}

static void take_all(void)
{
    struct pollfd one = { master, POLLIN, 0 };
    while (poll(&one, 1, 100) > 0 && read(master, big, sizeof big) > 0)
        ;
}

static void lose_the_writer(void)
{
    make();
    int kept = open(name, O_RDWR | O_NOCTTY);
    memset(big, 'a', sizeof big);
    pid_t child = check_fork();
    if (child == 0) {
        pthread_t thread;
        slave = open(name, O_WRONLY | O_NOCTTY);
        REQUIRE(slave >= 0 && pthread_create(&thread, NULL, write_all, NULL) == 0);
        check_sleep_ms(50);
        close(slave);
        check_sleep_ms(50);
        _exit(0);
    }
    CHECK_STATUS("who wrote and closed", check_wait(child));
    take_all();
    child = check_fork();
    if (child == 0)
        _exit((int)write(kept, "hello", 5));
    CHECK_STATUS("who writes next", check_wait(child));
    close(kept);
    close(master);
}

int main(void)
{
    signal(SIGHUP, SIG_IGN);
    come_and_go("read", 1);
    come_and_go("poll", 0);
    lose_the_writer();
    return 0;
}
