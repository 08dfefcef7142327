// The scalar types that several POSIX headers define, as 64-bit Linux has them.

#ifndef _BITS_TYPES_H_
#define _BITS_TYPES_H_
#include <bits/size.h>
typedef long blkcnt_t;
typedef long blksize_t;
typedef long clock_t;
typedef int clockid_t;
typedef unsigned long dev_t;
typedef unsigned int gid_t;
typedef unsigned int id_t;
typedef unsigned long ino_t;
typedef unsigned int mode_t;
typedef unsigned long nlink_t;
typedef long off_t;
typedef int pid_t;
typedef long suseconds_t;
typedef long time_t;
typedef unsigned int uid_t;
typedef unsigned int useconds_t;
#endif
