#include "check.h"

int main(int argc, char **argv) {
  _cyc_start();
  if (argc == 2 && !strcmp(argv[1], "uncaught"))
    throw_uncaught();
  struct _cyc_fat arguments = _cyc_arguments(argc, argv);
  struct _cyc_fat *first = _cyc_fat_at(arguments, sizeof *first, 0);
  CHECK(_cyc_fat_count(arguments, sizeof *first) == (_cyc_size)argc + 1);
  CHECK(_cyc_fat_count(*first, 1) == strlen(argv[0]) + 1 && first->curr == (unsigned char *)argv[0]);
  CHECK(!first[argc].curr && !first[argc].last);
  fat_pointers();
  zero_terminated();
  exceptions();
  heap();
  regions();
  single_objects();
  dynamic_regions();
  original_names();
  threads();
  CHECK(!_cyc_top);
  puts("all as it should be");
  return 0;
}
