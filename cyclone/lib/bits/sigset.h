// A set of signals.

#ifndef _BITS_SIGSET_H_
#define _BITS_SIGSET_H_
typedef struct { unsigned long __bits[16]; } sigset_t;
#endif
