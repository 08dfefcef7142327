/* Strings and memory, with C's own functions inside the bounds that fat pointers carry. A string ends at its first zero or
   at its bound. */
#define _GNU_SOURCE
#define CYC_STRING_LINKAGE
#include "native.h"
#include "inline_string.h"

#include <ctype.h>
#include <string.h>

#define length _cyc_text_length

static const char *text(struct _cyc_fat f) { return (const char *)f.curr; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Lengths are ordered as `int`, whatever their size. */
static int order(size_t a, size_t b) { return (a > b) - (a < b); }

/* ---- Comparison. The first difference decides, as the difference of the characters. */

static int difference(const char *a, const char *b, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (a[i] != b[i])
      return a[i] - b[i];
  return 0;
}

static int difference_without_case(const char *a, const char *b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int d = toupper((unsigned char)a[i]) - toupper((unsigned char)b[i]);
    if (d)
      return d;
  }
  return 0;
}

/* The order by the first `n` characters of two strings of known lengths. */
static int compare(int (*differ)(const char *, const char *, size_t), struct _cyc_fat a, size_t a_length, struct _cyc_fat b,
                   size_t b_length, size_t n) {
  a_length = smaller(a_length, n);
  b_length = smaller(b_length, n);
  int d = differ(text(a), text(b), smaller(a_length, b_length));
  return d ? d : order(a_length, b_length);
}

/* In one pass, unless only one of the texts can end at its bound: then it matters whether a zero came before. A text whose last
   character is zero, as that of a zero-terminated string is, does not end there. */
int _cyc_compare_texts(const unsigned char *a, size_t a_room, const unsigned char *b, size_t b_room) {
  size_t both = smaller(a_room, b_room);
  int d = both ? strncmp((const char *)a, (const char *)b, both) : 0;
  if (d || a_room == b_room || (both && (!a[both - 1] || memchr(a, 0, both))))
    return d;
  return a_room > b_room ? a[both] != 0 : -(b[both] != 0);
}

int Cyc_strptrcmp(struct _cyc_fat *a, struct _cyc_fat *b) { return Cyc_strcmp(*a, *b); }

int Cyc_strncmp(struct _cyc_fat a, struct _cyc_fat b, size_t n) {
  return compare(difference, a, length(a), b, length(b), n);
}

int Cyc_zstrcmp(struct _cyc_fat a, struct _cyc_fat b) {
  return compare(difference, a, _cyc_room(a), b, _cyc_room(b), (size_t)-1);
}

int Cyc_zstrncmp(struct _cyc_fat a, struct _cyc_fat b, size_t n) {
  return compare(difference, a, _cyc_room(a), b, _cyc_room(b), n);
}

int Cyc_zstrptrcmp(struct _cyc_fat *a, struct _cyc_fat *b) { return a == b ? 0 : Cyc_zstrcmp(*a, *b); }

int Cyc_strcasecmp(struct _cyc_fat a, struct _cyc_fat b) {
  return compare(difference_without_case, a, length(a), b, length(b), (size_t)-1);
}

int Cyc_strncasecmp(struct _cyc_fat a, struct _cyc_fat b, size_t n) {
  return compare(difference_without_case, a, length(a), b, length(b), n);
}

/* ---- New strings: `size` characters of which the first `used` are copied and the others are zero. */

static struct _cyc_fat make(struct _cyc_region *region, const char *from, size_t used, size_t size) {
  char *made = region ? _cyc_rmalloc(region, size) : _cyc_malloc_atomic(size);
  if (used)
    memcpy(made, from, used);
  memset(made + used, 0, size - used);
  return _cyc_fat_make(made, size);
}

/* A length and a zero, or the exception for what no memory can hold. */
static size_t with_zero(size_t count) { return _cyc_bytes(count, 1) + 1; }

struct _cyc_fat Cyc_rstrdup(struct _cyc_region *region, struct _cyc_fat s) {
  size_t n = length(s);
  return make(region, text(s), n, n + 1);
}

struct _cyc_fat Cyc_strdup(struct _cyc_fat s) { return Cyc_rstrdup(NULL, s); }

struct _cyc_fat Cyc_rqstrdup(struct _cyc_region *region, _cyc_aqual qualifier, struct _cyc_fat s) {
  size_t n = length(s);
  char *made = _cyc_rqcalloc(region, qualifier, n + 1);
  if (n)
    memcpy(made, s.curr, n);
  return _cyc_fat_make(made, n + 1);
}

