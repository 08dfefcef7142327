#include "check.h"

struct three_words {
  void *a, *b, *c;
};

/* Elements whose size is no power of two: stepping around the address space must not arrive between two of them. */
static void steps_that_overflow(void) {
  struct three_words array[4] = {{0}};
  struct _cyc_fat f = _cyc_fat_make(array, sizeof array);
  _cyc_index wraps = (_cyc_index)(((_cyc_size)1 << 63) / 12); /* 24 times this is 2^64 less 16 */
  CHECK_GIVES(&array[3], _cyc_fat_at(f, sizeof *array, 3));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(f, sizeof *array, wraps + 1));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(f, sizeof *array, -wraps));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(f, sizeof *array, __PTRDIFF_MAX__));
  struct _cyc_fat g = f;
  for (int i = 0; i < 5; i++)
    _cyc_fat_add(&g, sizeof *array, wraps / 4);
  CHECK(g.curr == NULL && g.last == NULL);
  /* Far outside and back is allowed. */
  g = f;
  _cyc_fat_add(&g, sizeof *array, 1l << 40);
  CHECK_THROWS("Array_bounds", _cyc_fat_at(g, sizeof *array, 0));
  _cyc_fat_add(&g, sizeof *array, -(1l << 40) + 2);
  CHECK_GIVES(&array[2], _cyc_fat_at(g, sizeof *array, 0));
}

void fat_pointers(void) {
  int array[5] = {10, 11, 12, 13, 14};
  struct _cyc_fat f = _cyc_fat_make(array, sizeof array), null = _cyc_fat_make(NULL, sizeof array);

  CHECK_GIVES(&array[4], _cyc_fat_at(f, sizeof(int), 4));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(f, sizeof(int), 5));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(f, sizeof(int), -1));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(null, sizeof(int), 0));
  CHECK_THROWS("Array_bounds", _cyc_fat_at(f, sizeof(int), (unsigned)-1));
  CHECK_GIVES(&array[1], _cyc_fat_at(f, sizeof(int), (_cyc_size)1 << 62 | 1));

  CHECK(_cyc_fat_count(f, sizeof(int)) == 5 && _cyc_fat_count(null, sizeof(int)) == 0);
  struct _cyc_fat end = _cyc_fat_plus(f, sizeof(int), 5), before = _cyc_fat_plus(f, sizeof(int), -1);
  CHECK(_cyc_fat_count(end, sizeof(int)) == 0 && _cyc_fat_count(before, sizeof(int)) == 0);
  CHECK(_cyc_fat_count(_cyc_fat_plus(f, sizeof(int), 2), sizeof(int)) == 3);
  CHECK(_cyc_fat_minus(end, before, sizeof(int)) == 6 && _cyc_fat_minus(before, end, sizeof(int)) == -6);
  CHECK_GIVES(&array[0], _cyc_fat_at(before, sizeof(int), 1));

  struct _cyc_fat moving = f;
  CHECK(_cyc_fat_post_add(&moving, sizeof(int), 1).curr == f.curr);
  CHECK(*(int *)moving.curr == 11);
  CHECK(_cyc_fat_add(&moving, sizeof(int), -1).curr == f.curr);

  CHECK_GIVES(array, _cyc_fat_thin(f, sizeof(int), 5));
  CHECK_GIVES(NULL, _cyc_fat_thin(null, sizeof(int), 5));
  CHECK_GIVES(array + 5, _cyc_fat_thin(end, sizeof(int), 0));
  CHECK_THROWS("Array_bounds", _cyc_fat_thin(f, sizeof(int), 6));
  CHECK_THROWS("Array_bounds", _cyc_fat_thin(end, sizeof(int), 1));
  CHECK_THROWS("Array_bounds", _cyc_fat_thin(before, sizeof(int), 1));

  CHECK(_cyc_fat_count(_cyc_fat_shrink(f, sizeof(int), 2), sizeof(int)) == 3);
  CHECK(_cyc_fat_count(_cyc_fat_shrink(f, sizeof(int), 9), sizeof(int)) == 0);
  CHECK(_cyc_fat_shrink(null, sizeof(int), 1).last == NULL);

  int *p = array, *volatile none = NULL;
  CHECK_GIVES(array, _cyc_nonnull(p));
  CHECK_THROWS("Null_Exception", _cyc_nonnull(none));
  CHECK_GIVES(4, _cyc_below(4, 5));
  CHECK_THROWS("Array_bounds", _cyc_below(5, 5));
  CHECK_THROWS("Array_bounds", _cyc_below(-1, 5));

  steps_that_overflow();

  struct { char c[11]; } x = {"first half"}, y = {"other half"};
  _cyc_swap(&x, &y, sizeof x);
  CHECK(!strcmp(x.c, "other half") && !strcmp(y.c, "first half"));
  _cyc_swap(&x, &x, sizeof x);
  CHECK(!strcmp(x.c, "other half"));
}
