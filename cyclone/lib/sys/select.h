// Waiting for several descriptors. Descriptors that a set cannot hold are refused.

#ifndef _SYS_SELECT_H_
#define _SYS_SELECT_H_
__noinference__ {
#include <bits/timeval.h>
#include <bits/sigset.h>

#define FD_SETSIZE 1024
typedef struct { unsigned long fds_bits[16]; } fd_set;

extern int select(int, fd_set *, fd_set *, fd_set *, struct timeval *);
extern int pselect(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
extern void FD_CLR(int, fd_set @);
extern int FD_ISSET(int, fd_set @);
extern void FD_SET(int, fd_set @);
extern void FD_ZERO(fd_set @);

}
#endif
