// Setting the times of a file.

#ifndef _UTIME_H_
#define _UTIME_H_
__noinference__ {
#include <bits/types.h>

struct utimbuf {
  time_t actime;
  time_t modtime;
};
extern "C" int utime(const char @, const struct utimbuf *);

}
#endif
