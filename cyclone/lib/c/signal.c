/* Signals. C's SIG_DFL, SIG_ERR and SIG_IGN are numbers disguised as functions; Cyclone's are functions, exchanged for them
   here. */
#define _GNU_SOURCE
#include "native.h"

#include <signal.h>
#include <string.h>

typedef void (*handler)(int);

void Cyc_SIG_DFL(int signal) { (void)signal; }
void Cyc_SIG_ERR(int signal) { (void)signal; }
void Cyc_SIG_IGN(int signal) { (void)signal; }

static handler to_c(handler h) {
  return h == Cyc_SIG_DFL ? SIG_DFL : h == Cyc_SIG_ERR ? SIG_ERR : h == Cyc_SIG_IGN ? SIG_IGN : h;
}

static handler from_c(handler h) {
  return h == SIG_DFL ? Cyc_SIG_DFL : h == SIG_ERR ? Cyc_SIG_ERR : h == SIG_IGN ? Cyc_SIG_IGN : h;
}

handler Cyc_signal(int number, handler h) { return from_c(signal(number, to_c(h))); }

/* As signal, but an ignored or defaulted signal is also unblocked. */
handler Cyc_sigset(int number, handler h) {
  handler old = signal(number, to_c(h));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  if (old != SIG_ERR)
    sigprocmask(SIG_UNBLOCK, &set, NULL);
  return from_c(old);
}

/* Cyclone's struct sigaction. */
struct action {
  handler handler;
  sigset_t mask;
  int flags;
};

struct action Cyc_fresh_sigaction(void) {
  struct action action = {.handler = Cyc_SIG_DFL};
  return action;
}

/* A Cyclone handler takes one argument; the kernel is not asked for more. */
int Cyc_sigaction(int number, struct action *new, struct action *old) {
  struct sigaction c_new, c_old;
  if (new) {
    memset(&c_new, 0, sizeof c_new);
    c_new.sa_handler = to_c(new->handler);
    c_new.sa_mask = new->mask;
    c_new.sa_flags = new->flags & ~SA_SIGINFO;
  }
  int result = sigaction(number, new ? &c_new : NULL, &c_old);
  if (result == 0 && old) {
    old->handler = from_c(c_old.sa_handler);
    old->mask = c_old.sa_mask;
    old->flags = c_old.sa_flags;
  }
  return result;
}
