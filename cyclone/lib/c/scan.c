/* The scanf family over checked arguments: what is read is stored as the argument's own type, and never past the end of a
   buffer. */
#define _GNU_SOURCE
#include "native.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The constructors of ScanfArg, in order. */
enum { SHORT = 1, UNSIGNED_SHORT, INT, UNSIGNED_INT, STRING, DOUBLE, FLOAT, CHARACTERS, LONG, UNSIGNED_LONG };

struct pointer_argument { int tag; void *value; };
struct buffer_argument { int tag; struct _cyc_fat value; };

/* Where characters come from: a stream, or memory. */
struct source {
  FILE *stream;
  const char *at, *end;
  size_t read;
};

static int next(struct source *in) {
  int c = in->stream ? getc_unlocked(in->stream) : in->at < in->end ? (unsigned char)*in->at++ : EOF;
  in->read += c != EOF;
  return c;
}

static void back(struct source *in, int c) {
  if (c == EOF)
    return;
  in->read--;
  if (in->stream)
    ungetc(c, in->stream);
  else
    in->at--;
}

/* How a scan ended. */
enum outcome { MATCHED, MISMATCH, END_OF_INPUT, TOO_LONG, BAD_ARGUMENT, BAD_FORMAT };

struct conversion {
  int suppressed;
  int width; /* INT_MAX if none */
  char letter;
  unsigned char set[256]; /* the characters of %[..] */
};

static void skip_spaces(struct source *in) {
  int c;
  do
    c = next(in);
  while (c != EOF && isspace(c));
  back(in, c);
}

/* A number's characters, as long as they continue one. */
struct numeral {
  char text[512];
  int length, width;
  int c; /* the character in hand */
};

static void keep(struct source *in, struct numeral *n) {
  n->text[n->length++] = (char)n->c;
  n->c = n->length < n->width ? next(in) : EOF;
}

static void begin(struct source *in, struct numeral *n, int width) {
  n->length = 0;
  n->width = width < (int)sizeof n->text - 1 ? width : (int)sizeof n->text - 1;
  n->c = n->width > 0 ? next(in) : EOF;
  if (n->c == '+' || n->c == '-')
    keep(in, n);
}

static int keep_digits(struct source *in, struct numeral *n, int base) {
  int before = n->length;
  for (;;) {
    int digit = isdigit(n->c) ? n->c - '0' : isalpha(n->c) ? tolower(n->c) - 'a' + 10 : INT_MAX;
    if (digit >= base)
      return n->length > before;
    keep(in, n);
  }
}

static void finish(struct source *in, struct numeral *n) {
  back(in, n->c);
  n->text[n->length] = 0;
}

static void store_integer(struct pointer_argument *to, unsigned long value) {
  switch (to->tag) {
  case SHORT: case UNSIGNED_SHORT: *(short *)to->value = (short)value; break;
  case INT: case UNSIGNED_INT: *(int *)to->value = (int)value; break;
  default: *(unsigned long *)to->value = value;
  }
}

static int is_integer(const struct _cyc_tagged *a) {
  return a->tag <= UNSIGNED_INT || a->tag == LONG || a->tag == UNSIGNED_LONG;
}

static enum outcome scan_integer(struct source *in, const struct conversion *c, struct _cyc_tagged *to) {
  int base = c->letter == 'o' ? 8 : c->letter == 'x' || c->letter == 'X' || c->letter == 'p' ? 16 : c->letter == 'i' ? 0 : 10;
  int is_signed = c->letter == 'd' || c->letter == 'i';
  struct numeral n;
  int found = 0;
  if (to && !is_integer(to))
    return BAD_ARGUMENT;
  begin(in, &n, c->width);
  if (n.c == EOF && !n.length)
    return END_OF_INPUT;
  if (n.c == '0' && (base == 0 || base == 16)) {
    keep(in, &n);
    found = 1;
    if (n.c == 'x' || n.c == 'X') {
      keep(in, &n);
      base = 16;
      found = 0;
    } else if (base == 0) {
      base = 8;
    }
  }
  if (base == 0)
    base = 10;
  found |= keep_digits(in, &n, base);
  finish(in, &n);
  if (!found)
    return MISMATCH;
  if (to)
    store_integer((struct pointer_argument *)to, is_signed ? (unsigned long)strtol(n.text, NULL, base)
                                                           : strtoul(n.text, NULL, base));
  return MATCHED;
}

