/* The printf family over checked arguments: each argument brings its type, so a conversion that does not fit it throws
   Core::Invalid_argument instead of reading what is not there. Text and plain decimal numbers are made here, the rest by C's
   snprintf, one conversion at a time. */
#define _GNU_SOURCE
#include "native.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

/* The constructors of PrintArg, in order. */
enum { STRING = 1, INTEGER, DOUBLE, LONG_DOUBLE, SHORT_POINTER, LONG_POINTER };

struct string_argument { int tag; struct _cyc_fat value; };
struct integer_argument { int tag; unsigned long value; };
struct double_argument { int tag; double value; };
struct long_double_argument { int tag; long double value; };
struct short_argument { int tag; short *value; };
struct long_argument { int tag; unsigned long *value; };

/* Where the text goes: to a stream, or into memory, of which what does not fit is only counted. */
struct sink {
  FILE *stream;
  char *memory;
  size_t room;
  size_t length;
  int failed;
};

static void put(struct sink *sink, const char *text, size_t length) {
  if (length == 0)
    return;
  if (sink->stream) {
    if (length == 1 ? putc_unlocked((unsigned char)*text, sink->stream) == EOF
                    : fwrite_unlocked(text, 1, length, sink->stream) != length)
      sink->failed = 1;
  } else if (sink->length < sink->room) {
    size_t room = sink->room - sink->length;
    memcpy(sink->memory + sink->length, text, length < room ? length : room);
  }
  sink->length += length;
}

static void pad(struct sink *sink, size_t count) {
  static const char spaces[] = "                                ";
  for (; count > sizeof spaces - 1; count -= sizeof spaces - 1)
    put(sink, spaces, sizeof spaces - 1);
  put(sink, spaces, count);
}

/* One conversion: what stands between % and its letter. */
struct conversion {
  char flags[6];
  int left;
  int plain;     /* neither flags nor width nor precision */
  int width;     /* 0 if none */
  int precision; /* -1 if none */
  char length;   /* h, H for hh, l, or 0 */
  char letter;
};

/* The format and the arguments that are left. */
struct reader {
  const char *at, *end;
  struct _cyc_fat arguments;
  size_t next, count;
  const char *error;
};

/* The next argument, NULL if there is none or if it is not of one of two constructors. */
static struct _cyc_tagged *argument(struct reader *in, int tag, int or_tag, const char *error) {
  struct _cyc_tagged *a = in->next < in->count ? _cyc_argument(in->arguments, in->next++) : NULL;
  if (a && a->tag != tag && a->tag != or_tag)
    a = NULL;
  if (!a)
    in->error = error;
  return a;
}

/* A number in the format or, for *, the next argument; *found tells whether there was either. */
static int number(struct reader *in, int *found) {
  *found = 1;
  if (in->at < in->end && *in->at == '*') {
    in->at++;
    struct integer_argument *a = (void *)argument(in, INTEGER, INTEGER, "printf expected int");
    return a ? (int)a->value : 0;
  }
  const char *start = in->at;
  int n = 0;
  for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
    n = n > (INT_MAX - 9) / 10 ? INT_MAX - 9 : n * 10 + (*in->at - '0');
  *found = in->at > start;
  return n;
}

static int read_conversion(struct reader *in, struct conversion *c) {
  *c = (struct conversion){.precision = -1};
  size_t flags = 0;
  int found;
  const char *start = in->at;
  for (; in->at < in->end && *in->at && strchr("-+ #0", *in->at); in->at++) {
    if (!memchr(c->flags, *in->at, flags))
      c->flags[flags++] = *in->at;
    c->left |= *in->at == '-';
  }
  c->width = number(in, &found);
  if (c->width < 0) {
    c->width = c->width == INT_MIN ? INT_MAX : -c->width;
    if (!c->left)
      c->flags[flags++] = '-';
    c->left = 1;
  }
  if (in->at < in->end && *in->at == '.') {
    in->at++;
    c->precision = number(in, &found);
    if (!found)
      c->precision = 0;
    else if (c->precision < 0)
      c->precision = -1;
  }
  c->plain = in->at == start;
  for (; in->at < in->end && *in->at && strchr("hlLjzt", *in->at); in->at++)
    c->length = *in->at == 'h' ? (c->length == 'h' ? 'H' : 'h') : 'l';
  if (in->at == in->end)
    return 0;
  c->letter = *in->at++;
  return 1;
}

/* The conversion as C's snprintf takes it, with width and precision as arguments. */
static void specification(const struct conversion *c, const char *length, char letter, char spec[16]) {
  char *s = spec;
  *s++ = '%';
  s = stpcpy(s, c->flags);
  s = stpcpy(s, "*.*");
  s = stpcpy(s, length);
  *s++ = letter;
  *s = 0;
}

