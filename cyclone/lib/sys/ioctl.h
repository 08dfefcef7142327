// Control of devices, for the commands whose argument is one int; any other fails with EINVAL.

#ifndef _SYS_IOCTL_H_
#define _SYS_IOCTL_H_
__noinference__ {
#define FIONREAD 0x541B
#define FIONBIO 0x5421
#define FIOASYNC 0x5452
#define TIOCOUTQ 0x5411
#define SIOCATMARK 0x8905
extern int ioctl(int fd, int cmd, int @arg);

}
#endif
