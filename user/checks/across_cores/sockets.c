// Unix sockets that are closed, bound and connected on two cores at once.
#include "together.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ROUNDS 5000

static int ends[2], listener, client, bound[2], names;
static long wrong;

static struct sockaddr_un name_of(const char *kind, int number)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "ebb-across-%05d-%s-%04d", (int)getpid(), kind, number % 10000);
    return address;
}

static socklen_t length_of(const struct sockaddr_un *address)
{
    return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1);
}

static void make_pair(void)
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
}

static void write_and_close(void)
{
    REQUIRE(write(ends[1], "x", 1) == 1);
    close(ends[1]);
}

// What was sent before the end comes before the end.
static void read_to_end(void)
{
    char byte;
    wrong += read(ends[0], &byte, 1) != 1;
    wrong += read(ends[0], &byte, 1) != 0;
}

static void close_pair(void)
{
    close(ends[0]);
}

static void make_listener(void)
{
    struct sockaddr_un address = name_of("listener", ++names);
    REQUIRE((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0 && (client = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    REQUIRE(bind(listener, (struct sockaddr *)&address, length_of(&address)) == 0 && listen(listener, 1) == 0);
}

static void close_listener(void)
{
    close(listener);
}

// It is refused, or reset because nobody accepts it: it never ends in order.
static void connect_and_read(void)
{
    struct sockaddr_un address = name_of("listener", names);
    char byte;
    if (connect(client, (struct sockaddr *)&address, length_of(&address)) == 0)
        wrong += read(client, &byte, 1) != -1 || errno != ECONNRESET;
    else
        wrong += errno != ECONNREFUSED;
}

static void close_client(void)
{
    close(client);
}

static void make_nameless(void)
{
    names++;
    REQUIRE((client = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
}

static void bind_first(void)
{
    struct sockaddr_un address = name_of("first", names);
    bound[0] = bind(client, (struct sockaddr *)&address, length_of(&address)) == 0;
}

static void bind_second(void)
{
    struct sockaddr_un address = name_of("second", names);
    bound[1] = bind(client, (struct sockaddr *)&address, length_of(&address)) == 0;
}

static void look_at_names(void)
{
    wrong += bound[0] + bound[1] != 1;
    close(client);
}

int main(void)
{
    together(4 * ROUNDS, make_pair, read_to_end, write_and_close, close_pair);
    CHECK("bytes-lost-at-the-end", wrong);
    wrong = 0;
    together(ROUNDS, make_listener, connect_and_read, close_listener, close_client);
    CHECK("connected-to-nobody", wrong);
    wrong = 0;
    together(ROUNDS, make_nameless, bind_first, bind_second, look_at_names);
    CHECK("bound-twice", wrong);
    return 0;
}
