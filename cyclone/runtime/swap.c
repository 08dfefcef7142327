/* Swaps between threads. A swap exchanges two places, of any size and possibly one inside the other's owner, so no atomic
   instruction does it; one lock for all swaps of the program does. It is held for a few instructions. */
#include "internal.h"
#include <sched.h>

static int lock;

void _cyc_swap_locked(void *a, void *b, _cyc_size size) {
  for (unsigned spins = 0; __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE); spins++)
    while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
      /* Its holder may have been preempted. */
      if (++spins > 100)
        sched_yield();
  _cyc_swap_unlocked(a, b, size);
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}
