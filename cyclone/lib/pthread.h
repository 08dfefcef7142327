// Threads, mutexes and condition variables. A thread ends when its function returns or throws. Threads take turns: one at a time
// runs, until it waits (for input, a mutex, time, a thread), yields, or has run for a while. A program that was not built with
// -fthreads has no threads: pthread_create throws Core::Failure.

#ifndef _PTHREAD_H_
#define _PTHREAD_H_
__noinference__ {
typedef unsigned long pthread_t;
typedef struct { unsigned long __words[7]; } pthread_attr_t;
typedef struct { unsigned long __words[5]; } pthread_mutex_t;
typedef struct { unsigned int __word; } pthread_mutexattr_t;
typedef struct { unsigned long __words[6]; } pthread_cond_t;
typedef struct { unsigned int __word; } pthread_condattr_t;

// The argument must live on the heap: nothing says that the thread ends before the region of a shorter life.
extern int pthread_create(pthread_t @thread, const pthread_attr_t *attr, `a (@`H cycfun)(`b), `b arg : regions(`b) <= `H)
  __attribute__((initializes(1)));
extern int pthread_join(pthread_t thread, void **ret);
extern int pthread_detach(pthread_t thread);
extern pthread_t pthread_self(void);
extern int pthread_equal(pthread_t, pthread_t);
extern int pthread_mutex_init(pthread_mutex_t @, const pthread_mutexattr_t *);
extern int pthread_mutex_lock(pthread_mutex_t @);
extern int pthread_mutex_unlock(pthread_mutex_t @);
extern int pthread_mutex_trylock(pthread_mutex_t @);
extern int pthread_mutex_destroy(pthread_mutex_t @);
extern int pthread_cond_init(pthread_cond_t @, const pthread_condattr_t *);
extern int pthread_cond_destroy(pthread_cond_t *);
extern int pthread_cond_signal(pthread_cond_t *);
extern int pthread_cond_broadcast(pthread_cond_t *);
extern int pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
extern int pthread_yield(void);

}
#endif
