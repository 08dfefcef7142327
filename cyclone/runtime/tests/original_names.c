#include "check.h"
#include "../cyc_original.h"

/* C as programs for the original compiler have it. */
static struct _fat_ptr halves(int *numbers, unsigned count) {
  struct _fat_ptr f;
  f.base = f.curr = (unsigned char *)numbers;
  f.last_plus_one = f.base + count / 2 * sizeof *numbers;
  return f;
}

void original_names(void) {
  int *numbers = _cyccalloc_atomic(10, sizeof *numbers);
  struct _fat_ptr f = halves(numbers, 10);
  CHECK(_get_fat_size(f, sizeof *numbers) == 5);
  CHECK_THROWS("Array_bounds", _check_fat_subscript(f, sizeof *numbers, 5));
  CHECK(_get_fat_size(_tag_fat(numbers, sizeof *numbers, 10), sizeof *numbers) == 10);
  CHECK_THROWS("Null_Exception", _check_null((char *)NULL));
  _cyc_free(numbers);
}
