#include "check.h"

static void store(char *p, int known, int index, char value) {
  char *slot = _cyc_zero_at(p, 1, known, index);
  *slot = _cyc_zero_keep(slot, value, index, known);
}

static void store_fat(struct _cyc_fat f, int index, char value) {
  char *slot = _cyc_fat_at(f, 1, index);
  *slot = _cyc_fat_keep(slot, value, f);
}

void zero_terminated(void) {
  char text[] = "abc";
  CHECK(_cyc_zero_count(text, 1, 1) == 4 && _cyc_zero_count("", 1, 1) == 1 && _cyc_zero_count(NULL, 1, 1) == 0);
  CHECK(_cyc_zero_count("a\0b", 1, 3) == 4);
  CHECK_GIVES(text + 3, _cyc_zero_at(text, 1, 1, 3));
  CHECK_THROWS("Array_bounds", _cyc_zero_at(text, 1, 1, 4));
  CHECK_THROWS("Array_bounds", _cyc_zero_at(text, 1, 1, -1));
  CHECK_THROWS("Array_bounds", _cyc_zero_at(text, 1, 1, -__PTRDIFF_MAX__ - 1));
  CHECK_THROWS("Null_Exception", _cyc_zero_at(NULL, 1, 1, 0));

  CHECK_THROWS("nothing", store(text, 1, 2, 'C'));
  CHECK_THROWS("nothing", store(text, 1, 3, 0));
  CHECK_THROWS("Array_bounds", store(text, 1, 3, 'd'));
  CHECK(!strcmp(text, "abC"));
  /* What the type promises may be written, zero or not, but for its last element. */
  char known[6] = {0};
  CHECK_THROWS("nothing", store(known, 5, 3, 'x'));
  CHECK_THROWS("Array_bounds", store(known, 5, 4, 'x'));
  CHECK(known[3] == 'x' && !known[4]);
  CHECK_THROWS("nothing", store(text, 1, 1, 0));
  CHECK_THROWS("Array_bounds", store(text, 1, 2, 'c'));

  char more[] = "wxyz";
  struct _cyc_fat f = _cyc_zero_fat(more, 1, 1);
  CHECK(_cyc_fat_count(f, 1) == 5);
  CHECK_THROWS("nothing", store_fat(f, 1, 0));
  CHECK_THROWS("nothing", store_fat(f, 1, 'X'));
  CHECK_THROWS("Array_bounds", store_fat(f, 4, '!'));
  CHECK_THROWS("nothing", store_fat(f, 4, 0));
  CHECK_THROWS("Array_bounds", store_fat(f, 5, 0));
  CHECK(!strcmp(more, "wXyz"));
  CHECK(_cyc_zero_fat(NULL, 1, 1).base == NULL);

  short shorts[] = {1, 256, 0};
  int ints[] = {1, 1 << 24, 0};
  void *pointers[] = {shorts, ints, NULL};
  long double longs[] = {1, 2, 0};
  CHECK(_cyc_zero_count(shorts, sizeof *shorts, 1) == 3 && _cyc_zero_count(ints, sizeof *ints, 1) == 3);
  CHECK(_cyc_zero_count(pointers, sizeof *pointers, 1) == 3);
  memset(&longs[2], 0, sizeof longs[2]);
  CHECK(_cyc_zero_count(longs, sizeof *longs, 1) == 3);
  CHECK_GIVES(pointers + 2, _cyc_zero_at(pointers, sizeof *pointers, 1, 2));
  CHECK_THROWS("Array_bounds", _cyc_zero_at(pointers, sizeof *pointers, 1, 3));
}
