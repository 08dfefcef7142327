// The log of the system.

#ifndef _SYS_SYSLOG_H_
#define _SYS_SYSLOG_H_
__noinference__ {
#include <bits/printf.h>

#define LOG_EMERG 0
#define LOG_ALERT 1
#define LOG_CRIT 2
#define LOG_ERR 3
#define LOG_WARNING 4
#define LOG_NOTICE 5
#define LOG_INFO 6
#define LOG_DEBUG 7
#define LOG_KERN (0 << 3)
#define LOG_USER (1 << 3)
#define LOG_MAIL (2 << 3)
#define LOG_DAEMON (3 << 3)
#define LOG_AUTH (4 << 3)
#define LOG_LOCAL0 (16 << 3)
#define LOG_PID 0x01
#define LOG_CONS 0x02
#define LOG_ODELAY 0x04
#define LOG_NDELAY 0x08
#define LOG_NOWAIT 0x10
#define LOG_MASK(priority) (1 << (priority))
#define LOG_UPTO(priority) ((1 << ((priority) + 1)) - 1)

extern "C" void closelog(void);
extern "C" int setlogmask(int);
// The name is copied.
extern void openlog(const char @, int, int);
extern void syslog(int, const char ?, ... inject parg_t)
  __attribute__((format(printf,2,3)));
extern void vsyslog(int, const char ?, parg_t ?)
  __attribute__((format(printf,2,0)));

}
#endif
