/* The start of a program. */
#include "internal.h"
#include <string.h>

#ifdef _CYC_NO_GC

void _cyc_start(void) { _cyc_first_turn(); }

#else

#ifdef _CYC_THREADS
#define GC_THREADS
#endif
#include <gc.h>

void _cyc_start(void) {
  /* The heap may grow as much as the program has allocated since the last collection: half the time in the collector for a
     program that keeps a million small objects. GC_FREE_SPACE_DIVISOR in the environment still says otherwise. */
  GC_set_free_space_divisor(1);
  GC_INIT();
  /* Its warnings are about large blocks and are for the authors of collectors. */
  GC_set_warn_proc(GC_ignore_warn_proc);
  _cyc_first_turn();
}

#endif

struct _cyc_fat _cyc_arguments(int argc, char **argv) {
  /* Static: what a program never frees is not reported as a leak while something points to it. */
  static struct _cyc_fat *strings;
  _cyc_size bytes = ((_cyc_size)argc + 1) * sizeof(struct _cyc_fat);
  strings = _cyc_calloc(bytes);
  for (int i = 0; i < argc; i++)
    strings[i] = _cyc_fat_make(argv[i], strlen(argv[i]) + 1);
  return _cyc_fat_make(strings, bytes);
}
