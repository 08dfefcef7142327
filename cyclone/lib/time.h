// Calendar time and clocks.

#ifndef _TIME_H_
#define _TIME_H_
__noinference__ {
#include <bits/timeval.h>

#define CLOCKS_PER_SEC 1000000L
#define CLK_TCK 100
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define TIMER_ABSTIME 1

struct tm {
  int tm_sec;
  int tm_min;
  int tm_hour;
  int tm_mday;
  int tm_mon;
  int tm_year;
  int tm_wday;
  int tm_yday;
  int tm_isdst;
  long tm_gmtoff;
  const char *tm_zone;
};
struct itimerspec {
  struct timespec it_interval;
  struct timespec it_value;
};

extern "C" char @{26} asctime(const struct tm @);
extern "C" char @{26}`r asctime_r(const struct tm @, char @{26}`r);
extern "C" char @{26} ctime(const time_t @);
extern "C" char @{26}`r ctime_r(const time_t @, char @{26}`r);
extern "C" struct tm @gmtime(const time_t @);
extern "C" struct tm @`r gmtime_r(const time_t @, struct tm @`r);
extern "C" struct tm @localtime(const time_t @);
extern "C" struct tm @`r localtime_r(const time_t @, struct tm @`r);
extern "C" time_t mktime(const struct tm @);
extern "C" double difftime(time_t, time_t);
extern "C" time_t time(time_t *);
extern "C" void tzset(void);
extern "C" long timezone;
extern "C" int daylight;
extern size_t strftime(char ?, size_t, const char ?, const struct tm @);

extern "C" clock_t clock(void);
extern "C" int clock_getcpuclockid(pid_t, clockid_t @);
extern "C" int clock_getres(clockid_t, struct timespec *);
extern "C" int clock_gettime(clockid_t, struct timespec @);
extern "C" int clock_settime(clockid_t, const struct timespec @);
extern int clock_nanosleep(clockid_t, int, const struct timespec @, struct timespec @);
extern int nanosleep(const struct timespec @, struct timespec *);

}
#endif
