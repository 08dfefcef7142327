#include "check.h"

struct cell {
  struct cell *next;
  long value[3];
};

/* More than the collector's first heap, with some of it kept by pointers in the middle of objects only. */
static void what_is_reachable_stays(void) {
  struct cell *list = NULL;
  for (long i = 0; i < 200000; i++) {
    struct cell *cell = _cyc_malloc(sizeof *cell);
    cell->next = NULL;
    cell->value[0] = i;
    if (i % 100 == 0) {
      cell->next = list;
      list = cell;
    } else {
      _cyc_free(cell);
    }
  }
  long expected = 199900;
  for (struct cell *cell = list, *next; cell; cell = next, expected -= 100) {
    CHECK(cell->value[0] == expected);
    next = cell->next;
    _cyc_free(cell);
  }
  CHECK(expected == -100);
}

static void objects_keep_their_contents_when_their_size_changes(void) {
  static const _cyc_size sizes[] = {64, 64, 48, 4096, 4096, 100, 160, 16, 15, 4000};
  unsigned char *object = _cyc_malloc_atomic(64);
  memset(object, 7, 64);
  _cyc_size before = 64;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    object = _cyc_realloc(object, sizes[i]);
    for (_cyc_size j = 0; j < before && j < sizes[i]; j++)
      CHECK(object[j] == 7);
    memset(object, 7, before = sizes[i]);
  }
  _cyc_free(object);
}

/* Neighbours of all small sizes, written to their last byte. */
static void objects_are_as_large_as_asked_for(void) {
  enum { N = 400 };
  unsigned char *objects[N];
  for (int i = 0; i < N; i++)
    memset(objects[i] = i % 2 ? _cyc_malloc(i) : _cyc_malloc_atomic(i), i & 255, i);
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++)
      CHECK(objects[i][j] == (i & 255));
    _cyc_free(objects[i]);
  }
}

enum { LISTS = 40, LENGTH = 200 };

/* A list whose cells have their link in their last word. */
static void **linked_at_the_end(_cyc_size words) {
  void **list = NULL;
  for (_cyc_word i = 0; i < LENGTH; i++) {
    void **cell = _cyc_malloc(words * sizeof *cell);
    if (words > 1)
      cell[0] = (void *)(i << 1 | 1);
    cell[words - 1] = list;
    list = cell;
  }
  return list;
}

static void **lists[LISTS];

/* Objects of all small sizes, reached through each other's last words only, outlive many collections. */
static void what_last_words_point_to_stays(void) {
  for (_cyc_size words = 1; words < LISTS; words++)
    lists[words] = linked_at_the_end(words);
#ifndef _CYC_NO_GC
  for (int i = 0; i < 20000; i++) {
    memset(_cyc_malloc_atomic(5000), 255, 5000);
    memset(_cyc_malloc((_cyc_size)i % 400), 255, (_cyc_size)i % 400);
  }
#endif
  for (_cyc_size words = 1; words < LISTS; words++) {
    void **cell = lists[words];
    for (_cyc_word i = LENGTH - 1; i >= 0; i--) {
      CHECK(words == 1 || cell[0] == (void *)(i << 1 | 1));
      void **next = cell[words - 1];
      _cyc_free(cell);
      cell = next;
    }
    CHECK(!cell);
    lists[words] = NULL;
  }
}

/* Also where the memory was in use before. */
static void zeroed_objects_are_zero(void) {
  static const _cyc_size sizes[] = {1, 5000, 1 << 20, (4 << 20) - 1, 4 << 20, (4 << 20) + 12345, 9 << 20};
  for (int round = 0; round < 3; round++)
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      unsigned char *object = _cyc_calloc_atomic(sizes[i]);
      CHECK(!object[0] && !memcmp(object, object + 1, sizes[i] - 1));
      memset(object, 255, sizes[i]);
      _cyc_free(object);
    }
}

void heap(void) {
  zeroed_objects_are_zero();
  what_last_words_point_to_stays();
  objects_keep_their_contents_when_their_size_changes();
  objects_are_as_large_as_asked_for();
  what_is_reachable_stays();
  void *plain = _cyc_malloc(1), *counted = _cyc_rqmalloc(NULL, _cyc_refcnt, 1), *none = _cyc_malloc(0);
  CHECK((_cyc_size)plain % 16 == 0 && (_cyc_size)counted % 16 == 0 && none);
  Cyc_Core_ufree(plain);
  Cyc_Core_drop_refptr(_cyc_fat_make(counted, 1));
  Cyc_Core_ufree(none);
  char *zeroed = _cyc_calloc_atomic(5000);
  for (int i = 0; i < 5000; i++)
    CHECK(!zeroed[i]);
  zeroed[0] = 'z';
  zeroed = _cyc_realloc(zeroed, 50000);
  CHECK(zeroed[0] == 'z');
  _cyc_free(zeroed);
  _cyc_free(NULL);
  volatile _cyc_size huge = ~(_cyc_size)0;
  CHECK_THROWS("Bad_alloc", _cyc_malloc(huge));
  CHECK_THROWS("Bad_alloc", _cyc_malloc_atomic(huge / 2));
  CHECK_THROWS("Bad_alloc", _cyc_calloc(huge / 2 - 8));
  CHECK_THROWS("Bad_alloc", _cyc_rqmalloc(NULL, _cyc_refcnt, huge));
  CHECK_THROWS("Bad_alloc", _cyc_rc_malloc_atomic(huge - 8));
  CHECK_THROWS("Bad_alloc", _cyc_bytes(huge, 2));
  CHECK_THROWS("Bad_alloc", _cyc_bytes(huge / 2 + 1, 1));
  CHECK_GIVES(24, _cyc_bytes(3, 8));
}
