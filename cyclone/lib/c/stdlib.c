/* stdlib.h and math.h: what C's own functions cannot do with Cyclone's types. */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

long long Cyc_atoll(const char *text) { return atoll(text); }

/* What is freed may still be reachable through another pointer. */
void Cyc_free(struct _cyc_fat memory) { (void)memory; }

/* Merges the sorted halves of what lies at `array`, by way of as much memory at `aside`. Whatever is compared, in whatever way, stays inside: C
   libraries' own functions count on an order, and leave the array if there is none. What compares may throw: the array is changed
   only after its last word. */
static void sort(char *array, size_t count, size_t size, int (*compare)(const void *, const void *), char *aside) {
  size_t half = count / 2;
  if (!half)
    return;
  sort(array, half, size, compare, aside);
  sort(array + half * size, count - half, size, compare, aside);
  char *left = array, *middle = array + half * size, *right = middle, *end = array + count * size;
  for (char *to = aside; left < middle || right < end; to += size) {
    char **from = right == end || (left < middle && compare(left, right) <= 0) ? &left : &right;
    memcpy(to, *from, size);
    *from += size;
  }
  memcpy(array, aside, count * size);
}

void Cyc_qsort(struct _cyc_fat array, size_t count, unsigned long size, int (*compare)(const void *, const void *)) {
  if (!array.curr)
    _cyc_fail("qsort: no array");
  if (_cyc_fat_count(array, size) < count)
    _cyc_fail("qsort: the array is too short");
  if (count < 2)
    return;
  char *aside = _cyc_malloc(_cyc_bytes(count, size));
  sort((char *)array.curr, count, size, compare, aside);
  _cyc_free(aside);
}

/* C's own putenv keeps the pointer. The copy stays for as long as the environment may hold it. */
int Cyc_putenv(const char *setting) {
  char *copy = strdup(setting);
  return copy ? putenv(copy) : -1;
}

/* By putenv: some C libraries free what their setenv replaces, to which getenv's results lead. */
int Cyc_setenv(const char *name, const char *value, int overwrite) {
  if (!*name || strchr(name, '=')) {
    errno = EINVAL;
    return -1;
  }
  if (!overwrite && getenv(name))
    return 0;
  size_t length = strlen(name), more = strlen(value) + 1;
  char *setting = malloc(length + 1 + more);
  if (!setting)
    return -1;
  memcpy(setting, name, length);
  setting[length] = '=';
  memcpy(setting + length + 1, value, more);
  return putenv(setting);
}

char *Cyc_setlocale(int category, const char *locale) { return _cyc_copy_text(setlocale(category, locale)); }

void *Cyc___assert_fail(struct _cyc_fat condition, struct _cyc_fat file, unsigned line) {
  fprintf(stderr, "%s:%u: Assertion `%s' failed.\n", _cyc_c_text(file), line, _cyc_c_text(condition));
  exit(255);
}

/* The classes by Cyclone's numbers, which are glibc's; other C libraries number them differently. */
int _cyc_fpclassify(double x) {
  switch (fpclassify(x)) {
  case FP_NAN: return 0;
  case FP_INFINITE: return 1;
  case FP_ZERO: return 2;
  case FP_SUBNORMAL: return 3;
  default: return 4;
  }
}

int _cyc_signbit(double x) { return signbit(x) != 0; }
