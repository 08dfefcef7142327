// Waiting for children.

#ifndef _SYS_WAIT_H_
#define _SYS_WAIT_H_
__noinference__ {
#include <bits/types.h>
#include <bits/wait.h>

#define HAVE_WAITPID
typedef enum { P_ALL, P_PID, P_PGID } idtype_t;
extern pid_t wait(int *);
extern pid_t waitpid(pid_t, int *, int);

}
#endif