static enum outcome scan_float(struct source *in, const struct conversion *c, struct _cyc_tagged *to) {
  struct numeral n;
  if (to && to->tag != DOUBLE && to->tag != FLOAT)
    return BAD_ARGUMENT;
  begin(in, &n, c->width);
  if (n.c == EOF && !n.length)
    return END_OF_INPUT;
  int found = keep_digits(in, &n, 10);
  if (n.c == '.') {
    keep(in, &n);
    found |= keep_digits(in, &n, 10);
  }
  if (found && (n.c == 'e' || n.c == 'E')) {
    keep(in, &n);
    if (n.c == '+' || n.c == '-')
      keep(in, &n);
    found = keep_digits(in, &n, 10);
  }
  finish(in, &n);
  if (!found)
    return MISMATCH;
  double value = strtod(n.text, NULL);
  if (to && to->tag == DOUBLE)
    *(double *)((struct pointer_argument *)to)->value = value;
  else if (to)
    *(float *)((struct pointer_argument *)to)->value = (float)value;
  return MATCHED;
}

/* %s, %[ and %c. A string gets a zero behind, %c does not; %c takes exactly its width. */
static enum outcome scan_text(struct source *in, const struct conversion *c, struct _cyc_tagged *to) {
  int is_characters = c->letter == 'c';
  size_t width = is_characters && c->width == INT_MAX ? 1 : (size_t)c->width;
  struct _cyc_fat buffer = _cyc_fat_null;
  size_t room = SIZE_MAX, length = 0;
  int character;
  if (to) {
    if (to->tag != STRING && to->tag != CHARACTERS)
      return BAD_ARGUMENT;
    buffer = ((struct buffer_argument *)to)->value;
    room = _cyc_room(buffer);
    if (!is_characters && room == 0)
      return TOO_LONG;
    /* The last element of a string is its terminator's. */
    room -= !is_characters || (to->tag == STRING && room);
  }
  for (;;) {
    character = length < width ? next(in) : EOF;
    if (character == EOF ||
        (c->letter == 's' && isspace(character)) || (c->letter == '[' && !c->set[character]))
      break;
    if (length == room)
      return TOO_LONG;
    if (to)
      buffer.curr[length] = (unsigned char)character;
    length++;
  }
  if (length < width)
    back(in, character);
  if (length == 0 || (is_characters && length < width))
    return character == EOF ? END_OF_INPUT : MISMATCH;
  if (to && !is_characters)
    buffer.curr[length] = 0;
  return MATCHED;
}

/* What stands between % and the letter, and the set of %[..]; NULL at a format that ends too early. */
static const char *read_conversion(const char *at, const char *end, struct conversion *c) {
  *c = (struct conversion){.width = INT_MAX};
  if (at < end && *at == '*') {
    c->suppressed = 1;
    at++;
  }
  if (at < end && isdigit((unsigned char)*at)) {
    c->width = 0;
    for (; at < end && isdigit((unsigned char)*at); at++)
      c->width = c->width > (INT_MAX - 9) / 10 ? INT_MAX - 9 : c->width * 10 + (*at - '0');
    if (c->width == 0)
      c->width = INT_MAX;
  }
  while (at < end && *at && strchr("hlLjzt", *at))
    at++;
  if (at == end)
    return NULL;
  c->letter = *at++;
  if (c->letter != '[')
    return at;
  int inverted = at < end && *at == '^';
  at += inverted;
  memset(c->set, inverted, sizeof c->set);
  for (int first = 1; at < end && (first || *at != ']'); first = 0) {
    unsigned char from = (unsigned char)*at++, to = from;
    if (end - at > 1 && *at == '-' && at[1] != ']') {
      to = (unsigned char)at[1];
      at += 2;
    }
    for (int i = from; i <= to; i++)
      c->set[i] = !inverted;
  }
  return at < end ? at + 1 : NULL;
}

