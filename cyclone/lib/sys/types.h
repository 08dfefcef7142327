// The scalar types of POSIX and the short names of BSD.

#ifndef _SYS_TYPES_H_
#define _SYS_TYPES_H_
__noinference__ {
#include <bits/types.h>
#include <bits/integers.h>

typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
typedef unsigned long fsblkcnt_t;
typedef unsigned long fsfilcnt_t;
typedef int key_t;
typedef long timer_t;

}
#endif
