// Names of hosts, services and protocols. Records are copies; h_addr_list ends with NULL and may not be read past it.

#ifndef _NETDB_H_
#define _NETDB_H_
__noinference__ {
#include <bits/address.h>

#define IPPORT_RESERVED 1024
#define HOST_NOT_FOUND 1
#define TRY_AGAIN 2
#define NO_RECOVERY 3
#define NO_DATA 4

struct hostent {
  char *h_name;
  char ** @zeroterm h_aliases;
  int h_addrtype;
  int h_length;
  struct in_addr ** @zeroterm h_addr_list;
};
#define h_addr h_addr_list[0]
struct servent {
  char *s_name;
  char ** @zeroterm s_aliases;
  int s_port;
  char *s_proto;
};
struct protoent {
  char *p_name;
  char ** @zeroterm p_aliases;
  int p_proto;
};

extern struct hostent *gethostbyname(const char *);
extern struct servent *getservbyname(const char *, const char *);
extern struct protoent *getprotobyname(const char *);
extern "C" void herror(const char *);

}
#endif
