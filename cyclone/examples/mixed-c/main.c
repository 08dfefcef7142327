/* The C part: files and printing. It calls the Cyclone part, which calls it back. */
#include "settings.h"
#include <stdio.h>

void setting_found(const char *name, const char *value) { printf("%s is \"%s\"\n", name, value); }

int main(void) {
  char text[4096];
  size_t length = fread(text, 1, sizeof text, stdin);
  int count = settings_parse(text, length);
  if (count < 0) {
    fprintf(stderr, "line %d is not `name = value`\n", -count);
    return 1;
  }
  printf("%d settings\n", count);
  return 0;
}
