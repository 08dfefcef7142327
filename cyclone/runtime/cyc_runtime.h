/* What compiled Cyclone programs and their run-time library share.

   The compiler writes C that includes this file first and nothing else: there are no other includes here, so that a
   program's own declarations of C functions cannot clash with those of the C library. The implementation is in the .c
   files beside it. C11 with the extensions that gcc and clang share (statement expressions, __auto_type, attributes).

   Options, the same for a program and for the archive that it is linked with:
     _CYC_THREADS  the program may have threads, which take turns
     _CYC_NO_GC    the heap is malloc's; heap objects that nobody frees stay

   Conventions
   - Words of polymorphic code are `void *`; an integer travels in one as `(void *)(_cyc_word)i`, one of four
     bytes as `(void *)(_cyc_word)(unsigned int)i`: its upper half is zero, so that equal integers are equal words.
   - Functions return integers of four bytes, and `_Bool`, as `_cyc_carried`, in the same form; through pointers to
     functions they go so in both directions.
   - Sizes and indices are `_cyc_size`, 64 bits wide. Convert an index to `_cyc_index` (signed) or, when its type is
     unsigned, to `_cyc_size` first: both mean the same here, as arithmetic is modulo 2^64.
   - Macros that can fail take file and line from where they are expanded, so `#line` decides what a report says.
   - An argument of a macro is evaluated once, if its text does not say otherwise. */
#ifndef CYC_RUNTIME_H
#define CYC_RUNTIME_H

typedef __SIZE_TYPE__ _cyc_size;
typedef __PTRDIFF_TYPE__ _cyc_index;
typedef __INTPTR_TYPE__ _cyc_word;
typedef __UINTPTR_TYPE__ _cyc_carried;

#define _CYC_INLINE static inline __attribute__((always_inline, unused))
#define _CYC_COLD __attribute__((noreturn, noinline, cold))
#define _cyc_unlikely(condition) __builtin_expect(!!(condition), 0)

/* ------------------------------------------------------------------------------------------------------------------
   Exceptions.

   An exception is a pointer to a struct whose first member is `const char *tag`: the address of the constructor's name,
   a char array `_cyc_exn_<name>` of which there is one in the program. `_cyc_exn_List_Nth` holds "List::Nth".

   A try statement:

       struct _cyc_handler h;
       if (_cyc_try(&h) == 0) { body; _cyc_pop_handler(); }
       else { void *e = h.exn; if (*(const char **)e == _cyc_exn_Foo) ...; else _cyc_rethrow(e); }

   - When control reaches the else branch the handler is popped already, and so is whatever the body had pushed.
   - Leaving the body by return, break, continue or goto: first `_cyc_unwind(n)`, n being how many frames (handlers
     and regions) lie between.
   - A local variable that the body assigns, and that is read by the else branch or after the statement, must be
     `volatile`, as for C's setjmp. A function that contains `_cyc_try` is not inlined by C compilers.
   - Before the try, `_cyc_reached(variable)` for each local variable that the body may change by a pointer, also inside of
     a macro or function of this file.
   - Signal masks are neither saved nor restored: a try enters the kernel never. */

/* A link of a thread's run-time stack: a handler (`release` is NULL) or something to be freed when it is left. */
struct _cyc_frame {
  struct _cyc_frame *below;
  void (*release)(struct _cyc_frame *);
};

/* The innermost frame of this thread. */
extern __thread struct _cyc_frame *_cyc_top;

#if defined(__x86_64__) && defined(__LP64__)
/* rbx, rbp, r12 to r15, rsp, return address: what a called function preserves, and nothing else. */
struct _cyc_context { void *saved[8]; };
int _cyc_save(struct _cyc_context *) __attribute__((returns_twice, nothrow));
#else
#include <setjmp.h>
struct _cyc_context { jmp_buf saved; };
#define _cyc_save(context) _setjmp((context)->saved)
#endif

struct _cyc_handler {
  struct _cyc_frame frame;
  void *exn;
  struct _cyc_context context;
};

_CYC_INLINE void _cyc_push_frame(struct _cyc_frame *frame, void (*release)(struct _cyc_frame *)) {
  frame->below = _cyc_top;
  frame->release = release;
  _cyc_top = frame;
}

/* 0 when the handler is installed, 1 when something was thrown to it. Only as `if (_cyc_try(&h) == 0)`. */
#define _cyc_try(handler) (_cyc_push_frame(&(handler)->frame, (void (*)(struct _cyc_frame *))0), \
                           _cyc_save(&(handler)->context))

