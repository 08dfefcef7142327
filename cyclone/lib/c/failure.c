/* Exceptions with a text, and strings that leave C's memory. */
#include "native.h"

#include <string.h>

extern const char _cyc_exn_Core_Failure[], _cyc_exn_Core_Invalid_argument[];

struct text_exception {
  const char *tag;
  struct _cyc_fat text;
};

static _Noreturn void throw_text(const char *tag, const char *text) {
  struct text_exception *e = _cyc_malloc(sizeof *e);
  e->tag = tag;
  e->text = _cyc_fat_make(text, strlen(text) + 1);
  _cyc_throw(e);
}

void _cyc_fail(const char *text) { throw_text(_cyc_exn_Core_Failure, text); }

void _cyc_invalid(const char *text) { throw_text(_cyc_exn_Core_Invalid_argument, text); }

char *_cyc_copy_text(const char *text) {
  if (!text)
    return NULL;
  size_t size = strlen(text) + 1;
  return memcpy(_cyc_malloc_atomic(size), text, size);
}

char **_cyc_copy_texts(char **texts) {
  if (!texts)
    return NULL;
  size_t count = 0;
  while (texts[count])
    count++;
  char **copy = _cyc_calloc((count + 1) * sizeof *copy);
  for (size_t i = 0; i < count; i++)
    copy[i] = _cyc_copy_text(texts[i]);
  return copy;
}

const char *_cyc_c_text(struct _cyc_fat text) {
  if (!text.curr)
    return NULL;
  size_t length = _cyc_text_length(text);
  if (length < _cyc_room(text))
    return (const char *)text.curr;
  char *copy = _cyc_malloc_atomic(length + 1);
  memcpy(copy, text.curr, length);
  copy[length] = 0;
  return copy;
}
