// The groups of the system. Records are copies.

#ifndef _GRP_H_
#define _GRP_H_
__noinference__ {
#include <bits/types.h>

struct group {
  char @gr_name;
  char @gr_passwd;
  gid_t gr_gid;
  char ** @zeroterm gr_mem;
};
extern struct group *getgrnam(const char @);
extern struct group *getgrgid(gid_t);
extern "C" int initgroups(const char @, gid_t);
extern "C" int getgroups(tag_t<`i> size, const gid_t @{valueof(`i)} list);
extern "C" int setgroups(tag_t<`i> size, const gid_t @{valueof(`i)} list);

}
#endif