/* C compilers leave out what is stored in a variable before a call that does not return, unless somebody else may have the
   variable's address: that such a call may go on in a handler they do not see. From here on somebody may have it. */
#define _cyc_reached(variable) __asm__ volatile("" : : "r"(&(variable)))

/* Removes the innermost frame, which is a handler. */
_CYC_INLINE void _cyc_pop_handler(void) { _cyc_top = _cyc_top->below; }

/* Removes the n innermost frames and frees the regions among them. */
void _cyc_unwind(unsigned n);

/* Passes `exn` to the innermost handler. Where there is none, reports it and ends the program with status 1. */
_CYC_COLD void _cyc_throw_at(void *exn, const char *file, unsigned line);
#define _cyc_throw(exn) _cyc_throw_at((exn), __FILE__, __LINE__)
/* The same, with the place where the exception was first thrown kept for the report. */
_CYC_COLD void _cyc_rethrow(void *exn);

extern const char _cyc_exn_Null_Exception[], _cyc_exn_Array_bounds[], _cyc_exn_Match_Exception[],
    _cyc_exn_Bad_alloc[], _cyc_exn_Assert[];

_CYC_COLD void _cyc_throw_null_at(const char *file, unsigned line);
_CYC_COLD void _cyc_throw_bounds_at(const char *file, unsigned line);
_CYC_COLD void _cyc_throw_match_at(const char *file, unsigned line);
_CYC_COLD void _cyc_throw_alloc_at(const char *file, unsigned line);
_CYC_COLD void _cyc_throw_assert_at(const char *file, unsigned line);
#define _cyc_throw_null() _cyc_throw_null_at(__FILE__, __LINE__)
#define _cyc_throw_bounds() _cyc_throw_bounds_at(__FILE__, __LINE__)
#define _cyc_throw_match() _cyc_throw_match_at(__FILE__, __LINE__) /* no case of a switch or let matches; wrong tag */
#define _cyc_throw_alloc() _cyc_throw_alloc_at(__FILE__, __LINE__)
#define _cyc_throw_assert() _cyc_throw_assert_at(__FILE__, __LINE__) /* @assert(e) */

/* ------------------------------------------------------------------------------------------------------------------
   Checks on thin pointers. */

/* The pointer, of the same type; throws Null_Exception where it is null. */
#define _cyc_nonnull(pointer) \
  ({ __auto_type _cyc_p = (pointer); if (_cyc_unlikely(!_cyc_p)) _cyc_throw_null(); _cyc_p; })

/* The index as `_cyc_size`; throws Array_bounds unless it is less than `bound`. For arrays and pointers with a known
   bound that are not zero-terminated: `p[_cyc_below(i, n)]`. */
#define _cyc_below(index, bound) \
  ({ _cyc_size _cyc_i = (_cyc_size)(_cyc_index)(index); \
     if (_cyc_unlikely(_cyc_i >= (_cyc_size)(bound))) _cyc_throw_bounds(); \
     _cyc_i; })

/* `count * size` bytes for an allocation; throws Bad_alloc where that is more than half the address space. */
_CYC_INLINE _cyc_size _cyc_bytes_at(_cyc_size count, _cyc_size size, const char *file, unsigned line) {
  _cyc_size bytes;
  if (_cyc_unlikely(__builtin_mul_overflow(count, size, &bytes) || (_cyc_index)bytes < 0))
    _cyc_throw_alloc_at(file, line);
  return bytes;
}
#define _cyc_bytes(count, size) _cyc_bytes_at((count), (size), __FILE__, __LINE__)

/* ------------------------------------------------------------------------------------------------------------------
   Fat pointers: `T ?`, for every T.

   Memory from `base` up to `last` (one past the end) may be used and is a whole number of elements; `curr` may be
   anywhere a whole number of elements from `base`. The null pointer is all zeroes. Static initialisers may be written
   out: `{ (unsigned char *)a, (unsigned char *)a, (unsigned char *)a + sizeof a }`. */
struct _cyc_fat {
  unsigned char *curr, *base, *last;
};

#define _cyc_fat_null ((struct _cyc_fat){0, 0, 0})

/* Over `bytes` bytes at `p`; null for null. */
_CYC_INLINE struct _cyc_fat _cyc_fat_make(const void *p, _cyc_size bytes) {
  unsigned char *start = (unsigned char *)p;
  return (struct _cyc_fat){start, start, start ? start + bytes : start};
}

