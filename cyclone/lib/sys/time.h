// The time of day, and timers that send signals.

#ifndef _SYS_TIME_H_
#define _SYS_TIME_H_
__noinference__ {
#include <bits/timeval.h>
#include <sys/select.h>

#define ITIMER_REAL 0
#define ITIMER_VIRTUAL 1
#define ITIMER_PROF 2

struct itimerval {
  struct timeval it_interval;
  struct timeval it_value;
};
struct timezone {
  int tz_minuteswest;
  int tz_dsttime;
};

// The second argument is not used.
extern int gettimeofday(struct timeval @, struct timezone *);
extern "C" int getitimer(int, struct itimerval @);
extern "C" int setitimer(int, const struct itimerval @, struct itimerval *);
extern "C" int utimes(const char @, const struct timeval *{2});

}
#endif
