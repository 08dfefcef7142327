#include "check.h"

static void freed_objects_are_used_again(void) {
  struct _cyc_region r;
  _cyc_region_push(&r);
  for (_cyc_size size = 0; size < 100000; size += size < 600 ? 8 : size / 3) {
    char *first = _cyc_rqmalloc(&r, _cyc_unique, size);
    memset(first, 1, size);
    CHECK((_cyc_size)first % 16 == 0);
    Cyc_Core_rufree(&r, first);
    int used = region_used_bytes(&r);
    for (int i = 0; i < 50; i++) {
      char *again = _cyc_rqcalloc(&r, _cyc_unique, size);
      for (_cyc_size j = 0; j < size; j++)
        CHECK(!again[j]);
      memset(again, 2, size);
      Cyc_Core_rufree(&r, again);
      CHECK(region_used_bytes(&r) <= used + 100100);
    }
  }
  CHECK(region_used_bytes(&r) < 1000000);
  _cyc_region_pop(&r);
}

/* Large objects lie on pages of their own. Freed in any order, small allocations going on between. */
static void large_objects_come_and_go(void) {
  struct _cyc_region r;
  _cyc_region_push(&r);
  char *large[8];
  for (int i = 0; i < 8; i++)
    large[i] = _cyc_rqmalloc(&r, i & 1 ? _cyc_refcnt : _cyc_unique, 30000);
  static const int order[8] = {7, 0, 3, 4, 1, 6, 2, 5};
  for (int i = 0; i < 8; i++) {
    memset(large[order[i]], i, 30000);
    if (order[i] & 1)
      Cyc_Core_rdrop_refptr(&r, _cyc_fat_make(large[order[i]], 30000));
    else
      Cyc_Core_rufree(&r, large[order[i]]);
    memset(_cyc_rmalloc(&r, 300), i, 300);
    CHECK(region_used_bytes(&r) >= region_alloc_bytes(&r));
  }
  CHECK(region_used_bytes(&r) < 30000);
  char *last = _cyc_rqmalloc(&r, _cyc_unique, 30000);
  last[29999] = 1;
  _cyc_region_pop(&r);
}

/* The pages of two large objects, and nothing else; the newer in the list goes first. */
static void a_region_goes_on_after_its_newest_page_was_freed(void) {
  struct _cyc_region r;
  _cyc_region_push(&r);
  char *first = _cyc_rqmalloc(&r, _cyc_unique, 30000), *second = _cyc_rqmalloc(&r, _cyc_unique, 40000);
  Cyc_Core_rufree(&r, first);
  CHECK(region_alloc_bytes(&r) >= 40000 && region_free_bytes(&r) == 0);
  memset(_cyc_rmalloc(&r, 100), 1, 100);
  memset(second, 2, 40000);
  CHECK(region_alloc_bytes(&r) >= 40100 && region_used_bytes(&r) >= region_alloc_bytes(&r));
  Cyc_Core_rufree(&r, second);
  CHECK(region_alloc_bytes(&r) >= 100 && region_used_bytes(&r) < 30000);
  _cyc_region_pop(&r);
}

static void only_what_the_region_gave_is_freed(void) {
  struct _cyc_region r, s;
  _cyc_region_push(&r);
  _cyc_region_push(&s);
  char *object = _cyc_rqmalloc(&r, _cyc_unique, 32);
  Cyc_Core_rufree(&s, object);
  CHECK(_cyc_rqmalloc(&s, _cyc_unique, 32) != object);
  Cyc_Core_rufree(&r, object);
  Cyc_Core_rufree(&r, object);
  Cyc_Core_rufree(&r, NULL);
  CHECK(_cyc_rqmalloc(&r, _cyc_refcnt, 30) == object);
  CHECK(_cyc_rqmalloc(&r, _cyc_refcnt, 30) != object);
  _cyc_region_pop(&s);
  _cyc_region_pop(&r);
}

static void counts_go_up_and_down(struct _cyc_region *r) {
  struct _cyc_fat f = _cyc_fat_make(_cyc_rqmalloc(r, _cyc_refcnt, 40), 40);
  CHECK(Cyc_Core_refptr_count(f) == 1);
  struct _cyc_fat g = Cyc_Core_alias_refptr(_cyc_fat_plus(f, 8, 2));
  CHECK(g.curr == f.curr + 16 && Cyc_Core_refptr_count(f) == 2);
  Cyc_Core_rdrop_refptr(r, f);
  CHECK(Cyc_Core_refptr_count(g) == 1);
  Cyc_Core_rdrop_refptr(r, g);
  CHECK(Cyc_Core_refptr_count(_cyc_fat_null) == 0);
  CHECK(!Cyc_Core_alias_refptr(_cyc_fat_null).curr);
  Cyc_Core_drop_refptr(_cyc_fat_null);
}

/* Objects of all small sizes that take the place of counted ones, written to their last byte. Without a collector only so many
   freed objects wait for the next of their size: those of other tests are taken first. */
static void what_takes_the_place_of_counted_objects_has_room(void) {
  enum { N = 400, OTHERS = 10000 };
  static void *others[OTHERS];
  struct _cyc_fat counted[N];
  unsigned char *objects[N];
  for (int i = 0; i < OTHERS; i++)
    others[i] = _cyc_malloc(32);
  for (int i = 0; i < N; i++)
    counted[i] = _cyc_fat_make(_cyc_rqmalloc(NULL, _cyc_refcnt, i), i);
  for (int i = 0; i < N; i++)
    Cyc_Core_drop_refptr(counted[i]);
  for (int i = 0; i < N; i++)
    memset(objects[i] = _cyc_malloc(i), i & 255, i);
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++)
      CHECK(objects[i][j] == (i & 255));
    _cyc_free(objects[i]);
  }
  for (int i = 0; i < OTHERS; i++)
    _cyc_free(others[i]);
}

static void a_region_drops_what_is_left_to_it(void) {
  struct _cyc_fat f = _cyc_fat_make(_cyc_rc_malloc_atomic(16), 16);
  struct _cyc_region r;
  _cyc_region_push(&r);
  for (int i = 0; i < 100; i++)
    CHECK(Cyc_Core_autorelease_handle(&r, Cyc_Core_alias_refptr(f)).curr == f.curr);
  CHECK(Cyc_Core_refptr_count(f) == 101);
  _cyc_region_pop(&r);
  CHECK(Cyc_Core_refptr_count(f) == 1);
  Cyc_Core_drop_refptr(f);
}

void single_objects(void) {
  freed_objects_are_used_again();
  large_objects_come_and_go();
  a_region_goes_on_after_its_newest_page_was_freed();
  only_what_the_region_gave_is_freed();
  counts_go_up_and_down(NULL);
  struct _cyc_region r;
  _cyc_region_push(&r);
  counts_go_up_and_down(&r);
  _cyc_region_pop(&r);
  what_takes_the_place_of_counted_objects_has_room();
  a_region_drops_what_is_left_to_it();
}