/* Puts what snprintf makes of one value, in a buffer of its own if it is long. */
#define PUT_FORMATTED(sink, spec, c, value)                                           \
  do {                                                                                \
    char buffer[512], *text = buffer;                                                 \
    int length = snprintf(buffer, sizeof buffer, spec, c->width, c->precision, value); \
    if (length >= (int)sizeof buffer) {                                               \
      text = malloc((size_t)length + 1);                                              \
      if (!text) {                                                                    \
        sink->failed = 1;                                                             \
        break;                                                                        \
      }                                                                               \
      snprintf(text, (size_t)length + 1, spec, c->width, c->precision, value);        \
    }                                                                                 \
    if (length < 0)                                                                   \
      sink->failed = 1;                                                               \
    else                                                                              \
      put(sink, text, (size_t)length);                                                \
    if (text != buffer)                                                               \
      free(text);                                                                     \
  } while (0)

static void put_decimal(struct sink *sink, unsigned long magnitude, int negative) {
  char digits[24], *at = digits + sizeof digits;
  do
    *--at = (char)('0' + magnitude % 10);
  while (magnitude /= 10);
  if (negative)
    *--at = '-';
  put(sink, at, (size_t)(digits + sizeof digits - at));
}

/* The value cut to the width that the length names, and extended again. */
static unsigned long narrowed(unsigned long value, char length, int is_signed) {
  switch (length) {
  case 'H': return is_signed ? (unsigned long)(signed char)value : (unsigned char)value;
  case 'h': return is_signed ? (unsigned long)(short)value : (unsigned short)value;
  case 0: return is_signed ? (unsigned long)(int)value : (unsigned int)value;
  default: return value;
  }
}

static void put_integer(struct sink *sink, const struct conversion *c, unsigned long value) {
  int is_signed = c->letter == 'd' || c->letter == 'i';
  value = narrowed(value, c->length, is_signed);
  if (c->plain && (is_signed || c->letter == 'u')) {
    int negative = is_signed && (long)value < 0;
    put_decimal(sink, negative ? 0 - value : value, negative);
    return;
  }
  char spec[16];
  specification(c, "l", c->letter, spec);
  PUT_FORMATTED(sink, spec, c, value);
}

static void put_text(struct sink *sink, const struct conversion *c, const char *text, size_t length) {
  size_t padding = (size_t)c->width > length ? (size_t)c->width - length : 0;
  if (!c->left)
    pad(sink, padding);
  put(sink, text, length);
  if (c->left)
    pad(sink, padding);
}

static void put_string(struct sink *sink, const struct conversion *c, struct _cyc_fat string) {
  size_t room = _cyc_room(string);
  if (c->precision >= 0 && (size_t)c->precision < room)
    room = (size_t)c->precision;
  put_text(sink, c, (const char *)string.curr, room ? strnlen((const char *)string.curr, room) : 0);
}

static void store_length(struct reader *in, struct sink *sink) {
  struct _cyc_tagged *a = argument(in, SHORT_POINTER, LONG_POINTER, "printf expected int pointer");
  if (a && a->tag == SHORT_POINTER)
    *((struct short_argument *)a)->value = (short)sink->length;
  else if (a)
    *((struct long_argument *)a)->value = sink->length;
}

static void convert(struct reader *in, struct sink *sink, const struct conversion *c) {
  char spec[16];
  struct _cyc_tagged *a;
  switch (c->letter) {
  case '%':
    put(sink, "%", 1);
    break;
  case 'd': case 'i': case 'u': case 'o': case 'x': case 'X': case 'p': case 'c':
    a = argument(in, INTEGER, INTEGER, "printf expected int");
    if (!a)
      break;
    unsigned long value = ((struct integer_argument *)a)->value;
    if (c->letter == 'c') {
      char character = (char)value;
      put_text(sink, c, &character, 1);
    } else if (c->letter == 'p') {
      specification(c, "", 'p', spec);
      PUT_FORMATTED(sink, spec, c, (void *)value);
    } else {
      put_integer(sink, c, value);
    }
    break;
  case 'f': case 'F': case 'e': case 'E': case 'g': case 'G': case 'a': case 'A':
    a = argument(in, DOUBLE, LONG_DOUBLE, "printf expected double");
    if (a && a->tag == DOUBLE) {
      specification(c, "", c->letter, spec);
      PUT_FORMATTED(sink, spec, c, ((struct double_argument *)a)->value);
    } else if (a) {
      specification(c, "L", c->letter, spec);
      PUT_FORMATTED(sink, spec, c, ((struct long_double_argument *)a)->value);
    }
    break;
  case 's':
    a = argument(in, STRING, STRING, "printf expected string");
    if (a)
      put_string(sink, c, ((struct string_argument *)a)->value);
    break;
  case 'n':
    store_length(in, sink);
    break;
  default:
    in->error = "printf: unknown conversion";
  }
}

