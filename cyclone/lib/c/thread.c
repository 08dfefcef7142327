/* Threads. Programs that were not built with -fthreads have none: their threads would not take turns (see the run-time library's
   turns.c), and their collector would not see a thread's stack. An exception that a thread's function throws and does not catch is
   reported and ends the thread with NULL.

   Mutexes and condition variables lie in the program's memory, where anything may be written to them: they are a flag here, and
   nothing, and who waits for one is parked for its address. As one thread at a time runs, that is enough. */
#define _GNU_SOURCE
#if defined(_CYC_THREADS) && !defined(_CYC_NO_GC)
#define GC_THREADS
#include <gc.h>
#endif
#include <errno.h>
#include <pthread.h>

#include "native.h"

struct mutex {
  unsigned long is_locked;
};

#ifdef _CYC_THREADS

/* Between the end of a thread's stack and what lies below. Cyclone code touches each page that it takes; for C code, which may not,
   it is more than one page. */
enum { GUARD_BYTES = 64 << 10 };

/* A thread that has not been joined. The program has its number, which is never used again. */
struct thread {
  struct thread *next;
  unsigned long number;
  void *(*function)(void *);
  void *argument, *result;
  int is_done, is_joined, is_detached;
};

static struct thread *threads;

/* 0 for the first thread. */
static __thread unsigned long own_number;

extern const char *Cyc_Core_get_exn_name(void *exception);

static void forget(struct thread *thread) {
  struct thread **at = &threads;
  while (*at != thread)
    at = &(*at)->next;
  *at = thread->next;
  _cyc_free(thread);
}

static void *run(void *argument) {
  struct thread *thread = argument;
  struct _cyc_handler handler;
  _cyc_turn_begin();
  own_number = thread->number;
  if (_cyc_try(&handler) == 0) {
    thread->result = thread->function(thread->argument);
    _cyc_pop_handler();
  } else {
    fprintf(stderr, "Uncaught exception %s in a thread\n", Cyc_Core_get_exn_name(handler.exn));
  }
  thread->is_done = 1;
  if (thread->is_detached)
    forget(thread);
  else
    _cyc_unpark(thread, _CYC_ALL);
  _cyc_turn_end();
  return NULL;
}

/* No function sets attributes: what they hold is not looked at. */
int Cyc_pthread_create(unsigned long *number, const void *attributes, void *(*function)(void *), void *argument) {
  static unsigned long numbers;
  (void)attributes;
  struct thread *thread = _cyc_calloc(sizeof *thread);
  thread->function = function;
  thread->argument = argument;
  thread->number = *number = ++numbers;
  thread->next = threads;
  threads = thread;
  pthread_t native;
  pthread_attr_t own;
  pthread_attr_init(&own);
  pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
  pthread_attr_setguardsize(&own, GUARD_BYTES);
  int error = pthread_create(&native, &own, run, thread);
  pthread_attr_destroy(&own);
  if (error)
    forget(thread);
  return error;
}

/* Finds a thread for one who joins or detaches it, which nobody may do after that. */
static int claim(unsigned long number, struct thread **found) {
  struct thread *thread = threads;
  while (thread && thread->number != number)
    thread = thread->next;
  if (!thread)
    return ESRCH;
  if (thread->is_joined || thread->is_detached)
    return EINVAL;
  *found = thread;
  return 0;
}

int Cyc_pthread_detach(unsigned long number) {
  struct thread *thread;
  int error = claim(number, &thread);
  if (error)
    return error;
  if (thread->is_done)
    forget(thread);
  else
    thread->is_detached = 1;
  return 0;
}

unsigned long Cyc_pthread_self(void) { return own_number; }

int Cyc_pthread_join(unsigned long number, void **result) {
  struct thread *thread;
  int error = number == own_number ? EDEADLK : claim(number, &thread);
  if (error)
    return error;
  thread->is_joined = 1;
  while (!thread->is_done)
    _cyc_park(thread);
  if (result)
    *result = thread->result;
  forget(thread);
  return 0;
}

int Cyc_pthread_mutex_lock(struct mutex *mutex) {
  while (mutex->is_locked)
    _cyc_park(mutex);
  mutex->is_locked = 1;
  return 0;
}

int Cyc_pthread_mutex_unlock(struct mutex *mutex) {
  mutex->is_locked = 0;
  _cyc_unpark(mutex, _CYC_ONE);
  return 0;
}

int Cyc_pthread_cond_wait(void *condition, struct mutex *mutex) {
  if (!condition || !mutex)
    return EINVAL;
  Cyc_pthread_mutex_unlock(mutex);
  _cyc_park(condition);
  return Cyc_pthread_mutex_lock(mutex);
}

int Cyc_pthread_cond_signal(void *condition) {
  _cyc_unpark(condition, _CYC_ONE);
  return 0;
}

int Cyc_pthread_cond_broadcast(void *condition) {
  _cyc_unpark(condition, _CYC_ALL);
  return 0;
}

int Cyc_pthread_yield(void) {
  _cyc_turn_pass();
  return 0;
}

#else

int Cyc_pthread_create(unsigned long *number, const void *attributes, void *(*function)(void *), void *argument) {
  (void)number, (void)attributes, (void)function, (void)argument;
  _cyc_fail("pthread_create: the program was built without -fthreads");
}

int Cyc_pthread_join(unsigned long number, void **result) {
  (void)number, (void)result;
  return ESRCH;
}

int Cyc_pthread_detach(unsigned long number) {
  (void)number;
  return ESRCH;
}

unsigned long Cyc_pthread_self(void) { return 0; }

int Cyc_pthread_mutex_lock(struct mutex *mutex) {
  if (mutex->is_locked)
    return EDEADLK;
  mutex->is_locked = 1;
  return 0;
}

int Cyc_pthread_mutex_unlock(struct mutex *mutex) {
  mutex->is_locked = 0;
  return 0;
}

/* Nobody else could end it. */
int Cyc_pthread_cond_wait(void *condition, struct mutex *mutex) {
  (void)condition, (void)mutex;
  _cyc_fail("pthread_cond_wait: the program was built without -fthreads");
}

int Cyc_pthread_cond_signal(void *condition) {
  (void)condition;
  return 0;
}

int Cyc_pthread_cond_broadcast(void *condition) {
  (void)condition;
  return 0;
}

int Cyc_pthread_yield(void) { return 0; }

#endif

int Cyc_pthread_equal(unsigned long a, unsigned long b) { return a == b; }

int Cyc_pthread_mutex_trylock(struct mutex *mutex) {
  if (mutex->is_locked)
    return EBUSY;
  mutex->is_locked = 1;
  return 0;
}

/* Who destroys one that others wait for has lost them, not more. */
int Cyc_pthread_mutex_destroy(struct mutex *mutex) { return mutex->is_locked ? EBUSY : 0; }

int Cyc_pthread_cond_destroy(void *condition) {
  (void)condition;
  return 0;
}

int Cyc_pthread_mutex_init(struct mutex *mutex, const void *attributes) {
  (void)attributes;
  mutex->is_locked = 0;
  return 0;
}

int Cyc_pthread_cond_init(void *condition, const void *attributes) {
  (void)condition, (void)attributes;
  return 0;
}
