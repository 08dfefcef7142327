// struct timeval and struct timespec, which several headers define.

#ifndef _BITS_TIMEVAL_H_
#define _BITS_TIMEVAL_H_
#include <bits/types.h>
struct timeval {
  time_t tv_sec;
  suseconds_t tv_usec;
};
struct timespec {
  time_t tv_sec;
  long tv_nsec;
};
#endif
