/* Threads take turns: one at a time runs Cyclone code, so that none sees what another has half written, nor reads what another
   frees. A turn ends where its thread waits for something, and after a while (`LONG_MS`) at the next round of a loop if others
   wait. Turns are handed on in the order in which threads asked for them. */
#include "internal.h"

#ifdef _CYC_THREADS
#undef pthread_create
#include <errno.h>
#include <pthread.h>
#include <time.h>

/* How long the first waiting thread waits before it asks for the turn. */
enum { LONG_MS = 5 };

struct waiter {
  pthread_cond_t called;
  struct waiter *next;
  const void *key; /* what it is parked for */
  int has_turn;
};

/* All below are protected by it but `has_turn`. It is held for a few instructions. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int taken;
static struct waiter *first, **last = &first;
static struct waiter *parked;

int _cyc_turn_asked;
static __thread int has_turn;

static void enqueue(struct waiter *w) {
  w->next = NULL;
  *last = w;
  last = &w->next;
}

/* Gives the turn to the thread that has waited longest; its successor then waits for it. */
static void hand_on(void) {
  __atomic_store_n(&_cyc_turn_asked, 0, __ATOMIC_RELAXED);
  struct waiter *w = first;
  taken = w != NULL;
  if (!w)
    return;
  first = w->next;
  if (first)
    pthread_cond_signal(&first->called);
  else
    last = &first;
  w->has_turn = 1;
  pthread_cond_signal(&w->called);
}

static void prepare(struct waiter *w) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&w->called, &monotonic);
  pthread_condattr_destroy(&monotonic);
  w->next = NULL;
  w->key = NULL;
  w->has_turn = 0;
}

static void await(struct waiter *w) {
  while (!w->has_turn) {
    if (w != first) {
      pthread_cond_wait(&w->called, &lock);
      continue;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LONG_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    if (pthread_cond_timedwait(&w->called, &lock, &until) == ETIMEDOUT)
      __atomic_store_n(&_cyc_turn_asked, 1, __ATOMIC_RELAXED);
  }
  pthread_cond_destroy(&w->called);
}

void _cyc_turn_begin(void) {
  if (has_turn)
    return;
  int error = errno;
  pthread_mutex_lock(&lock);
  if (taken) {
    struct waiter me;
    prepare(&me);
    enqueue(&me);
    await(&me);
  }
  taken = has_turn = 1;
  pthread_mutex_unlock(&lock);
  errno = error;
}

void _cyc_turn_end(void) {
  if (!has_turn)
    return;
  int error = errno;
  has_turn = 0;
  pthread_mutex_lock(&lock);
  hand_on();
  pthread_mutex_unlock(&lock);
  errno = error;
}

void _cyc_turn_pass(void) {
  if (!has_turn)
    return;
  int error = errno;
  pthread_mutex_lock(&lock);
  if (first) {
    struct waiter me;
    prepare(&me);
    enqueue(&me);
    hand_on();
    await(&me);
  } else {
    __atomic_store_n(&_cyc_turn_asked, 0, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&lock);
  errno = error;
}

void _cyc_park(const void *key) {
  struct waiter me;
  prepare(&me);
  me.key = key;
  pthread_mutex_lock(&lock);
  struct waiter **end = &parked;
  while (*end)
    end = &(*end)->next;
  *end = &me;
  hand_on();
  await(&me);
  pthread_mutex_unlock(&lock);
}

void _cyc_unpark(const void *key, enum _cyc_parked which) {
  pthread_mutex_lock(&lock);
  for (struct waiter **at = &parked; *at;) {
    struct waiter *w = *at;
    if (w->key != key) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    enqueue(w);
    pthread_cond_signal(&w->called);
    if (which == _CYC_ONE)
      break;
  }
  pthread_mutex_unlock(&lock);
}

/* A child of fork has one thread, the one that called it. */
static void alone(void) {
  pthread_mutex_init(&lock, NULL);
  first = parked = NULL;
  last = &first;
  taken = has_turn;
  _cyc_turn_asked = 0;
}

void _cyc_first_turn(void) {
  pthread_atfork(NULL, NULL, alone);
  _cyc_turn_begin();
}

#endif