struct _cyc_fat Cyc_rstrconcat(struct _cyc_region *region, struct _cyc_fat a, struct _cyc_fat b) {
  size_t a_length = length(a), b_length = length(b);
  struct _cyc_fat made = make(region, text(a), a_length, a_length + b_length + 1);
  if (b_length)
    memcpy(made.curr + a_length, b.curr, b_length);
  return made;
}

struct _cyc_fat Cyc_strconcat(struct _cyc_fat a, struct _cyc_fat b) { return Cyc_rstrconcat(NULL, a, b); }

/* The text that fits keeps its zero. */
struct _cyc_fat Cyc_rexpand(struct _cyc_region *region, struct _cyc_fat s, size_t size) {
  size_t n = length(s);
  size_t wanted = larger(larger(size, n), 1);
  return make(region, text(s), n, n == wanted ? with_zero(n) : _cyc_bytes(wanted, 1));
}

struct _cyc_fat Cyc_expand(struct _cyc_fat s, size_t size) { return Cyc_rexpand(NULL, s, size); }

/* Grows by more than is asked for, so that a string that grows step by step is not copied at every step. */
struct _cyc_fat Cyc_cond_rrealloc_str(struct _cyc_region *region, struct _cyc_fat s, size_t size) {
  enum { SMALLEST = 32 };
  size_t room = _cyc_room(s);
  if (room && size <= room)
    return _cyc_fat_null;
  return Cyc_rexpand(region, s, larger(larger(_cyc_bytes(size, 1) / 4 * 5, SMALLEST), room * 2));
}

struct _cyc_fat Cyc_realloc_str(struct _cyc_fat s, size_t size) {
  struct _cyc_fat made = Cyc_cond_rrealloc_str(NULL, s, size);
  return made.curr ? made : s;
}

/* The old buffer may be reachable through other pointers, so it is never freed. */
struct _cyc_fat Cyc_realloc(struct _cyc_fat s, size_t size) {
  return make(NULL, text(s), smaller(_cyc_room(s), size), _cyc_bytes(size, 1));
}

struct _cyc_fat Cyc_rqrealloc(struct _cyc_region *region, _cyc_aqual qualifier, struct _cyc_fat s, size_t size) {
  size_t room = _cyc_room(s), bytes = _cyc_bytes(larger(size, room), 1);
  char *made = _cyc_rqcalloc(region, qualifier, bytes);
  if (room)
    memcpy(made, s.curr, room);
  return _cyc_fat_make(made, bytes);
}

struct _cyc_fat Cyc_rrealloc(struct _cyc_region *region, struct _cyc_fat s, size_t size) {
  size_t room = _cyc_room(s);
  return make(region, text(s), room, _cyc_bytes(larger(size, room), 1));
}

struct _cyc_fat Cyc_rsubstring(struct _cyc_region *region, struct _cyc_fat s, int offset, size_t n) {
  s = _cyc_fat_plus(s, 1, offset);
  if (n > _cyc_room(s))
    _cyc_invalid("substring");
  return make(region, text(s), n, n + 1);
}

struct _cyc_fat Cyc_substring(struct _cyc_fat s, int offset, size_t n) { return Cyc_rsubstring(NULL, s, offset, n); }

struct _cyc_fat Cyc_rreplace_suffix(struct _cyc_region *region, struct _cyc_fat s, struct _cyc_fat suffix,
                                    struct _cyc_fat other) {
  size_t n = length(s), suffix_length = length(suffix), other_length = length(other);
  if (suffix_length > n || (suffix_length && memcmp(text(s) + (n - suffix_length), text(suffix), suffix_length) != 0))
    _cyc_invalid("replace_suffix");
  size_t stem = n - suffix_length;
  struct _cyc_fat made = make(region, text(s), stem, stem + other_length + 1);
  if (other_length)
    memcpy(made.curr + stem, other.curr, other_length);
  return made;
}

struct _cyc_fat Cyc_replace_suffix(struct _cyc_fat s, struct _cyc_fat suffix, struct _cyc_fat other) {
  return Cyc_rreplace_suffix(NULL, s, suffix, other);
}

/* ---- Copies into what is there. The last element of a zero-terminated string is its terminator's, which is kept. */

