/* Zero-terminated arrays: how long they are, and whether an index stays within. */
#include "internal.h"
#include <string.h>

struct sixteen_bytes {
  _cyc_size low, high;
};

#define SCAN(type, is_zero)                                         \
  {                                                                 \
    const type *a = p;                                              \
    while (from < limit && !(is_zero(a[from])))                     \
      from++;                                                       \
    return from;                                                    \
  }
#define PLAIN(element) ((element) == 0)
#define BOTH(element) (((element).low | (element).high) == 0)

/* The first index from `from` on, below `limit`, whose element is zero; else `limit`. */
static _cyc_size first_zero(const void *p, _cyc_size size, _cyc_size from, _cyc_size limit) {
  switch (size) {
  case 1: SCAN(unsigned char, PLAIN)
  case 2: SCAN(unsigned short, PLAIN)
  case 4: SCAN(unsigned int, PLAIN)
  case 8: SCAN(unsigned long, PLAIN)
  case 16: SCAN(struct sixteen_bytes, BOTH)
  default: _cyc_throw_bounds();
  }
}

_cyc_size _cyc_zero_count(const void *p, _cyc_size size, _cyc_size known) {
  if (!p)
    return 0;
  if (size == 1)
    return known + strlen((const char *)p + known - 1);
  return first_zero(p, size, known - 1, ~(_cyc_size)0) + 1;
}

void _cyc_zero_scan(const void *p, _cyc_size size, _cyc_size from, _cyc_index index, const char *file, unsigned line) {
  if (index < 0 || first_zero(p, size, from, (_cyc_size)index) < (_cyc_size)index)
    _cyc_throw_bounds_at(file, line);
}
