/* What programs of the original's time ask its collector: declared by themselves, with extern "C". libgc has all but one of them; where the
   heap is malloc's, nothing is collected and nothing known of its size. */
#include <stddef.h>

void GC_blacklist_warn_clear(void) {}

#ifdef _CYC_NO_GC
unsigned long GC_gc_no;
int GC_dont_expand, GC_dont_gc, GC_use_entire_heap;

void GC_set_max_heap_size(unsigned long bytes) { (void)bytes; }
size_t GC_get_heap_size(void) { return 0; }
size_t GC_get_free_bytes(void) { return 0; }
size_t GC_get_total_bytes(void) { return 0; }
void GC_gcollect(void) {}
#endif
