/* The functions of string.h that are so small that a call would cost more than they do. string.h marks them with the attribute
   `cyc_inline`: the compiler includes this file instead of declaring them. string.c includes it to define them as functions.

   Like cyc_runtime.h this needs no header of C. */
#ifndef CYC_INLINE_STRING_H
#define CYC_INLINE_STRING_H

#include "text.h"

#ifndef CYC_STRING_LINKAGE
#define CYC_STRING_LINKAGE static inline __attribute__((unused))
#endif

/* Throws Core::Invalid_argument with the name of a function. */
_CYC_COLD void _cyc_invalid(const char *text);

/* The order of two texts of at most so many characters. */
int _cyc_compare_texts(const unsigned char *a, _cyc_size a_room, const unsigned char *b, _cyc_size b_room);

CYC_STRING_LINKAGE _cyc_size Cyc_strlen(struct _cyc_fat s) { return _cyc_text_length(s); }

/* Most strings that differ do so in their first character. */
CYC_STRING_LINKAGE int Cyc_strcmp(struct _cyc_fat a, struct _cyc_fat b) {
  _cyc_size a_room = _cyc_fat_count(a, 1), b_room = _cyc_fat_count(b, 1);
  if (a_room && b_room && *a.curr != *b.curr)
    return *a.curr < *b.curr ? -1 : 1;
  return _cyc_compare_texts(a.curr, a_room, b.curr, b_room);
}

CYC_STRING_LINKAGE struct _cyc_fat Cyc_strcpy(struct _cyc_fat dest, struct _cyc_fat src) {
  _cyc_size length = _cyc_text_length(src);
  if (_cyc_unlikely(length >= _cyc_fat_count(dest, 1)))
    _cyc_invalid("strcpy");
  if (length)
    __builtin_memmove(dest.curr, src.curr, length);
  dest.curr[length] = 0;
  return dest;
}

CYC_STRING_LINKAGE struct _cyc_fat Cyc_strcat(struct _cyc_fat dest, struct _cyc_fat src) {
  _cyc_size used = _cyc_text_length(dest), length = _cyc_text_length(src), room = _cyc_fat_count(dest, 1);
  if (length) {
    if (_cyc_unlikely(length >= room - used))
      _cyc_invalid("strcat");
    __builtin_memmove(dest.curr + used, src.curr, length);
    dest.curr[used + length] = 0;
  }
  return dest;
}

/* Zeroes fill what the text leaves of the n characters. */
CYC_STRING_LINKAGE struct _cyc_fat Cyc_strncpy(struct _cyc_fat dest, struct _cyc_fat src, _cyc_size n) {
  if (_cyc_unlikely(n > _cyc_fat_count(src, 1) || n > _cyc_fat_count(dest, 1)))
    _cyc_invalid("strncpy");
  if (n) {
    _cyc_size used = _cyc_length_within(src.curr, n);
    __builtin_memmove(dest.curr, src.curr, used);
    if (used < n)
      __builtin_memset(dest.curr + used, 0, n - used);
  }
  return dest;
}

CYC_STRING_LINKAGE struct _cyc_fat Cyc_strchr(struct _cyc_fat s, char c) {
  _cyc_size length = _cyc_text_length(s);
  unsigned char *found = length ? (unsigned char *)__builtin_memchr(s.curr, c, length) : 0;
  if (!found)
    return _cyc_fat_null;
  s.curr = found;
  return s;
}

/* Memory, in elements of `size` bytes. */
CYC_STRING_LINKAGE struct _cyc_fat Cyc__memmove(struct _cyc_fat dest, struct _cyc_fat src, _cyc_size n, unsigned long size) {
  if (_cyc_unlikely(!dest.curr || !src.curr || _cyc_fat_count(dest, size) < n || _cyc_fat_count(src, size) < n))
    _cyc_invalid("memmove");
  __builtin_memmove(dest.curr, src.curr, n * size);
  return dest;
}

/* What overlaps is copied as memmove does. */
CYC_STRING_LINKAGE struct _cyc_fat Cyc__memcpy(struct _cyc_fat dest, struct _cyc_fat src, _cyc_size n, unsigned long size) {
  return Cyc__memmove(dest, src, n, size);
}

/* The elements that n bytes fill, the last of them perhaps in part. */
static inline _cyc_size _cyc_elements(_cyc_size n, unsigned long size) {
  return size ? n / size + (n % size != 0) : 0;
}

CYC_STRING_LINKAGE struct _cyc_fat Cyc_memmove(struct _cyc_fat dest, struct _cyc_fat src, _cyc_size n, unsigned long size) {
  return Cyc__memmove(dest, src, _cyc_elements(n, size), size);
}

CYC_STRING_LINKAGE struct _cyc_fat Cyc_memcpy(struct _cyc_fat dest, struct _cyc_fat src, _cyc_size n, unsigned long size) {
  return Cyc__memcpy(dest, src, _cyc_elements(n, size), size);
}

CYC_STRING_LINKAGE struct _cyc_fat Cyc_memset(struct _cyc_fat s, char c, _cyc_size n) {
  if (_cyc_unlikely(!s.curr || n > _cyc_fat_count(s, 1)))
    _cyc_invalid("memset");
  __builtin_memset(s.curr, c, n);
  return s;
}

CYC_STRING_LINKAGE int Cyc_memcmp(struct _cyc_fat a, struct _cyc_fat b, _cyc_size n) {
  if (_cyc_unlikely(!a.curr || !b.curr || _cyc_fat_count(a, 1) < n || _cyc_fat_count(b, 1) < n))
    _cyc_invalid("memcmp");
  return __builtin_memcmp(a.curr, b.curr, n);
}

#endif
