// Signals. SIG_DFL, SIG_ERR and SIG_IGN are functions here, which the wrappers exchange for C's special values; a handler gets
// the number of the signal only, also where SA_SIGINFO asks for more.

#ifndef _SIGNAL_H_
#define _SIGNAL_H_
__noinference__ {
#include <bits/types.h>
#include <bits/sigset.h>

#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGUSR1 10
#define SIGSEGV 11
#define SIGUSR2 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGXCPU 24
#define SIGXFSZ 25
#define SIGVTALRM 26
#define SIGPROF 27
#define SIGWINCH 28
#define SIGPOLL 29
#define SIGPWR 30
#define SIGSYS 31
#define SIGIOT SIGABRT
#define SIGIO SIGPOLL
#define NSIG 65

#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
#define SA_NOCLDSTOP 1
#define SA_NOCLDWAIT 2
#define SA_SIGINFO 4
#define SA_ONSTACK 0x08000000
#define SA_RESTART 0x10000000
#define SA_NODEFER 0x40000000
#define SA_RESETHAND (-2147483647 - 1)

typedef int sig_atomic_t;
typedef void (@sigarg_t)(int);
extern void SIG_DFL(int);
extern void SIG_ERR(int);
extern void SIG_IGN(int);

struct sigaction {
  sigarg_t sa_handler;
  sigset_t sa_mask;
  int sa_flags;
};

// An action that handles a signal in the default way.
extern struct sigaction fresh_sigaction();
extern int sigaction(int, struct sigaction *, struct sigaction *);
// The name of the GNU C library.
typedef sigarg_t __sighandler_t;
extern sigarg_t signal(int, sigarg_t);
extern sigarg_t sigset(int, sigarg_t);

extern "C" int kill(pid_t, int);
extern "C" int raise(int);
extern "C" int sigaddset(sigset_t @, int);
extern "C" int sigdelset(sigset_t @, int);
extern "C" int sigemptyset(sigset_t @);
extern "C" int sigfillset(sigset_t @);
extern "C" int sigismember(sigset_t @, int);
extern "C" int sigprocmask(int, const sigset_t *, sigset_t *);
extern "C" int sighold(int);
extern "C" int sigrelse(int);
extern "C" int sigignore(int);
extern "C" int siginterrupt(int, int);
extern "C" int sigpause(int);

}
#endif
