// Addresses as text.

#ifndef _ARPA_INET_H_
#define _ARPA_INET_H_
__noinference__ {
#include <netinet/in.h>

extern "C" in_addr_t inet_addr(const char @);
extern "C" int inet_aton(const char @, struct in_addr @);
extern "C" char *inet_ntoa(struct in_addr);

}
#endif
