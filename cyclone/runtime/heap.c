/* The heap region: the Boehm collector's heap, or with _CYC_NO_GC malloc's. */
#include "internal.h"
#include <string.h>

#define MAX_BYTES ((_cyc_size)__PTRDIFF_MAX__ - 4096)

#ifdef _CYC_NO_GC

#include <stdlib.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(_CYC_THREADS) || defined(__SANITIZE_ADDRESS__)
/* malloc(0) may be null, which here would mean that there is no memory. */
#define heap_malloc(bytes) malloc((bytes) ? (bytes) : 1)
#define heap_calloc(bytes) calloc((bytes) ? (bytes) : 1, 1)
#define heap_free free
#define heap_free_sized(p, bytes) free(p)
#else
#include <malloc.h>

/* Freed objects of up to 4 KiB wait in a list for the next of their size, which takes a fraction of the time that malloc
   and free take. At most 256 KiB wait in all; more goes back to malloc. (Not where a sanitizer is to see who uses freed memory.)

   Sizes of malloc's objects are 8 more than a multiple of 16, in the C libraries that matter; where they are not, an object
   counts as the next smaller size, which costs speed only. */
#define KEPT_BYTES 262144
#define LARGEST_CLASS 257
static void *freed[LARGEST_CLASS + 1];
static _cyc_size kept;

static inline _cyc_size bytes_of_class(_cyc_size class) { return class * 16 + 8; }
static inline _cyc_size class_for(_cyc_size bytes) { return bytes <= bytes_of_class(1) ? 1 : (bytes + 7) / 16; }

static inline void *heap_malloc(_cyc_size bytes) {
  _cyc_size class = class_for(bytes);
  if (class > LARGEST_CLASS)
    return malloc(bytes);
  void **object = freed[class];
  if (!object)
    return malloc(bytes_of_class(class));
  freed[class] = *object;
  kept -= bytes_of_class(class);
  return object;
}

static inline void keep(void *p, _cyc_size class) {
  *(void **)p = freed[class];
  freed[class] = p;
  kept += bytes_of_class(class);
}

static inline void heap_free(void *p) {
  if (!p)
    return;
  _cyc_size bytes = malloc_usable_size(p), class = (bytes - 8) / 16;
  if (bytes < bytes_of_class(1) || class > LARGEST_CLASS || kept >= KEPT_BYTES)
    free(p);
  else
    keep(p, class);
}

/* The same where it is known how many bytes `heap_malloc` was asked for. */
static inline void heap_free_sized(void *p, _cyc_size bytes) {
  _cyc_size class = class_for(bytes);
  if (class > LARGEST_CLASS || kept >= KEPT_BYTES)
    free(p);
  else
    keep(p, class);
}

static inline void *heap_calloc(_cyc_size bytes) {
  if (bytes > bytes_of_class(LARGEST_CLASS))
    return calloc(bytes, 1);
  void *p = heap_malloc(bytes);
  return p ? memset(p, 0, bytes) : p;
}
#endif

#define heap_malloc_atomic heap_malloc
#define heap_realloc(p, bytes) realloc((p), (bytes) ? (bytes) : 1)
#define heap_calloc_atomic heap_calloc

void *page_memory(_cyc_size bytes, enum page_memory kind) {
  (void)kind;
  return malloc(bytes);
}

#else

#ifdef _CYC_THREADS
#define GC_THREADS
#endif
#include <gc.h>
#include <sys/mman.h>

#define GRANULE ((_cyc_size)16)

#ifdef _CYC_THREADS
#define heap_malloc GC_malloc
#else
#include <gc/gc_inline.h>

/* Small objects that may hold pointers are taken from lists that the collector fills by the page. It sees the lists here, and
   follows the links through the objects, as they are pointers. (So this is not for objects without pointers.)

   An object has at least one byte more than was asked for, as from GC_malloc: so that a pointer just past it keeps it, and
   because the collector takes the last word for padding and does not look into it. */
#define SMALL_GRANULES 16
static void *small[SMALL_GRANULES];

static inline void *heap_malloc(_cyc_size bytes) {
  _cyc_size last_granule = bytes / GRANULE;
  if (last_granule >= SMALL_GRANULES)
    return GC_malloc(bytes);
  void **list = &small[last_granule];
  if (_cyc_unlikely(!*list))
    GC_generic_malloc_many((last_granule + 1) * GRANULE, GC_I_NORMAL, list);
  void **object = *list;
  if (object) {
    *list = *object;
    *object = NULL;
  }
  return object;
}
#endif

/* The byte more is not needed where nothing is looked for, and a pointer just past an object comes with one to its start:
   64 bytes take 64, not 80. */
static inline void *heap_malloc_atomic(_cyc_size bytes) {
  return GC_malloc_atomic(((bytes + (bytes == 0) + GRANULE - 1) & ~(GRANULE - 1)) - 1);
}

/* Memory with pointers comes zeroed from the collector, other memory does not. */
#define heap_calloc heap_malloc
/* It copies as much as is asked for. */
#define heap_realloc(p, bytes) GC_realloc((p), (bytes) + ((bytes) == 0))
#define heap_free GC_free
#define heap_free_sized(p, bytes) GC_free(p)

/* The collector does not say what is fresh from the kernel, and so zero. The pages of a large object are therefore given back
   for new ones, which take memory only when they are used. The collector's heap is private memory without a file. */
#define LARGE ((_cyc_size)4 << 20)
#define LARGEST_PAGE ((_cyc_size)64 << 10)

static void *cleared(unsigned char *object, _cyc_size bytes) {
  if (bytes >= LARGE) {
    _cyc_size before = -(_cyc_size)object % LARGEST_PAGE;
    _cyc_size after = ((_cyc_size)object + bytes) % LARGEST_PAGE;
    if (madvise(object + before, bytes - before - after, MADV_DONTNEED) == 0) {
      memset(object, 0, before);
      memset(object + bytes - after, 0, after);
      return object;
    }
  }
  return memset(object, 0, bytes);
}

static inline void *heap_calloc_atomic(_cyc_size bytes) {
  void *p = heap_malloc_atomic(bytes);
  return p ? cleared(p, bytes) : p;
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

static void *start_counting(struct header *h, _cyc_size bytes) {
  h->size = bytes;
  h->mark = 1;
  return h + 1;
}

static _cyc_size with_header(_cyc_size bytes) { return _cyc_bytes(bytes, 1) + sizeof(struct header); }

void *counted_in_heap(_cyc_size bytes) {
  _cyc_size all = with_header(bytes);
  return start_counting(_cyc_malloc(all), all);
}

void *_cyc_rc_malloc_atomic(_cyc_size bytes) {
  _cyc_size all = with_header(bytes);
  return start_counting(_cyc_malloc_atomic(all), all);
}

void drop_in_heap(void *object) {
  if (object && count_down(header_of(object)) == 0)
    heap_free_sized(header_of(object), header_of(object)->size);
}

/* core.h */

void Cyc_Core_ufree(void *object);
void Cyc_Core_ufree(void *object) { heap_free(object); }

struct _cyc_region *Cyc_Core_heap_region;
struct _cyc_region *Cyc_Core_unique_region;
struct _cyc_region *Cyc_Core_refcnt_region = &_cyc_counted_region;
_cyc_aqual Cyc_Core_aliasable_qual = _cyc_aliasable;
_cyc_aqual Cyc_Core_unique_qual = _cyc_unique;
_cyc_aqual Cyc_Core_refcnt_qual = _cyc_refcnt;
