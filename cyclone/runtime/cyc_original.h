/* Names that C code inside Cyclone programs (`extern "C include"`) may take from the original compiler's run time, in terms of
   this one's. The compiler includes it before such blocks; it is for nothing else. */
#ifndef CYC_ORIGINAL_H
#define CYC_ORIGINAL_H
#include "cyc_runtime.h"

#define _fat_ptr _cyc_fat
#define last_plus_one last
#define _RegionHandle _cyc_region

#define _tag_fat(p, size, count) _cyc_fat_make((p), (_cyc_size)(size) * (count))
#define _get_fat_size(f, size) _cyc_fat_count((f), (size))
#define _check_fat_subscript(f, size, index) ((unsigned char *)_cyc_fat_at((f), (size), (index)))
#define _untag_fat_ptr_check_bound(f, size, count) ((unsigned char *)_cyc_fat_thin((f), (size), (count)))
#define _fat_ptr_plus(f, size, index) _cyc_fat_plus((f), (size), (index))

#define _check_null(p) _cyc_nonnull(p)
#define _throw(exn) _cyc_throw(exn)
#define _throw_null() _cyc_throw_null()
#define _throw_arraybounds() _cyc_throw_bounds()
#define _throw_badalloc() _cyc_throw_alloc()
#define _throw_match() _cyc_throw_match()

#define _cycalloc(bytes) _cyc_malloc(bytes)
#define _cycalloc_atomic(bytes) _cyc_malloc_atomic(bytes)
#define _cyccalloc(count, size) _cyc_calloc(_cyc_bytes((count), (size)))
#define _cyccalloc_atomic(count, size) _cyc_calloc_atomic(_cyc_bytes((count), (size)))
#define _region_malloc(r, qualifier, bytes) _cyc_rqmalloc((r), (qualifier), (bytes))
#define _region_calloc(r, qualifier, count, size) _cyc_rqcalloc((r), (qualifier), _cyc_bytes((count), (size)))

#endif
