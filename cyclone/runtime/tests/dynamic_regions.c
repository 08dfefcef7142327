#include "check.h"

static void *push_number(struct _cyc_region *r, void *list) {
  void **cell = _cyc_rmalloc(r, 2 * sizeof *cell);
  cell[0] = list;
  cell[1] = r;
  return cell;
}

void dynamic_regions(void) {
  struct Cyc_Core_DynamicRegion *key = Cyc_Core__new_ukey(0, "", "", 0).key;
  void *list = NULL;
  for (int i = 0; i < 5000; i++)
    list = Cyc_Core_open_region(key, list, push_number);
  int length = 0;
  for (void **cell = list; cell; cell = cell[0], length++)
    CHECK(cell[1] == _cyc_region_of(key));
  CHECK(length == 5000);
  struct _cyc_fat counted = _cyc_fat_make(_cyc_rqmalloc(NULL, _cyc_refcnt, 8), 8);
  Cyc_Core_autorelease_handle(_cyc_region_of(key), Cyc_Core_alias_refptr(counted));
  Cyc_Core_free_ukey(key);
  CHECK(Cyc_Core_refptr_count(counted) == 1);

  key = Cyc_Core__new_rckey(0, "", "", 0).key;
  Cyc_Core_autorelease_handle(_cyc_region_of(key), Cyc_Core_alias_refptr(counted));
  struct _cyc_fat second = Cyc_Core_alias_refptr(_cyc_fat_make(key, sizeof(struct _cyc_region)));
  CHECK(Cyc_Core_refptr_count(second) == 2);
  Cyc_Core_free_rckey(key);
  CHECK(Cyc_Core_refptr_count(second) == 1 && Cyc_Core_refptr_count(counted) == 2);
  Cyc_Core_free_rckey((struct Cyc_Core_DynamicRegion *)second.curr);
  CHECK(Cyc_Core_refptr_count(counted) == 1);
  Cyc_Core_drop_refptr(counted);
}