/* Writes everything. The result is what was wrong with the arguments, or NULL. */
static const char *format(struct sink *sink, struct _cyc_fat text, struct _cyc_fat arguments) {
  struct reader in = {
      .at = (const char *)text.curr,
      .end = (const char *)text.curr + _cyc_text_length(text),
      .arguments = arguments,
      .count = _cyc_fat_count(arguments, sizeof(void *)),
  };
  while (in.at < in.end && !in.error) {
    const char *percent = memchr(in.at, '%', (size_t)(in.end - in.at));
    const char *stop = percent ? percent : in.end;
    put(sink, in.at, (size_t)(stop - in.at));
    in.at = stop;
    if (!percent)
      break;
    in.at++;
    struct conversion c;
    if (read_conversion(&in, &c) && !in.error)
      convert(&in, sink, &c);
    else if (!in.error)
      in.error = "printf: the format ends within a conversion";
  }
  return in.error;
}

static int result(const struct sink *sink) { return sink->failed || sink->length > INT_MAX ? -1 : (int)sink->length; }

int Cyc_vfprintf(struct Cyc___cycFILE *f, struct _cyc_fat text, struct _cyc_fat arguments) {
  struct sink sink = {.stream = _cyc_stream(f)};
  flockfile(sink.stream);
  const char *error = format(&sink, text, arguments);
  funlockfile(sink.stream);
  if (error)
    _cyc_invalid(error);
  return result(&sink);
}

extern struct Cyc___cycFILE *Cyc_stdout;

int Cyc_vprintf(struct _cyc_fat text, struct _cyc_fat arguments) { return Cyc_vfprintf(Cyc_stdout, text, arguments); }

/* `room` bytes at most, of which the last is the zero. */
static int format_into(struct _cyc_fat buffer, size_t room, struct _cyc_fat text, struct _cyc_fat arguments) {
  struct sink sink = {.memory = (char *)buffer.curr, .room = room ? room - 1 : 0};
  const char *error = format(&sink, text, arguments);
  if (error)
    _cyc_invalid(error);
  if (room)
    sink.memory[sink.length < sink.room ? sink.length : sink.room] = 0;
  return result(&sink);
}

/* As C99 has it: the length that the whole text has. A size beyond the buffer counts as the buffer's. */
int Cyc_vsnprintf(struct _cyc_fat buffer, size_t size, struct _cyc_fat text, struct _cyc_fat arguments) {
  size_t room = _cyc_room(buffer);
  return format_into(buffer, size < room ? size : room, text, arguments);
}

/* -1 if the buffer is too short for the text. */
int Cyc_vsprintf(struct _cyc_fat buffer, struct _cyc_fat text, struct _cyc_fat arguments) {
  size_t room = _cyc_room(buffer);
  int length = format_into(buffer, room, text, arguments);
  return length < 0 || (size_t)length >= room ? -1 : length;
}

struct _cyc_fat Cyc_vrprintf(struct _cyc_region *region, struct _cyc_fat text, struct _cyc_fat arguments) {
  char small[256];
  struct sink sink = {.memory = small, .room = sizeof small};
  const char *error = format(&sink, text, arguments);
  if (error)
    _cyc_invalid(error);
  size_t size = sink.length + 1;
  char *made = region ? _cyc_rmalloc(region, size) : _cyc_malloc_atomic(size);
  if (sink.length <= sizeof small) {
    memcpy(made, small, sink.length);
  } else {
    struct sink again = {.memory = made, .room = sink.length};
    format(&again, text, arguments);
  }
  made[sink.length] = 0;
  return _cyc_fat_make(made, size);
}

int Cyc_printf(struct _cyc_fat text, struct _cyc_fat arguments) { return Cyc_vprintf(text, arguments); }

int Cyc_fprintf(struct Cyc___cycFILE *f, struct _cyc_fat text, struct _cyc_fat arguments) {
  return Cyc_vfprintf(f, text, arguments);
}

int Cyc_sprintf(struct _cyc_fat buffer, struct _cyc_fat text, struct _cyc_fat arguments) {
  return Cyc_vsprintf(buffer, text, arguments);
}

int Cyc_snprintf(struct _cyc_fat buffer, size_t size, struct _cyc_fat text, struct _cyc_fat arguments) {
  return Cyc_vsnprintf(buffer, size, text, arguments);
}

struct _cyc_fat Cyc_aprintf(struct _cyc_fat text, struct _cyc_fat arguments) {
  return Cyc_vrprintf(NULL, text, arguments);
}

struct _cyc_fat Cyc_rprintf(struct _cyc_region *region, struct _cyc_fat text, struct _cyc_fat arguments) {
  return Cyc_vrprintf(region, text, arguments);
}

/* ---- The system's log takes formatted text too. */

/* C's openlog keeps the pointer. */
void Cyc_openlog(const char *name, int options, int facility) { openlog(strdup(name), options, facility); }

void Cyc_vsyslog(int priority, struct _cyc_fat text, struct _cyc_fat arguments) {
  syslog(priority, "%s", (const char *)Cyc_vrprintf(NULL, text, arguments).curr);
}

void Cyc_syslog(int priority, struct _cyc_fat text, struct _cyc_fat arguments) { Cyc_vsyslog(priority, text, arguments); }
