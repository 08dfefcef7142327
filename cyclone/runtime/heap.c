/* The heap region: the Boehm collector's heap, or with _CYC_NO_GC malloc's. */
#include "internal.h"
#include <string.h>

#define MAX_BYTES ((_cyc_size)__PTRDIFF_MAX__ - 4096)

#ifdef _CYC_NO_GC

#include <stdlib.h>

/* malloc(0) may be null, which here would mean that there is no memory. */
#define heap_malloc(bytes) malloc((bytes) ? (bytes) : 1)
#define heap_malloc_atomic heap_malloc
#define heap_calloc(bytes) calloc((bytes) ? (bytes) : 1, 1)
#define heap_calloc_atomic heap_calloc
#define heap_realloc(p, bytes) realloc((p), (bytes) ? (bytes) : 1)
#define heap_free free

void *page_memory(_cyc_size bytes, enum page_memory kind) {
  (void)kind;
  return malloc(bytes);
}

#else

#ifdef _CYC_THREADS
#define GC_THREADS
#endif
#include <gc.h>

/* Memory with pointers comes zeroed from the collector, other memory does not. */
#define heap_malloc GC_malloc
#define heap_malloc_atomic GC_malloc_atomic
#define heap_calloc GC_malloc
#define heap_realloc GC_realloc
#define heap_free GC_free

static inline void *heap_calloc_atomic(_cyc_size bytes) {
  void *p = GC_malloc_atomic(bytes);
  return p ? memset(p, 0, bytes) : p;
}

void *page_memory(_cyc_size bytes, enum page_memory kind) {
  return kind == PAGE_KEPT ? GC_malloc_uncollectable(bytes) : GC_malloc(bytes);
}

#endif

#define OR_THROW(bytes, allocation)                      \
  {                                                      \
    void *p = (bytes) > MAX_BYTES ? NULL : (allocation); \
    if (_cyc_unlikely(!p))                               \
      _cyc_throw_alloc();                                \
    return p;                                            \
  }

void *_cyc_malloc(_cyc_size bytes) OR_THROW(bytes, heap_malloc(bytes))
void *_cyc_malloc_atomic(_cyc_size bytes) OR_THROW(bytes, heap_malloc_atomic(bytes))
void *_cyc_calloc(_cyc_size bytes) OR_THROW(bytes, heap_calloc(bytes))
void *_cyc_calloc_atomic(_cyc_size bytes) OR_THROW(bytes, heap_calloc_atomic(bytes))
void *_cyc_realloc(void *old, _cyc_size bytes) OR_THROW(bytes, heap_realloc(old, bytes))
void _cyc_free(void *p) { heap_free(p); }

/* Counted objects of the heap: the header keeps the object aligned to 16. */

static void *start_counting(struct header *h) {
  h->size = 0;
  h->mark = 1;
  return h + 1;
}

void *counted_in_heap(_cyc_size bytes) {
  return start_counting(_cyc_malloc(_cyc_bytes(bytes, 1) + sizeof(struct header)));
}

void *_cyc_rc_malloc_atomic(_cyc_size bytes) {
  return start_counting(_cyc_malloc_atomic(_cyc_bytes(bytes, 1) + sizeof(struct header)));
}

void drop_in_heap(void *object) {
  if (object && count_down(header_of(object)) == 0)
    heap_free(header_of(object));
}

/* core.h */

void Cyc_Core_ufree(void *object);
void Cyc_Core_ufree(void *object) { heap_free(object); }

struct _cyc_region *Cyc_Core_heap_region;
_cyc_aqual Cyc_Core_aliasable_qual = _cyc_aliasable;
_cyc_aqual Cyc_Core_unique_qual = _cyc_unique;
_cyc_aqual Cyc_Core_refcnt_qual = _cyc_refcnt;
