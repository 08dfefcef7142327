#include "check.h"

static void objects_are_apart_and_aligned(void) {
  struct _cyc_region r;
  _cyc_region_push(&r);
  enum { N = 3000 };
  unsigned char *objects[N];
  _cyc_size sizes[N], total = 0;
  for (int i = 0; i < N; i++) {
    sizes[i] = i % 500 == 499 ? 40000 + (unsigned)i : 1 + (unsigned)(i * 7) % 90;
    total += sizes[i];
    objects[i] = _cyc_rmalloc(&r, sizes[i]);
    CHECK((_cyc_size)objects[i] % (sizes[i] % 16 ? 8 : 16) == 0);
    memset(objects[i], i & 255, sizes[i]);
  }
  for (int i = 0; i < N; i++)
    for (_cyc_size j = 0; j < sizes[i]; j++)
      CHECK(objects[i][j] == (i & 255));
  CHECK((_cyc_size)region_alloc_bytes(&r) >= total);
  CHECK(region_used_bytes(&r) >= region_alloc_bytes(&r) + region_free_bytes(&r));
  CHECK(_cyc_rmalloc(&r, 0) != NULL);
  _cyc_region_pop(&r);
  CHECK(!Cyc_Core_current_handle());
}

static void zeroed_memory_is_zero_when_pages_are_used_again(void) {
  for (int round = 0; round < 20; round++) {
    struct _cyc_region r;
    _cyc_region_push(&r);
    for (int i = 0; i < 40; i++) {
      unsigned char *p = _cyc_rcalloc(&r, 100);
      for (int j = 0; j < 100; j++)
        CHECK(!p[j]);
      memset(p, 255, 100);
    }
    _cyc_region_pop(&r);
  }
}

static void the_heap_is_a_region(void) {
  CHECK(Cyc_Core_heap_region == NULL);
  char *p = _cyc_rmalloc(NULL, 10), *q = _cyc_rcalloc(NULL, 10);
  CHECK(p && q && !q[9]);
  Cyc_Core_ufree(p);
  Cyc_Core_rufree(NULL, q);
  CHECK(region_used_bytes(NULL) == 0);
}

static __attribute__((noinline)) int nest(int depth) {
  struct _cyc_region r;
  _cyc_region_push(&r);
  int *value = _cyc_rmalloc(&r, sizeof *value);
  *value = depth;
  int sum = (depth ? nest(depth - 1) : 0) + *value;
  CHECK(Cyc_Core_current_handle() == &r);
  _cyc_region_pop(&r);
  return sum;
}

void regions(void) {
  objects_are_apart_and_aligned();
  zeroed_memory_is_zero_when_pages_are_used_again();
  the_heap_is_a_region();
  CHECK(nest(1000) == 500500);
  volatile _cyc_size huge = ~(_cyc_size)0;
  struct _cyc_region r;
  _cyc_region_push(&r);
  CHECK_THROWS("Bad_alloc", _cyc_rmalloc(&r, huge));
  CHECK_THROWS("Bad_alloc", _cyc_rmalloc(&r, huge / 2));
  CHECK_THROWS("Bad_alloc", _cyc_rqmalloc(&r, _cyc_unique, huge - 4));
  _cyc_region_pop(&r);
}
