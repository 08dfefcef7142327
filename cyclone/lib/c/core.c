/* Between thin pointers with a bound known at run time and fat pointers. */
#include "native.h"

struct _cyc_fat Cyc_Core_mkfat(void *array, unsigned long size, unsigned long count) {
  return _cyc_fat_make(array, _cyc_bytes(count, size));
}

void *Cyc_Core_arrcast(struct _cyc_fat array, unsigned long count, unsigned long size) {
  return _cyc_fat_count(array, size) >= count ? array.curr : NULL;
}

struct Cyc_Core_ThinRes {
  void *array;
  unsigned long count;
};

struct Cyc_Core_ThinRes Cyc_Core_mkthin(struct _cyc_fat array, unsigned long size) {
  return (struct Cyc_Core_ThinRes){array.curr, _cyc_fat_count(array, size)};
}

unsigned Cyc_Core_arr_prevsize(struct _cyc_fat array, unsigned long size) {
  return _cyc_fat_count(array, size) ? (unsigned)((size_t)(array.curr - array.base) / size) : 0;
}
