/* Streams: Cyclone's FILE around C's. */
#define _GNU_SOURCE
#include "native.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

typedef struct Cyc___cycFILE Stream;

static Stream standard[3];
Stream *Cyc_stdin = &standard[0];
Stream *Cyc_stdout = &standard[1];
Stream *Cyc_stderr = &standard[2];

/* C's standard streams are no constants, so the cells are filled before main. */
__attribute__((constructor)) static void open_standard_streams(void) {
  standard[0].file = stdin;
  standard[1].file = stdout;
  standard[2].file = stderr;
}

FILE *_cyc_stream(Stream *cell) {
  if (_cyc_unlikely(!cell->file))
    _cyc_throw_null();
  return cell->file;
}

/* C's stream lives in memory that a collector does not look at, so the cell needs no scanning. */
static Stream *wrap(FILE *file) {
  if (!file)
    return NULL;
  Stream *cell = _cyc_malloc_atomic(sizeof *cell);
  cell->file = file;
  return cell;
}

/* Takes the stream out of its cell, so that nobody uses it again. */
static FILE *take(Stream *cell) {
  FILE *file = cell->file;
  if (!file)
    _cyc_fail("the stream is closed already");
  cell->file = NULL;
  return file;
}

Stream *Cyc_fromCfile(FILE *file) { return wrap(file); }
Stream *Cyc_fopen(const char *name, const char *mode) { return wrap(fopen(name, mode)); }
Stream *Cyc_fdopen(int fd, const char *mode) { return mode ? wrap(fdopen(fd, mode)) : NULL; }
Stream *Cyc_popen(const char *command, const char *mode) { return wrap(popen(command, mode)); }
Stream *Cyc_tmpfile(void) { return wrap(tmpfile()); }
int Cyc_fclose(Stream *f) { return fclose(take(f)); }
int Cyc_pclose(Stream *f) { return pclose(take(f)); }

/* freopen closes the old stream whatever happens. The standard streams keep their cells, so that printf follows. */
static FILE *reopen(const char *name, const char *mode, Stream *f) {
  FILE *file = freopen(name, mode, take(f));
  f->file = file;
  return file;
}

Stream *Cyc_freopen(const char *name, const char *mode, Stream *f) { return reopen(name, mode, f) ? f : NULL; }

Stream *Cyc_r_freopen(struct _cyc_region *region, const char *name, const char *mode, Stream *f) {
  (void)region;
  return Cyc_freopen(name, mode, f);
}

void Cyc_clearerr(Stream *f) { clearerr(_cyc_stream(f)); }
int Cyc_feof(Stream *f) { return feof(_cyc_stream(f)); }
int Cyc_ferror(Stream *f) { return ferror(_cyc_stream(f)); }
int Cyc_fflush(Stream *f) { return fflush(f ? _cyc_stream(f) : NULL); }
int Cyc_fileno(Stream *f) { return fileno(_cyc_stream(f)); }
void Cyc_flockfile(Stream *f) { flockfile(_cyc_stream(f)); }
int Cyc_ftrylockfile(Stream *f) { return ftrylockfile(_cyc_stream(f)); }
void Cyc_funlockfile(Stream *f) { funlockfile(_cyc_stream(f)); }

/* C's stream would keep the program's buffer in memory that the collector does not see, and use it after its owner is
   gone. Only the kind of buffering is passed on; the buffer is the C library's own. */
int Cyc_setvbuf(Stream *f, struct _cyc_fat buffer, int kind, size_t size) {
  if (!buffer.curr && kind != _IONBF)
    _cyc_fail("setvbuf: no buffer");
  if (buffer.curr && _cyc_room(buffer) < size)
    _cyc_fail("setvbuf: the buffer is too short");
  return setvbuf(_cyc_stream(f), NULL, kind, size);
}

void Cyc_setbuf(Stream *f, struct _cyc_fat buffer) {
  setvbuf(_cyc_stream(f), NULL, buffer.curr ? _IOFBF : _IONBF, BUFSIZ);
}

/* Cyclone's fpos_t is the offset alone: C's may differ in size. */
struct position {
  long offset;
  long unused;
};

int Cyc_fgetpos(Stream *f, struct position *position) {
  position->offset = ftello(_cyc_stream(f));
  return position->offset < 0 ? -1 : 0;
}

int Cyc_fsetpos(Stream *f, const struct position *position) {
  return fseeko(_cyc_stream(f), position->offset, SEEK_SET);
}

int Cyc_fseek(Stream *f, long offset, int whence) { return fseek(_cyc_stream(f), offset, whence); }
int Cyc_fseeko(Stream *f, long offset, int whence) { return fseeko(_cyc_stream(f), offset, whence); }
long Cyc_ftell(Stream *f) { return ftell(_cyc_stream(f)); }
long Cyc_ftello(Stream *f) { return ftello(_cyc_stream(f)); }
void Cyc_rewind(Stream *f) { rewind(_cyc_stream(f)); }

