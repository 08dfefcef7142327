// What two write to a terminal at the same time comes one behind the other; and what comes from its other end is echoed in the order in which it is read.
#include "together.h"
#include <sys/ioctl.h>
#include <termios.h>

#define WRITES 40
#define LENGTH 4000
#define ECHOES 3000

static int master, slave;

static void write_all(char byte)
{
    static char bytes[2][LENGTH];
    char *all = bytes[byte == 'b'];
    memset(all, byte, LENGTH);
    for (int i = 0; i < WRITES; i++)
        REQUIRE(write(slave, all, LENGTH) == LENGTH);
}

static void *write_a(void *unused)
{
    write_all('a');
    return unused;
}

static void *write_b(void *unused)
{
    write_all('b');
    return unused;
}

static int torn;

// Reads what both write; how often one begins within the other is counted.
static void read_them(void)
{
    static char got[65536];
    char last = 0;
    int length = 0;
    for (int left = 2 * WRITES * LENGTH; left > 0;) {
        ssize_t count = read(master, got, sizeof got);
        REQUIRE(count > 0);
        left -= count;
        for (int i = 0; i < count; i++, length++) {
            torn += got[i] != last && length % LENGTH != 0;
            last = got[i];
        }
    }
}

static void nothing(void)
{
}

static void type_x(void)
{
    REQUIRE(write(master, "x", 1) == 1);
}

static void type_y(void)
{
    REQUIRE(write(master, "y", 1) == 1);
}

static void read_two(int fd, char *to)
{
    for (int got = 0; got < 2;) {
        ssize_t count = read(fd, to + got, 2 - got);
        REQUIRE(count > 0);
        got += count;
    }
}

static int agree;

static void compare(void)
{
    char echoed[2], came[2];
    read_two(master, echoed);
    read_two(slave, came);
    agree += memcmp(echoed, came, 2) == 0;
}

int main(void)
{
    int unlock = 0;
    char name[32];
    unsigned number;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0);
    REQUIRE(ioctl(master, TIOCSPTLCK, &unlock) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%u", number);
    slave = open(name, O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    struct termios raw;
    REQUIRE(tcgetattr(slave, &raw) == 0);
    cfmakeraw(&raw);
    REQUIRE(tcsetattr(slave, TCSANOW, &raw) == 0);

    pthread_t a, b;
    REQUIRE(pthread_create(&a, NULL, write_a, NULL) == 0 && pthread_create(&b, NULL, write_b, NULL) == 0);
    read_them();
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    CHECK("torn", torn);

    raw.c_lflag |= ECHO;
    REQUIRE(tcsetattr(slave, TCSANOW, &raw) == 0);
    together(ECHOES, nothing, type_x, type_y, compare);
    CHECK("echoed-as-read", agree);
    return 0;
}
