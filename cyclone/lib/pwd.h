// The users of the system. Records are copies.

#ifndef _PWD_H_
#define _PWD_H_
__noinference__ {
#include <bits/types.h>

struct passwd {
  char *pw_name;
  char *pw_passwd;
  uid_t pw_uid;
  gid_t pw_gid;
  char *pw_gecos;
  char *pw_dir;
  char *pw_shell;
};
extern struct passwd *getpwnam(const char @);
extern struct passwd *getpwuid(uid_t);

}
#endif
