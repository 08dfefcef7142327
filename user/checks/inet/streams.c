// Much more than a connection holds: what is sent comes in order, however the queue fills and empties, and nothing is lost at its end.
#include "../check.h"
#include "../inet.h"

static unsigned char bytes[300000];
static unsigned long sent, received, wrong;
static unsigned long random_state = 88172645463325252;

// Marsaglia, Xorshift RNGs, with the triple (13, 7, 17).
static unsigned long next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// The byte that stands at a place of the stream.
static unsigned char byte_at(unsigned long place)
{
    return (unsigned char)(place ^ place >> 8 ^ place >> 16);
}

// Sends up to so many bytes: whether there was room for all.
static int send_some(int fd, unsigned long most)
{
    for (unsigned long i = 0; i < most; i++)
        bytes[i] = byte_at(sent + i);
    for (unsigned long done = 0; done < most;) {
        ssize_t count = write(fd, bytes + done, most - done);
        if (count < 0) {
            REQUIRE(errno == EAGAIN);
            return 0;
        }
        done += count;
        sent += count;
    }
    return 1;
}

// Receives up to so many bytes.
static void receive_some(int fd, unsigned long most)
{
    while (most > 0) {
        ssize_t count = read(fd, bytes, most < sizeof bytes ? most : sizeof bytes);
        if (count <= 0) {
            REQUIRE(count == 0 || errno == EAGAIN);
            return;
        }
        for (ssize_t i = 0; i < count; i++)
            wrong += bytes[i] != byte_at(received + i);
        received += count;
        most -= count;
    }
}

static void wait_until(int fd, int events)
{
    struct pollfd asked = { fd, events, 0 };
    REQUIRE(poll(&asked, 1, 10000) == 1);
}

static void show(const char *name)
{
    check_line("%s: all came %d, wrong %lu\n", name, sent == received, wrong);
}

int main(void)
{
    int listener = listener4(1), on = 1;
    int client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == 0);
    int server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    REQUIRE(server >= 0 && ioctl(client, FIONBIO, &on) == 0);

    // The queue is full, then empty, several times.
    for (int i = 0; i < 12; i++) {
        while (send_some(client, sizeof bytes))
            ;
        while (received < sent) {
            wait_until(server, POLLIN);
            receive_some(server, sizeof bytes);
        }
        wait_until(client, POLLOUT);
    }
    show("full and empty");
    // Short messages after long ones, as the queue is when nobody waits any more.
    for (int i = 0; i < 200; i++) {
        REQUIRE(send_some(client, 1 + next_random() % 3000));
        while (received < sent) {
            wait_until(server, POLLIN);
            receive_some(server, 1 + next_random() % 5000);
        }
    }
    show("short");
    // Anything.
    for (int i = 0; i < 2000; i++) {
        send_some(client, next_random() % (next_random() % 8 ? 6000 : sizeof bytes));
        receive_some(server, next_random() % (next_random() % 8 ? 6000 : sizeof bytes));
    }
    while (received < sent) {
        wait_until(server, POLLIN);
        receive_some(server, sizeof bytes);
    }
    show("anything");
    // The sender goes while the queue is full and it had more.
    while (send_some(client, sizeof bytes))
        ;
    close(client);
    while (received < sent) {
        wait_until(server, POLLIN);
        receive_some(server, 1 + next_random() % 50000);
    }
    show("closed");
    wait_until(server, POLLIN);
    char byte;
    INET("end", read(server, &byte, 1));
    return 0;
}