struct _cyc_fat Cyc_zstrncpy(struct _cyc_fat dest, struct _cyc_fat src, size_t n) {
  if (n > _cyc_room(src) || n > _cyc_room(dest))
    _cyc_invalid("zstrncpy");
  if (n)
    memmove(dest.curr, src.curr, n);
  return dest;
}

/* ---- Memory. */

void Cyc__bcopy(struct _cyc_fat src, struct _cyc_fat dest, size_t n, unsigned long size) {
  Cyc__memmove(dest, src, n, size);
}

void Cyc_bcopy(struct _cyc_fat src, struct _cyc_fat dest, size_t n, unsigned long size) {
  Cyc_memmove(dest, src, n, size);
}

void Cyc_bzero(struct _cyc_fat s, size_t n) {
  if (!s.curr || n > _cyc_room(s))
    _cyc_invalid("bzero");
  memset(s.curr, 0, n);
}

/* ---- Searches. The result is the place in the first argument, with its bounds, or NULL. */

static struct _cyc_fat place(struct _cyc_fat s, const void *found) {
  if (!found)
    return _cyc_fat_null;
  s.curr = (unsigned char *)found;
  return s;
}

struct _cyc_fat Cyc_memchr(struct _cyc_fat s, char c, size_t n) {
  if (!s.curr || n > _cyc_room(s))
    _cyc_invalid("memchr");
  return place(s, memchr(s.curr, c, n));
}

struct _cyc_fat Cyc_mmemchr(struct _cyc_fat s, char c, size_t n) { return Cyc_memchr(s, c, n); }

struct _cyc_fat Cyc_mstrchr(struct _cyc_fat s, char c) { return Cyc_strchr(s, c); }

struct _cyc_fat Cyc_strrchr(struct _cyc_fat s, char c) {
  size_t n = length(s);
  return place(s, n ? memrchr(s.curr, c, n) : NULL);
}

struct _cyc_fat Cyc_mstrrchr(struct _cyc_fat s, char c) { return Cyc_strrchr(s, c); }

struct _cyc_fat Cyc_strstr(struct _cyc_fat haystack, struct _cyc_fat needle) {
  if (!haystack.curr || !needle.curr)
    _cyc_invalid("strstr");
  size_t needle_length = length(needle);
  return needle_length ? place(haystack, memmem(haystack.curr, length(haystack), needle.curr, needle_length)) : haystack;
}

struct _cyc_fat Cyc_mstrstr(struct _cyc_fat haystack, struct _cyc_fat needle) { return Cyc_strstr(haystack, needle); }

/* How many of the first characters of `s` are in `set` (or are not, where `inside` is 0). */
static size_t span(struct _cyc_fat s, struct _cyc_fat set, int inside) {
  unsigned char member[256] = {0};
  size_t n = length(s), set_length = length(set), i;
  for (i = 0; i < set_length; i++)
    member[set.curr[i]] = 1;
  for (i = 0; i < n && member[s.curr[i]] == inside; i++)
    continue;
  return i;
}

size_t Cyc_strspn(struct _cyc_fat s, struct _cyc_fat set) { return span(s, set, 1); }
size_t Cyc_strcspn(struct _cyc_fat s, struct _cyc_fat set) { return span(s, set, 0); }

struct _cyc_fat Cyc_strpbrk(struct _cyc_fat s, struct _cyc_fat set) {
  size_t n = span(s, set, 0);
  return n < length(s) ? _cyc_fat_plus(s, 1, (_cyc_index)n) : _cyc_fat_null;
}

struct _cyc_fat Cyc_mstrpbrk(struct _cyc_fat s, struct _cyc_fat set) { return Cyc_strpbrk(s, set); }

/* What is left of the string of the calls before; NULL at its end. */
static struct _cyc_fat rest;

struct _cyc_fat Cyc_strtok(struct _cyc_fat s, struct _cyc_fat delimiters) {
  if (!s.curr)
    s = rest;
  s = _cyc_fat_plus(s, 1, (_cyc_index)span(s, delimiters, 1));
  size_t n = span(s, delimiters, 0);
  rest = _cyc_fat_null;
  if (n == 0)
    return _cyc_fat_null;
  if (n < length(s)) {
    s.curr[n] = 0;
    rest = _cyc_fat_plus(s, 1, (_cyc_index)n + 1);
  }
  return s;
}