static enum outcome scan_one(struct source *in, const struct conversion *c, struct _cyc_tagged *to) {
  if (c->letter != 'c' && c->letter != '[')
    skip_spaces(in);
  switch (c->letter) {
  case 'd': case 'i': case 'u': case 'o': case 'x': case 'X': case 'p':
    return scan_integer(in, c, to);
  case 'f': case 'F': case 'e': case 'E': case 'g': case 'G': case 'a': case 'A':
    return scan_float(in, c, to);
  case 's': case 'c': case '[':
    return scan_text(in, c, to);
  default:
    return BAD_FORMAT;
  }
}

/* The number of values stored, or EOF where the input ends before the first. */
static int scan(struct source *in, struct _cyc_fat format, struct _cyc_fat arguments, enum outcome *outcome) {
  const char *at = (const char *)format.curr, *end = at + _cyc_text_length(format);
  size_t used = 0, count = _cyc_fat_count(arguments, sizeof(void *));
  int stored = 0;
  struct conversion c;
  *outcome = MATCHED;
  while (at < end) {
    if (isspace((unsigned char)*at)) {
      skip_spaces(in);
      at++;
      continue;
    }
    if (*at != '%' || (end - at > 1 && at[1] == '%')) {
      if (*at == '%') {
        skip_spaces(in);
        at++;
      }
      int character = next(in);
      if (character != (unsigned char)*at++) {
        back(in, character);
        return stored || character != EOF ? stored : EOF;
      }
      continue;
    }
    at = read_conversion(at + 1, end, &c);
    if (!at) {
      *outcome = BAD_FORMAT;
      return stored;
    }
    struct _cyc_tagged *to = NULL;
    if (!c.suppressed) {
      if (used == count) {
        *outcome = BAD_ARGUMENT;
        return stored;
      }
      to = _cyc_argument(arguments, used++);
    }
    if (c.letter == 'n') {
      if (to && is_integer(to))
        store_integer((struct pointer_argument *)to, in->read);
      continue;
    }
    *outcome = scan_one(in, &c, to);
    if (*outcome != MATCHED)
      return stored || *outcome != END_OF_INPUT ? stored : EOF;
    stored += to != NULL;
  }
  return stored;
}

static int finished(int stored, enum outcome outcome) {
  if (outcome == TOO_LONG)
    _cyc_throw_bounds();
  if (outcome == BAD_ARGUMENT)
    _cyc_invalid("scanf: an argument is missing or has the wrong type");
  if (outcome == BAD_FORMAT)
    _cyc_invalid("scanf: unknown conversion");
  return stored;
}

int Cyc_vfscanf(struct Cyc___cycFILE *f, struct _cyc_fat format, struct _cyc_fat arguments) {
  struct source in = {.stream = _cyc_stream(f)};
  enum outcome outcome;
  flockfile(in.stream);
  int stored = scan(&in, format, arguments, &outcome);
  funlockfile(in.stream);
  return finished(stored, outcome);
}

int Cyc_vsscanf(struct _cyc_fat text, struct _cyc_fat format, struct _cyc_fat arguments) {
  const char *at = (const char *)text.curr;
  struct source in = {.at = at, .end = at + _cyc_text_length(text)};
  enum outcome outcome;
  int stored = scan(&in, format, arguments, &outcome);
  return finished(stored, outcome);
}

extern struct Cyc___cycFILE *Cyc_stdin;

int Cyc_scanf(struct _cyc_fat format, struct _cyc_fat arguments) { return Cyc_vfscanf(Cyc_stdin, format, arguments); }

int Cyc_fscanf(struct Cyc___cycFILE *f, struct _cyc_fat format, struct _cyc_fat arguments) {
  return Cyc_vfscanf(f, format, arguments);
}

int Cyc_sscanf(struct _cyc_fat text, struct _cyc_fat format, struct _cyc_fat arguments) {
  return Cyc_vsscanf(text, format, arguments);
}