int Cyc_fgetc(Stream *f) { return fgetc(_cyc_stream(f)); }
int Cyc_getc(Stream *f) { return getc(_cyc_stream(f)); }
int Cyc_getchar(void) { return getc(_cyc_stream(Cyc_stdin)); }
int Cyc_getc_unlocked(Stream *f) { return getc_unlocked(_cyc_stream(f)); }
int Cyc_getchar_unlocked(void) { return getc_unlocked(_cyc_stream(Cyc_stdin)); }
int Cyc_ungetc(int c, Stream *f) { return ungetc(c, _cyc_stream(f)); }

/* A word in the machine's order of bytes, as old C libraries have it. */
int Cyc_getw(Stream *f) {
  int word;
  return fread(&word, sizeof word, 1, _cyc_stream(f)) == 1 ? word : EOF;
}

int Cyc_putw(int word, Stream *f) { return fwrite(&word, sizeof word, 1, _cyc_stream(f)) == 1 ? 0 : EOF; }

struct _cyc_fat Cyc_fgets(struct _cyc_fat buffer, int size, Stream *f) {
  if (!buffer.curr)
    _cyc_fail("fgets: no buffer");
  if (size > 0 && _cyc_room(buffer) < (size_t)size)
    _cyc_fail("fgets: the buffer is too short");
  if (size <= 0 || !fgets((char *)buffer.curr, size, _cyc_stream(f)))
    return _cyc_fat_null;
  return buffer;
}

/* The length in bytes of `count` elements; throws if the buffer does not have them. */
static void need(struct _cyc_fat buffer, size_t size, size_t count, const char *text) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes > _cyc_room(buffer))
    _cyc_fail(text);
}

size_t Cyc_fread(struct _cyc_fat buffer, size_t size, size_t count, Stream *f) {
  need(buffer, size, count, "fread: the buffer is too short");
  return fread(buffer.curr, size, count, _cyc_stream(f));
}

size_t Cyc_fwrite(struct _cyc_fat buffer, size_t size, size_t count, Stream *f) {
  need(buffer, size, count, "fwrite: the buffer is too short");
  return fwrite(buffer.curr, size, count, _cyc_stream(f));
}

int Cyc_fputc(int c, Stream *f) { return fputc(c, _cyc_stream(f)); }
int Cyc_putc(int c, Stream *f) { return putc(c, _cyc_stream(f)); }
int Cyc_putc_unlocked(int c, Stream *f) { return putc_unlocked(c, _cyc_stream(f)); }
int Cyc_fputs(const char *text, Stream *f) { return fputs(text, _cyc_stream(f)); }

/* 62 to the power of 6 names: one that is free is found at once, if there is one. NULL after as many tries as a crowded directory needs. */
struct _cyc_fat Cyc_tmpnam(struct _cyc_fat buffer) {
  enum { LETTERS = 6, TRIES = 1000 };
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  char name[] = P_tmpdir "/cyc" "XXXXXX";
  if (buffer.curr && _cyc_room(buffer) < sizeof name)
    _cyc_fail("tmpnam: the buffer is too short");
  for (int tries = 0; tries < TRIES; tries++) {
    unsigned long random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
      break;
    for (int i = 0; i < LETTERS; i++, random /= sizeof letters - 1)
      name[sizeof name - 2 - i] = letters[random % (sizeof letters - 1)];
    if (access(name, F_OK) == 0)
      continue;
    if (!buffer.curr)
      return _cyc_fat_make(_cyc_copy_text(name), sizeof name);
    memcpy(buffer.curr, name, sizeof name);
    return buffer;
  }
  return _cyc_fat_null;
}

/* ---- Files that throw. */

const char _cyc_exn_FileOpenError[] = "FileOpenError";
const char _cyc_exn_FileCloseError[] = "FileCloseError";

struct open_error {
  const char *tag;
  struct _cyc_fat name;
};

Stream *Cyc_file_open(struct _cyc_fat name, struct _cyc_fat mode) {
  const char *c_name = _cyc_c_text(name), *c_mode = _cyc_c_text(mode);
  Stream *f = c_name && c_mode ? wrap(fopen(c_name, c_mode)) : NULL;
  if (f)
    return f;
  struct open_error *e = _cyc_malloc(sizeof *e);
  char *copy = _cyc_copy_text(c_name ? c_name : "");
  e->tag = _cyc_exn_FileOpenError;
  e->name = _cyc_fat_make(copy, strlen(copy) + 1);
  _cyc_throw(e);
}

void Cyc_file_close(Stream *f) {
  static struct {
    const char *tag;
  } error = {_cyc_exn_FileCloseError};
  if (Cyc_fclose(f) != 0)
    _cyc_throw(&error);
}

/* The place `offset` bytes on, at which `count` bytes can be accessed; throws Array_bounds otherwise. */
static void *window(struct _cyc_fat text, int offset, int count) {
  text = _cyc_fat_plus(text, 1, offset);
  if (count < 0 || (size_t)count > _cyc_room(text))
    _cyc_throw_bounds();
  return text.curr;
}

/* A string keeps its last element, which may be its terminator. */
int Cyc_file_string_read(Stream *f, struct _cyc_fat dest, int offset, int count) {
  void *place = window(_cyc_fat_shrink(dest, 1, 1), offset, count);
  return fread(place, 1, count, _cyc_stream(f));
}

int Cyc_file_string_write(Stream *f, struct _cyc_fat src, int offset, int count) {
  return fwrite(window(src, offset, count), 1, count, _cyc_stream(f));
}