/* A step by `index` elements. Where the element size is a power of two, wrapping around the address space a whole number
   of times arrives at an element again; for other sizes it would not, so there an overflow gives the null pointer. */
_CYC_INLINE struct _cyc_fat _cyc_fat_plus(struct _cyc_fat f, _cyc_size size, _cyc_index index) {
  _cyc_size address;
  if ((size & (size - 1)) == 0) {
    address = (_cyc_size)f.curr + size * (_cyc_size)index;
  } else {
    /* Signed: programs' addresses are in the lower half, so what does not overflow is exact. */
    _cyc_index step, sum;
    if (_cyc_unlikely(__builtin_mul_overflow(index, (_cyc_index)size, &step) ||
                      __builtin_add_overflow((_cyc_index)f.curr, step, &sum)))
      return _cyc_fat_null;
    address = (_cyc_size)sum;
  }
  f.curr = (unsigned char *)address;
  return f;
}

/* The address of `f[index]`; throws Array_bounds where there is no such element (so for the null pointer too). What a loop
   that steps the index leaves unchanged stands together, for the C compiler to move out of it; a loop that moves the pointer
   is served best by the first form. */
_CYC_INLINE void *_cyc_fat_at_from(struct _cyc_fat f, _cyc_size size, _cyc_index index, const char *file, unsigned line) {
  if (__builtin_constant_p(index) && index == 0) {
    if (_cyc_unlikely((_cyc_size)f.curr < (_cyc_size)f.base || (_cyc_size)f.curr >= (_cyc_size)f.last))
      _cyc_throw_bounds_at(file, line);
    return f.curr;
  }
  _cyc_size offset;
  if ((size & (size - 1)) == 0) {
    offset = (_cyc_size)f.curr - (_cyc_size)f.base + size * (_cyc_size)index;
  } else {
    f = _cyc_fat_plus(f, size, index);
    offset = (_cyc_size)f.curr - (_cyc_size)f.base;
  }
  if (_cyc_unlikely(offset >= (_cyc_size)f.last - (_cyc_size)f.base))
    _cyc_throw_bounds_at(file, line);
  return f.base + offset;
}
#define _cyc_fat_at(f, size, index) _cyc_fat_at_from((f), (size), (_cyc_index)(index), __FILE__, __LINE__)
/* The same where a condition holds; else the element is known to be there. */
#define _cyc_fat_at_if(condition, f, size, index) \
  ({ struct _cyc_fat _cyc_f = (f); \
     _cyc_index _cyc_n = (_cyc_index)(index); \
     (condition) ? _cyc_fat_at(_cyc_f, (size), _cyc_n) : (void *)(_cyc_f.curr + (size) * (_cyc_size)_cyc_n); })

/* numelts(f): the elements from `curr` on; 0 where `curr` is outside. */
_CYC_INLINE _cyc_size _cyc_fat_count(struct _cyc_fat f, _cyc_size size) {
  if ((_cyc_size)f.curr < (_cyc_size)f.base || (_cyc_size)f.curr >= (_cyc_size)f.last)
    return 0;
  return ((_cyc_size)f.last - (_cyc_size)f.curr) / size;
}

/* `f - g` in elements. */
_CYC_INLINE _cyc_index _cyc_fat_minus(struct _cyc_fat f, struct _cyc_fat g, _cyc_size size) {
  return ((_cyc_index)((_cyc_size)f.curr - (_cyc_size)g.curr)) / (_cyc_index)size;
}

/* `p += i`, `++p` (the new value) and `p++` (the old one). */
_CYC_INLINE struct _cyc_fat _cyc_fat_add(struct _cyc_fat *p, _cyc_size size, _cyc_index index) {
  return *p = _cyc_fat_plus(*p, size, index);
}
_CYC_INLINE struct _cyc_fat _cyc_fat_post_add(struct _cyc_fat *p, _cyc_size size, _cyc_index index) {
  struct _cyc_fat old = *p;
  *p = _cyc_fat_plus(old, size, index);
  return old;
}

/* Coercion to a thin pointer with `count` elements: null for null; throws Array_bounds where fewer are left. For a thin
   zero-terminated pointer `count` is 1 (a fat zero-terminated one ends in a zero). Around it `_cyc_nonnull` for `@`. */
