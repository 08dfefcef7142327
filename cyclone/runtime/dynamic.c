/* Dynamic regions: regions that live as long as their key, a unique or a counted pointer. The region lies where the key
   points. Declared by core.h. */
#include "internal.h"

struct Cyc_Core_DynamicRegion {
  struct _cyc_region region;
};

struct Cyc_Core_NewDynamicRegion {
  struct Cyc_Core_DynamicRegion *key;
};

/* The arguments were for a profile of allocations; a caller of `new_ukey()` passes them without knowing. */
struct Cyc_Core_NewDynamicRegion Cyc_Core__new_ukey(unsigned plain, const char *file, const char *function, int line);
struct Cyc_Core_NewDynamicRegion Cyc_Core__new_ukey(unsigned plain, const char *file, const char *function, int line) {
  (void)plain, (void)file, (void)function, (void)line;
  struct Cyc_Core_DynamicRegion *key = _cyc_malloc(sizeof *key);
  region_prepare(&key->region);
  return (struct Cyc_Core_NewDynamicRegion){key};
}

struct Cyc_Core_NewDynamicRegion Cyc_Core__new_rckey(unsigned plain, const char *file, const char *function, int line);
struct Cyc_Core_NewDynamicRegion Cyc_Core__new_rckey(unsigned plain, const char *file, const char *function, int line) {
  (void)plain, (void)file, (void)function, (void)line;
  struct Cyc_Core_DynamicRegion *key = counted_in_heap(sizeof *key);
  region_prepare(&key->region);
  return (struct Cyc_Core_NewDynamicRegion){key};
}

void Cyc_Core_free_ukey(struct Cyc_Core_DynamicRegion *key);
void Cyc_Core_free_ukey(struct Cyc_Core_DynamicRegion *key) {
  region_free(&key->region);
  _cyc_free(key);
}

void Cyc_Core_free_rckey(struct Cyc_Core_DynamicRegion *key);
void Cyc_Core_free_rckey(struct Cyc_Core_DynamicRegion *key) {
  if (count_down(header_of(key)) != 0)
    return;
  region_free(&key->region);
  _cyc_free(header_of(key));
}

void *Cyc_Core_open_region(struct Cyc_Core_DynamicRegion *key, void *argument,
                           void *(*body)(struct _cyc_region *, void *));
void *Cyc_Core_open_region(struct Cyc_Core_DynamicRegion *key, void *argument,
                           void *(*body)(struct _cyc_region *, void *)) {
  return body(&key->region, argument);
}

struct _cyc_region *Cyc_Core_current_handle(void);
/* The innermost lexical region; the heap where there is none. */
struct _cyc_region *Cyc_Core_current_handle(void) {
  for (struct _cyc_frame *frame = _cyc_top; frame; frame = frame->below)
    if (frame->release == _cyc_region_release)
      return (struct _cyc_region *)frame;
  return 0;
}
