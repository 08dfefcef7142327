/* Objects that are freed singly: unique and counted ones, in the heap and in regions. */
#include "internal.h"

struct _cyc_region _cyc_counted_region;

void *_cyc_rqmalloc(struct _cyc_region *r, _cyc_aqual q, _cyc_size bytes) {
  if (!r || r == &_cyc_counted_region)
    return q == _cyc_refcnt ? counted_in_heap(bytes) : _cyc_malloc(bytes);
  if (q == _cyc_aliasable)
    return _cyc_rmalloc(r, bytes);
  void *object = reap_allocate(r, bytes);
  header_of(object)->mark = q == _cyc_refcnt ? 1 : (_cyc_size)r;
  return object;
}

void *_cyc_rqcalloc(struct _cyc_region *r, _cyc_aqual q, _cyc_size bytes) {
  if (!r && q != _cyc_refcnt)
    return _cyc_calloc(bytes);
  return __builtin_memset(_cyc_rqmalloc(r, q, bytes), 0, bytes);
}

/* core.h. Counted pointers come as fat ones, and may have been moved: the count lies before `base`. */

void Cyc_Core_rufree(struct _cyc_region *r, void *object);
void Cyc_Core_rufree(struct _cyc_region *r, void *object) {
  if (!object)
    return;
  if (!r) {
    _cyc_free(object);
  } else if (header_of(object)->mark == (_cyc_size)r) {
    header_of(object)->mark = 0;
    reap_free(r, object);
  }
}

int Cyc_Core_refptr_count(struct _cyc_fat f);
int Cyc_Core_refptr_count(struct _cyc_fat f) { return f.base ? (int)header_of(f.base)->mark : 0; }

struct _cyc_fat Cyc_Core_alias_refptr(struct _cyc_fat f);
struct _cyc_fat Cyc_Core_alias_refptr(struct _cyc_fat f) {
  if (f.base)
    count_up(header_of(f.base));
  return f;
}

struct _cyc_fat Cyc_Core_inc_refptr(struct _cyc_fat f);
struct _cyc_fat Cyc_Core_inc_refptr(struct _cyc_fat f) { return Cyc_Core_alias_refptr(f); }

void Cyc_Core_drop_refptr(struct _cyc_fat f);
void Cyc_Core_drop_refptr(struct _cyc_fat f) { drop_in_heap(f.base); }

void Cyc_Core_rdrop_refptr(struct _cyc_region *r, struct _cyc_fat f);
void Cyc_Core_rdrop_refptr(struct _cyc_region *r, struct _cyc_fat f) {
  if (!r)
    drop_in_heap(f.base);
  else if (f.base && count_down(header_of(f.base)) == 0)
    reap_free(r, f.base);
}
