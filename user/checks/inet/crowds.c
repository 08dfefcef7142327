// Many connections at once: several who accept and connect, a listener that is closed while others connect, and one end that is used by two threads.
#include "../check.h"
#include "../inet.h"
#include <pthread.h>

#define CLIENTS 4
#define ROUNDS 150

static int listener, port;
static int served[CLIENTS], answered[CLIENTS];

static void *serve(void *argument)
{
    int own = (int)(long)argument;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        char text[64];
        ssize_t got = read(fd, text, sizeof text);
        if (got > 0 && write(fd, text, got) == got)
            served[own]++;
        close(fd);
    }
}

static void *ask(void *argument)
{
    int own = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char text[16], answer[16];
        int len = snprintf(text, sizeof text, "%d-%d", own, i);
        REQUIRE(connect4(fd, "127.0.0.1", port) == 0);
        REQUIRE(write(fd, text, len) == len);
        if (recv(fd, answer, sizeof answer, MSG_WAITALL) == len && memcmp(text, answer, len) == 0)
            answered[own]++;
        close(fd);
    }
    return NULL;
}

static int total(const int counts[CLIENTS])
{
    int sum = 0;
    for (int i = 0; i < CLIENTS; i++)
        sum += counts[i];
    return sum;
}

static volatile int ending;
static volatile long outcomes[3];

// Connects to a listener that comes and goes: each attempt is refused, reset, or made.
static void *try_to_connect(void *argument)
{
    (void)argument;
    while (!ending) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        int got = connect4(fd, "127.0.0.1", port);
        int kind = got == 0 ? 0 : errno == ECONNREFUSED || errno == ECONNRESET ? 1 : 2;
        if (kind == 0) {
            char byte;
            ssize_t end = read(fd, &byte, 1);
            if (end > 0 || (end < 0 && errno != ECONNRESET))
                kind = 2;
        }
        __sync_fetch_and_add(&outcomes[kind], 1);
        close(fd);
    }
    return NULL;
}

static int ends[2];

static void *send_much(void *argument)
{
    static const char piece[997];
    for (int i = 0; i < 1000; i++)
        REQUIRE(send(ends[0], piece, sizeof piece, 0) == sizeof piece);
    return argument;
}

static long taken[2];

static void *take_much(void *argument)
{
    static char rooms[2][3001];
    int own = (int)(long)argument;
    ssize_t got;
    while ((got = read(ends[1], rooms[own], sizeof rooms[own])) > 0)
        taken[own] += got;
    return NULL;
}

int main(void)
{
    pthread_t servers[CLIENTS], clients[CLIENTS];
    listener = listener4(2);
    port = port_of(listener);
    for (long i = 0; i < CLIENTS; i++) {
        REQUIRE(pthread_create(&servers[i], NULL, serve, (void *)i) == 0);
        REQUIRE(pthread_create(&clients[i], NULL, ask, (void *)i) == 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    INET("answered", total(answered));
    shutdown(listener, SHUT_RDWR);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(servers[i], NULL);
    INET("served", total(served));
    close(listener);

    // A listener that comes and goes.
    int keeper = socket(AF_INET, SOCK_STREAM, 0);
    set_option(keeper, SOL_SOCKET, SO_REUSEADDR, 1);
    REQUIRE(bind4(keeper, "127.0.0.1", 0) == 0);
    port = port_of(keeper);
    for (int i = 0; i < CLIENTS; i++)
        REQUIRE(pthread_create(&clients[i], NULL, try_to_connect, NULL) == 0);
    int listened = 0;
    for (int i = 0; i < 60; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        REQUIRE(bind4(fd, "127.0.0.1", port) == 0);
        listened += listen(fd, 3) == 0;
        check_sleep_ms(1);
        close(fd);
    }
    ending = 1;
    int last = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    close(last);
    INET("listened", listened);
    INET("wrong-outcomes", outcomes[2]);
    CHECK_TRUE("refused-some", outcomes[1] > 0);

    // Two who send and two who receive on the same ends.
    connected4(ends);
    pthread_t sending[2], taking[2];
    for (long i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&sending[i], NULL, send_much, NULL) == 0);
        REQUIRE(pthread_create(&taking[i], NULL, take_much, (void *)i) == 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(sending[i], NULL);
    shutdown(ends[0], SHUT_WR);
    for (int i = 0; i < 2; i++)
        pthread_join(taking[i], NULL);
    INET("taken", taken[0] + taken[1]);

    // Many that nobody accepts.
    static int crowd[300];
    listener = listener4(1000);
    port = port_of(listener);
    for (int i = 0; i < 300; i++) {
        crowd[i] = socket(AF_INET, SOCK_STREAM, 0);
        REQUIRE(connect4(crowd[i], "127.0.0.1", port) == 0);
    }
    close(listener);
    int reset = 0;
    for (int i = 0; i < 300; i++) {
        char byte;
        reset += read(crowd[i], &byte, 1) == -1 && errno == ECONNRESET;
        close(crowd[i]);
    }
    INET("reset", reset);
    return 0;
}
