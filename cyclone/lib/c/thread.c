/* Threads. An exception that a thread's function throws and does not catch is reported and ends the thread with NULL. Programs
   that were not built with -fthreads have none: their counts are not atomic, and their collector would not see a thread's
   stack. */
#define _GNU_SOURCE
#if defined(_CYC_THREADS) && !defined(_CYC_NO_GC)
#define GC_THREADS
#include <gc.h>
#endif
#include <pthread.h>
#include <sched.h>

#include "native.h"

#ifdef _CYC_THREADS

struct start {
  void *(*function)(void *);
  void *argument;
};

extern const char *Cyc_Core_get_exn_name(void *exception);

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  struct _cyc_handler handler;
  _cyc_free(argument);
  if (_cyc_try(&handler) == 0) {
    void *result = start.function(start.argument);
    _cyc_pop_handler();
    return result;
  }
  fprintf(stderr, "Uncaught exception %s in a thread\n", Cyc_Core_get_exn_name(handler.exn));
  return NULL;
}

int Cyc_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
  struct start *start = _cyc_malloc(sizeof *start);
  start->function = function;
  start->argument = argument;
  *thread = 0;
  int error = pthread_create(thread, attributes, run, start);
  if (error)
    _cyc_free(start);
  return error;
}

#else

int Cyc_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
  (void)thread, (void)attributes, (void)function, (void)argument;
  _cyc_fail("pthread_create: the program was built without -fthreads");
}

#endif

int Cyc_pthread_join(pthread_t thread, void **result) { return pthread_join(thread, result); }
int Cyc_pthread_yield(void) { return sched_yield(); }
