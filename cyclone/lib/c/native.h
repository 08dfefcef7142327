/* What the C part of Cyclone's library shares: the layouts of values that Cyclone code passes, and ways to fail.

   A Cyclone function `f` outside a namespace is `Cyc_f` in C. Bounds were checked by Cyclone for thin pointers only: what a
   fat pointer holds is checked here. */
#ifndef CYC_NATIVE_H
#define CYC_NATIVE_H

#include <stddef.h>
#include <stdio.h>

#include "cyc_runtime.h"
#include "text.h"

/* Cyclone's FILE: the C stream, or NULL once it is closed. */
struct Cyc___cycFILE {
  FILE *file;
};

/* The stream; throws Null_Exception if it is closed. */
FILE *_cyc_stream(struct Cyc___cycFILE *cell);

/* Throws Core::Failure or Core::Invalid_argument with a text that lives for ever. */
_Noreturn void _cyc_fail(const char *text);
_Noreturn void _cyc_invalid(const char *text);

/* The bytes from the current position of a fat pointer to its end; 0 if the position is outside. */
static inline size_t _cyc_room(struct _cyc_fat f) { return _cyc_fat_count(f, 1); }

/* A string as a new object of the heap, which holds no pointers; NULL for NULL. */
char *_cyc_copy_text(const char *text);

/* A NULL-terminated array of strings as a new object of the heap; NULL for NULL. */
char **_cyc_copy_texts(char **texts);

/* A thin zero-terminated string for C. What has no zero within its bound is copied to the heap; NULL stays NULL. */
const char *_cyc_c_text(struct _cyc_fat text);

/* The value of a call that may wait: other threads run meanwhile. What is passed by address stays as long as the call. */
#ifdef _CYC_THREADS
#define _cyc_waiting(call)                                                                                             \
  ({                                                                                                                   \
    _cyc_turn_end();                                                                                                   \
    __typeof__(call) _cyc_result = (call);                                                                             \
    _cyc_turn_begin();                                                                                                 \
    _cyc_result;                                                                                                       \
  })
#else
#define _cyc_waiting(call) (call)
#endif

/* Any value of a datatype begins with the number of its constructor, counted from 1. */
struct _cyc_tagged {
  int tag;
};

/* The nth extra argument of a variadic function whose arguments are injected into a datatype. */
static inline struct _cyc_tagged *_cyc_argument(struct _cyc_fat arguments, size_t n) {
  return ((struct _cyc_tagged **)arguments.curr)[n];
}

#endif
