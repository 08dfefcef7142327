// The log of the system, under its usual name.

#include <sys/syslog.h>
