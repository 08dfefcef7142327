// What epoll(7) says of connections and messages, by level and by edge, and signals of sockets (O_ASYNC).
#include "../check.h"
#include "../inet.h"
#include <sys/epoll.h>

static int set;

// The events that are there now, or after a while at most.
static void show_events(const char *name, int wait)
{
    struct epoll_event events[4];
    int count = epoll_wait(set, events, 4, wait ? 5000 : 0);
    if (count <= 0) {
        check_line("%s: %s\n", name, count ? "error" : "none");
        return;
    }
    uint32_t all = events[0].events;
    check_line("%s: %d,%s%s%s%s%s%s\n", name, count, all & EPOLLIN ? " in" : "", all & EPOLLPRI ? " pri" : "", all & EPOLLOUT ? " out" : "", all & EPOLLRDHUP ? " rdhup" : "",
               all & EPOLLERR ? " err" : "", all & EPOLLHUP ? " hup" : "");
}

static void watch(int fd, uint32_t events)
{
    struct epoll_event event = { events, { .fd = fd } };
    set = epoll_create1(0);
    REQUIRE(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    signals += number == SIGIO;
}

int main(void)
{
    static char many[1 << 16];
    char text[64];
    int ends[2];
    connected4(ends);
    watch(ends[1], EPOLLIN | EPOLLRDHUP);
    show_events("level-nothing", 0);
    REQUIRE(send(ends[0], "abc", 3, 0) == 3);
    show_events("level-in", 1);
    show_events("level-in-again", 0);
    REQUIRE(read(ends[1], text, 2) == 2);
    show_events("level-rest", 0);
    REQUIRE(read(ends[1], text, 2) == 1);
    show_events("level-empty", 0);
    shutdown(ends[0], SHUT_WR);
    show_events("level-end", 1);
    shutdown(ends[1], SHUT_WR);
    show_events("level-both", 1);
    close(set), close(ends[0]), close(ends[1]);

    connected4(ends);
    watch(ends[1], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    show_events("edge-first", 1);
    show_events("edge-first-again", 0);
    REQUIRE(send(ends[0], "abc", 3, 0) == 3);
    show_events("edge-in", 1);
    show_events("edge-in-again", 0);
    REQUIRE(send(ends[0], "d", 1, 0) == 1);
    show_events("edge-more", 1);
    REQUIRE(read(ends[1], text, 1) == 1);
    show_events("edge-after-read", 0);
    REQUIRE(read(ends[1], text, sizeof text) == 3);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], many, sizeof many) > 0)
        ;
    show_events("edge-full", 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (read(ends[0], many, sizeof many) > 0 || recv(ends[0], many, 1, MSG_PEEK) > 0)
        ;
    show_events("edge-room", 1);
    close(ends[0]);
    show_events("edge-closed", 1);
    show_events("edge-closed-again", 0);
    close(set), close(ends[1]);

    // A listener, and a client that connects without waiting.
    int listener = listener4(5);
    watch(listener, EPOLLIN | EPOLLET);
    show_events("listener-nothing", 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == -1 && errno == EINPROGRESS);
    show_events("listener-in", 1);
    show_events("listener-in-again", 0);
    int second = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(second, "127.0.0.1", port_of(listener)) == 0);
    show_events("listener-second", 1);
    close(set);
    watch(client, EPOLLOUT | EPOLLIN | EPOLLET);
    show_events("client-out", 1);
    int server = accept(listener, NULL, NULL);
    REQUIRE(send(server, "x", 1, MSG_OOB) == 1);
    close(set);
    watch(client, EPOLLPRI);
    show_events("urgent", 1);
    close(server);
    close(set);

    // A watched socket that is connected only later.
    int late = socket(AF_INET, SOCK_STREAM, 0);
    watch(late, EPOLLIN | EPOLLOUT | EPOLLET);
    show_events("late-fresh", 0);
    REQUIRE(connect4(late, "127.0.0.1", port_of(listener)) == 0);
    show_events("late-connected", 1);
    close(accept(listener, NULL, NULL));
    int peer = accept(listener, NULL, NULL);
    REQUIRE(send(peer, "x", 1, 0) == 1);
    show_events("late-in", 1);
    close(set), close(late), close(peer), close(client), close(second);

    // Messages.
    int one = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(bind4(one, "127.0.0.1", 0) == 0);
    watch(one, EPOLLIN | EPOLLET);
    show_events("message-nothing", 0);
    REQUIRE(connect4(other, "127.0.0.1", port_of(one)) == 0);
    REQUIRE(send(other, "x", 1, 0) == 1);
    show_events("message", 1);
    REQUIRE(send(other, "x", 1, 0) == 1);
    show_events("message-second", 1);
    close(set);
    watch(other, EPOLLIN);
    close(one);
    REQUIRE(send(other, "x", 1, 0) == 1);
    show_events("message-refused", 1);
    close(set), close(other);

    // SIGIO.
    signal(SIGIO, count_signal);
    connected4(ends);
    REQUIRE(fcntl(ends[1], F_SETOWN, getpid()) == 0);
    INET("async", fcntl(ends[1], F_SETFL, O_ASYNC));
    REQUIRE(send(ends[0], "x", 1, 0) == 1);
    for (int i = 0; i < 1000 && !signals; i++)
        check_sleep_ms(1);
    CHECK_TRUE("signal-in", signals > 0);
    signals = 0;
    close(ends[0]);
    for (int i = 0; i < 1000 && !signals; i++)
        check_sleep_ms(1);
    CHECK_TRUE("signal-end", signals > 0);
    return 0;
}
