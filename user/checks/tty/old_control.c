// The requests of terminals before termios, and the entropy count.
#include "../check.h"
#include <sys/ioctl.h>
#include <termios.h>

struct old_termios {
    unsigned short modes[4];
    unsigned char line, characters[8];
};

#define TCGETA 0x5405
#define TCSETA 0x5406
#define TCSETAW 0x5407
#define TCSETAF 0x5408
#define RNDGETENTCNT _IOR('R', 0, int)

int main(void)
{
    struct old_termios old = { { 0 } };
    struct termios now;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    CHECK("get", ioctl(slave, TCGETA, &old));
    REQUIRE(tcgetattr(slave, &now) == 0);
    CHECK_TRUE("same-modes", old.modes[0] == (now.c_iflag & 0xffff) && old.modes[1] == (now.c_oflag & 0xffff) &&
                                 old.modes[2] == (now.c_cflag & 0xffff) && old.modes[3] == (now.c_lflag & 0xffff));
    CHECK_TRUE("same-characters", memcmp(old.characters, now.c_cc, sizeof old.characters) == 0);
    old.modes[3] &= ~ECHO;
    old.characters[VINTR] = 7;
    CHECK("set", ioctl(slave, TCSETA, &old));
    CHECK("set-drained", ioctl(slave, TCSETAW, &old));
    CHECK("set-flushed", ioctl(slave, TCSETAF, &old));
    REQUIRE(tcgetattr(slave, &now) == 0);
    CHECK("echo-off", now.c_lflag & ECHO);
    CHECK("interrupt", now.c_cc[VINTR]);
    CHECK("nowhere", ioctl(slave, TCGETA, NULL));
    CHECK("from-nowhere", ioctl(slave, TCSETA, NULL));
    CHECK("closed", ioctl(-1, TCGETA, &old));
    check_write_file("f", "");
    CHECK("no-terminal", ioctl(open("f", O_RDWR), TCGETA, &old));
    CHECK("unknown", ioctl(slave, 0x54ff, &old));

    int bits = -1, random = open("/dev/urandom", O_RDONLY);
    CHECK("entropy", ioctl(random, RNDGETENTCNT, &bits));
    int told = atoi(check_read_file("/proc/sys/kernel/random/entropy_avail"));
    CHECK_TRUE("as-told", told == bits);
    return 0;
}