_CYC_INLINE void *_cyc_fat_thin_from(struct _cyc_fat f, _cyc_size size, _cyc_size count, const char *file, unsigned line) {
  _cyc_size bytes; /* `count` may be any number: that of a tag */
  if (f.curr && _cyc_unlikely((_cyc_size)f.curr < (_cyc_size)f.base || (_cyc_size)f.curr > (_cyc_size)f.last ||
                              __builtin_mul_overflow(size, count, &bytes) ||
                              (_cyc_size)f.last - (_cyc_size)f.curr < bytes))
    _cyc_throw_bounds_at(file, line);
  return f.curr;
}
#define _cyc_fat_thin(f, size, count) _cyc_fat_thin_from((f), (size), (count), __FILE__, __LINE__)

/* Gives up the last `count` elements, down to none: the coercion from a zero-terminated fat pointer to one that is not
   (and may therefore overwrite what it sees) gives up the terminator. */
_CYC_INLINE struct _cyc_fat _cyc_fat_shrink(struct _cyc_fat f, _cyc_size size, _cyc_size count) {
  _cyc_size bytes;
  f.last = !__builtin_mul_overflow(size, count, &bytes) && (_cyc_size)(f.last - f.base) >= bytes ? f.last - bytes : f.base;
  return f;
}

/* Comparisons use `curr`: f.curr == g.curr, !f.curr, (_cyc_size)f.curr < (_cyc_size)g.curr. */

/* ------------------------------------------------------------------------------------------------------------------
   Zero-terminated pointers. Elements are 1, 2, 4, 8 or 16 bytes and zero when all their bytes are. `known` is the bound
   from the type, at least 1: that many elements are there whatever their value. */

/* The elements from `p` up to and with the terminator, 0 for null: numelts(p). */
_cyc_size _cyc_zero_count(const void *p, _cyc_size size, _cyc_size known);

/* The coercion of a thin zero-terminated pointer to a fat zero-terminated one. */
_CYC_INLINE struct _cyc_fat _cyc_zero_fat(const void *p, _cyc_size size, _cyc_size known) {
  return _cyc_fat_make(p, size * _cyc_zero_count(p, size, known));
}

void _cyc_zero_scan(const void *p, _cyc_size size, _cyc_size from, _cyc_index index, const char *file, unsigned line);

/* The address of `p[index]`, for reading, and `p + index`: throws Null_Exception for null, and Array_bounds where the
   index is negative or a terminator lies before it. */
_CYC_INLINE void *_cyc_zero_at_from(const void *p, _cyc_size size, _cyc_size known, _cyc_index index, const char *file,
                                    unsigned line) {
  if (_cyc_unlikely(!p))
    _cyc_throw_null_at(file, line);
  if ((_cyc_size)index >= known)
    _cyc_zero_scan(p, size, known - 1, index, file, line);
  return (unsigned char *)p + size * (_cyc_size)index;
}
#define _cyc_zero_at(p, size, known, index) \
  _cyc_zero_at_from((p), (size), (known), (_cyc_index)(index), __FILE__, __LINE__)

/* Storing through a zero-terminated pointer: the terminator may only be overwritten by zero. `slot` is the address that
   `_cyc_zero_at` or `_cyc_fat_at` gave, `value` what is to be stored (arithmetic or a thin pointer). All but the value are
   to be variables or constants: they are evaluated more than once.
     thin:  T *s = _cyc_zero_at(p, sizeof(T), known, i); *s = _cyc_zero_keep(s, v, i, known);
     fat:   T *s = _cyc_fat_at(f, sizeof(T), i);         *s = _cyc_fat_keep(s, v, f); */
#define _cyc_zero_keep(slot, value, index, known) \
  ({ __typeof__(*(slot)) _cyc_v = (value); \
     if (_cyc_v && _cyc_unlikely(!*(slot)) && (_cyc_size)(_cyc_index)(index) + 1 >= (_cyc_size)(known)) \
       _cyc_throw_bounds(); \
     _cyc_v; })
/* The last element of a fat one always is a zero: it is not looked at. One comparison does, as the slot is below the end. */
#define _cyc_fat_keep(slot, value, f) \
  ({ __typeof__(*(slot)) _cyc_v = (value); \
     if (_cyc_unlikely((unsigned char *)((slot) + (_cyc_v != 0)) == (f).last)) \
       _cyc_throw_bounds(); \
     _cyc_v; })

