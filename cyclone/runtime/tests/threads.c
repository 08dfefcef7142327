#include "check.h"

#ifdef _CYC_THREADS
#include <pthread.h>

/* pthread.h was not read before the names were redirected to the collector's. */
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);

enum { THREADS = 4, ROUNDS = 20000 };

static struct _cyc_fat shared_fat, shared_counted;
static int texts[THREADS + 1][8];
static int arrived, left;

/* Each thread owns one array at any time and swaps it for the shared one: no array is ever owned twice or torn. */
static void *swap_arrays(void *number) {
  struct _cyc_fat mine = _cyc_fat_make(texts[(_cyc_word)number], sizeof texts[0]);
  _cyc_turn_begin();
  /* The last one calls the others. */
  if (++arrived == THREADS)
    _cyc_unpark(&arrived, _CYC_ALL);
  else
    _cyc_park(&arrived);
  CHECK(arrived == THREADS);
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(_cyc_fat_count(mine, sizeof(int)) == 8);
    int *a = _cyc_fat_at(mine, sizeof(int), 0);
    for (int j = 0; j < 8; j++)
      a[j]++;
    _cyc_swap(&mine, &shared_fat, sizeof mine);
    struct _cyc_fat alias = Cyc_Core_alias_refptr(shared_counted);
    struct _cyc_handler h;
    struct _cyc_region r;
    if (_cyc_try(&h) == 0) {
      _cyc_region_push(&r);
      memset(_cyc_rmalloc(&r, 64), 1, 64);
      _cyc_throw_match();
    } else {
      Cyc_Core_drop_refptr(alias);
    }
    _cyc_round();
    if (i % 1000 == 0)
      _cyc_turn_pass();
  }
  left++;
  _cyc_unpark(&left, _CYC_ONE);
  _cyc_turn_end();
  return mine.curr;
}

/* A thread whose rounds never end passes the turn on when it is asked for. */
static void *spin(void *stop) {
  _cyc_turn_begin();
  while (!*(int *)stop)
    _cyc_round();
  _cyc_turn_end();
  return NULL;
}

void threads(void) {
  pthread_t ids[THREADS];
  shared_fat = _cyc_fat_make(texts[THREADS], sizeof texts[0]);
  shared_counted = _cyc_fat_make(_cyc_rqmalloc(NULL, _cyc_refcnt, 8), 8);
  for (_cyc_word i = 0; i < THREADS; i++)
    CHECK(pthread_create(&ids[i], NULL, swap_arrays, (void *)i) == 0);
  while (left < THREADS)
    _cyc_park(&left);
  void *owned[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(ids[i], &owned[i]) == 0);
  CHECK(Cyc_Core_refptr_count(shared_counted) == 1);
  for (int i = 0; i < THREADS; i++) {
    CHECK(owned[i] != shared_fat.curr);
    for (int j = 0; j < i; j++)
      CHECK(owned[i] != owned[j]);
  }
  int sums[8] = {0};
  for (int i = 0; i <= THREADS; i++)
    for (int j = 0; j < 8; j++)
      sums[j] += texts[i][j];
  for (int j = 0; j < 8; j++)
    CHECK(sums[j] == THREADS * ROUNDS);

  int stop = 0;
  CHECK(pthread_create(&ids[0], NULL, spin, &stop) == 0);
  for (int i = 0; i < 3; i++)
    _cyc_turn_pass();
  stop = 1;
  _cyc_turn_end();
  CHECK(pthread_join(ids[0], NULL) == 0);
  _cyc_turn_begin();
}
#else
void threads(void) {}
#endif
