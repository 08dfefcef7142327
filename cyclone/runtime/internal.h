/* What the files of the run-time library share and programs do not see. */
#ifndef CYC_INTERNAL_H
#define CYC_INTERNAL_H
#include "cyc_runtime.h"

/* Before an object that can be freed singly lie two words. `size` is what was asked for, rounded up as its region does; in the
   heap, with these words. `mark` is the reference count of a counted object; for a unique object of a region it is the
   region's address, so that freeing what the region did not give out does nothing. */
struct header {
  _cyc_size size;
  _cyc_size mark;
};

static inline struct header *header_of(void *object) { return (struct header *)object - 1; }

/* One reference more and one less; the latter returns how many are left. */
static inline void count_up(struct header *h) { h->mark++; }
static inline _cyc_size count_down(struct header *h) { return --h->mark; }

/* Memory for pages of regions: kept until freed, whether or not anything points to it, or collected like other objects.
   The collector looks for pointers in both. Null where there is no memory. */
enum page_memory { PAGE_KEPT, PAGE_COLLECTED };
void *page_memory(_cyc_size bytes, enum page_memory kind);

/* A counted object of the heap, with count 1. */
void *counted_in_heap(_cyc_size bytes);
/* Gives up one reference to a counted object of the heap. */
void drop_in_heap(void *object);

/* An object with a header in the region, `mark` not yet set; and the way back. */
void *reap_allocate(struct _cyc_region *r, _cyc_size bytes);
void reap_free(struct _cyc_region *r, void *object);

/* Prepares a region that is no frame of the run-time stack, and frees its memory. */
void region_prepare(struct _cyc_region *r);
void region_free(struct _cyc_region *r);

/* The program's first thread begins its turn. */
#ifdef _CYC_THREADS
void _cyc_first_turn(void);
#else
static inline void _cyc_first_turn(void) {}
#endif

#endif