/* ------------------------------------------------------------------------------------------------------------------
   The heap. All return memory aligned to 16 bytes and throw Bad_alloc where there is none. `_atomic`: the object holds no
   pointers (after the substitution of type variables by words: a word counts as a pointer), so the collector does not look
   inside. The `calloc` forms zero it. Take `_cyc_bytes(count, size)` for the size of arrays. */
void *_cyc_malloc(_cyc_size bytes) __attribute__((malloc, returns_nonnull));
void *_cyc_malloc_atomic(_cyc_size bytes) __attribute__((malloc, returns_nonnull));
void *_cyc_calloc(_cyc_size bytes) __attribute__((malloc, returns_nonnull));
void *_cyc_calloc_atomic(_cyc_size bytes) __attribute__((malloc, returns_nonnull));
void *_cyc_realloc(void *p, _cyc_size bytes) __attribute__((returns_nonnull));
/* Frees an object of the heap at once, with or without a collector. Null is allowed. */
void _cyc_free(void *p);

/* ------------------------------------------------------------------------------------------------------------------
   Alias qualifiers as values: aqual_t<`q>. */
typedef unsigned int _cyc_aqual;
#define _cyc_aliasable 0u
#define _cyc_unique 1u
#define _cyc_refcnt 2u

/* ------------------------------------------------------------------------------------------------------------------
   Regions.

   region_t<`r> is a `struct _cyc_region *`; the heap's handle is NULL. A region allocates by moving a pointer through
   pages; all pages are freed together. Objects allocated as unique or counted can be freed singly as well ("reaps"):
   their memory is used again for other such objects of the region.

   A lexical region:
       struct _cyc_region r;
       _cyc_region_push(&r); ... _cyc_rmalloc(&r, sizeof(T)) ... _cyc_region_pop(&r);
   Exceptions and `_cyc_unwind` free it too. A dynamic region is reached from its key: `_cyc_region_of(key)`. */
struct _cyc_page;
struct _cyc_freed;
struct _cyc_releases;

struct _cyc_region {
  struct _cyc_frame frame;
  unsigned char *next, *end;      /* what is left of the newest page */
  struct _cyc_page *pages;        /* newest first */
  struct _cyc_freed *freed;       /* lists of objects that were freed singly, by size */
  struct _cyc_releases *releases; /* counted objects to be dropped with the region (autorelease) */
};

void _cyc_region_release(struct _cyc_frame *);

_CYC_INLINE void _cyc_region_push(struct _cyc_region *r) {
  r->next = r->end = 0;
  r->pages = 0;
  r->freed = 0;
  r->releases = 0;
  _cyc_push_frame(&r->frame, _cyc_region_release);
}

/* Frees the region, which is the innermost frame. */
_CYC_INLINE void _cyc_region_pop(struct _cyc_region *r) {
  _cyc_top = r->frame.below;
  _cyc_region_release(&r->frame);
}

void *_cyc_region_grow(struct _cyc_region *r, _cyc_size bytes) __attribute__((returns_nonnull));

/* `bytes` bytes in the region, aligned to 16 where `bytes` is a multiple of 16 and to 8 otherwise: enough for every
   type of that size. Not zeroed. Only for objects that are aliasable in their type. */
_CYC_INLINE void *_cyc_rmalloc(struct _cyc_region *r, _cyc_size bytes) {
  if (!r)
    return _cyc_malloc(bytes);
  _cyc_size start = (_cyc_size)r->next;
  if ((bytes & 15) == 0)
    start = (start + 15) & ~(_cyc_size)15;
  _cyc_size room = (_cyc_size)r->end - start;
  /* Compared without adding, so no size can wrap. `start` may have been aligned past the end: then `room` is negative. */
  if (_cyc_unlikely((_cyc_index)room < 0 || bytes > room || bytes == 0))
    return _cyc_region_grow(r, bytes);
  r->next = (unsigned char *)((start + bytes + 7) & ~(_cyc_size)7);
  return (void *)start;
}

_CYC_INLINE void *_cyc_rcalloc(struct _cyc_region *r, _cyc_size bytes) {
  return r ? __builtin_memset(_cyc_rmalloc(r, bytes), 0, bytes) : _cyc_calloc(bytes);
}

/* Of 0.8, where counted pointers are those into a region: its handle, and the qualifier that a handle stands for. Objects are
   allocated with it by the functions that take a qualifier, and by no others. */
extern struct _cyc_region _cyc_counted_region;
_CYC_INLINE _cyc_aqual _cyc_qualifier_of(struct _cyc_region *r) {
  return r == &_cyc_counted_region ? _cyc_refcnt : _cyc_aliasable;
}

