// The name of the system.

#ifndef _SYS_UTSNAME_H_
#define _SYS_UTSNAME_H_
__noinference__ {
struct utsname {
  char sysname[65];
  char nodename[65];
  char release[65];
  char version[65];
  char machine[65];
  char __domainname[65];
};
extern "C" int uname(struct utsname @);

}
#endif
