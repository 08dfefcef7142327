/* The length of texts behind fat pointers. */
#ifndef CYC_TEXT_H
#define CYC_TEXT_H

#include "cyc_runtime.h"

/* The characters before the first zero of n, or n. Compilers know memchr of constants; clang does not know strnlen. */
_CYC_INLINE _cyc_size _cyc_length_within(const unsigned char *text, _cyc_size n) {
  const unsigned char *zero = n ? (const unsigned char *)__builtin_memchr(text, 0, n) : 0;
  return zero ? (_cyc_size)(zero - text) : n;
}

/* The length of the text in a fat string: up to the first zero or to the end. */
_CYC_INLINE _cyc_size _cyc_text_length(struct _cyc_fat text) {
  return _cyc_length_within(text.curr, _cyc_fat_count(text, 1));
}

#endif