/* With an alias qualifier. The qualifier is that of the result's type, whether it was written (`rqmalloc`, `rcnew`) or
   comes from the expected type: an object that can be freed singly must have been allocated as such. In the heap, unique
   objects are plain ones (`_cyc_malloc` and `_cyc_malloc_atomic` do). */
void *_cyc_rqmalloc(struct _cyc_region *r, _cyc_aqual q, _cyc_size bytes) __attribute__((returns_nonnull));
void *_cyc_rqcalloc(struct _cyc_region *r, _cyc_aqual q, _cyc_size bytes) __attribute__((returns_nonnull));
/* Counted, in the heap, without pointers inside. */
void *_cyc_rc_malloc_atomic(_cyc_size bytes) __attribute__((malloc, returns_nonnull));

/* The handle of the dynamic region with this key: `region h = open(k);`. Nothing has to be closed. */
_CYC_INLINE struct _cyc_region *_cyc_region_of(void *key) { return (struct _cyc_region *)key; }

/* ------------------------------------------------------------------------------------------------------------------
   Swap: `a :=: b` is `_cyc_swap(&a, &b, sizeof a)`, for objects of any size. */
_CYC_INLINE void _cyc_swap(void *a, void *b, _cyc_size size) {
  unsigned char *x = (unsigned char *)a, *y = (unsigned char *)b;
  for (; size >= sizeof(_cyc_size); size -= sizeof(_cyc_size)) {
    _cyc_size u, v;
    __builtin_memcpy(&u, x, sizeof u);
    __builtin_memcpy(&v, y, sizeof v);
    __builtin_memcpy(x, &v, sizeof v);
    __builtin_memcpy(y, &u, sizeof u);
    x += sizeof u;
    y += sizeof v;
  }
  for (; size; size--) {
    unsigned char u = *x;
    *x++ = *y;
    *y++ = u;
  }
}

/* ------------------------------------------------------------------------------------------------------------------
   Turns: with _CYC_THREADS one thread at a time runs Cyclone code, the one that has the turn. One that is to wait ends its turn
   before and begins one after; `_cyc_round()`, in each round of a loop, passes the turn on if others have waited for long. A thread
   that the program did not make, or a program without `_cyc_start`, has no turns: these functions do nothing there. */
#ifdef _CYC_THREADS
extern int _cyc_turn_asked;
void _cyc_turn_begin(void);
void _cyc_turn_end(void);
void _cyc_turn_pass(void);
#define _cyc_round() (_cyc_unlikely(__atomic_load_n(&_cyc_turn_asked, __ATOMIC_RELAXED)) ? _cyc_turn_pass() : (void)0)

/* Waits, without the turn, until another thread calls one or all of those that are parked for this address. */
enum _cyc_parked { _CYC_ONE, _CYC_ALL };
void _cyc_park(const void *key);
void _cyc_unpark(const void *key, enum _cyc_parked which);
#else
#define _cyc_round() ((void)0)
#endif

/* ------------------------------------------------------------------------------------------------------------------
   The start of a program. The compiler writes

       int main(int argc, char **argv) { _cyc_start(); return Cyc_main(argc, _cyc_arguments(argc, argv)); }

   The arguments are a fat pointer to `argc + 1` fat strings, of which the last is null. */
void _cyc_start(void);
struct _cyc_fat _cyc_arguments(int argc, char **argv);

/* Threads made by a program with a collected heap must be known to the collector. */
#if defined(_CYC_THREADS) && !defined(_CYC_NO_GC)
#define pthread_create GC_pthread_create
#define pthread_join GC_pthread_join
#define pthread_detach GC_pthread_detach
#define pthread_exit GC_pthread_exit
#endif

/* ------------------------------------------------------------------------------------------------------------------
   Declared in Cyclone by core.h, defined here, so not declared in this file: ufree, rufree, alias_refptr, drop_refptr,
   rdrop_refptr, refptr_count, inc_refptr, autorelease_handle, _new_ukey, _new_rckey, free_ukey, free_rckey, open_region,
   current_handle, heap_region, aliasable_qual, unique_qual, refcnt_qual, rethrow, get_exn_name, get_exn_filename,
   get_exn_lineno, set_uncaught_exn_fun, each as `Cyc_Core_<name>`; and, with their C names, region_used_bytes,
   region_free_bytes, region_alloc_bytes. */

#endif
