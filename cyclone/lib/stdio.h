// Streams. A FILE is a cell of our own that holds C's stream, so that a stream closed once is known to be closed: its use
// throws Null_Exception, and closing it again Core::Failure. So does a buffer that is too short.

#ifndef _STDIO_H_
#define _STDIO_H_
__noinference__ {
#include <bits/types.h>
#include <bits/printf.h>

#define BUFSIZ 8192
#define EOF (-1)
#define FILENAME_MAX 4096
#define FOPEN_MAX 16
#define L_ctermid 9
#define L_tmpnam 20
#define P_tmpdir "/tmp"
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define TMP_MAX 238328
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2

typedef struct __fpos { long __state[2]; } fpos_t;

extern struct __cycFILE;
typedef struct __cycFILE FILE;
extern FILE @stdout;
extern FILE @stdin;
extern FILE @stderr;

namespace Cstdio {
  extern "C" struct __abstractFILE;
}

// A FILE for a stream that C code opened.
extern FILE *`H fromCfile(struct Cstdio::__abstractFILE *`H cf);

extern FILE *fopen(const char @, const char @);
extern FILE *fdopen(int, const char *);
extern FILE *freopen(const char *, const char @, FILE @`H);
extern FILE *`r r_freopen(region_t<`r>, const char *, const char @, FILE @`r);
extern FILE *popen(const char @, const char @);
extern FILE *tmpfile(void);
// A name that no file has, in the buffer or a new one. Another program may take it before it is used: tmpfile's cannot be taken.
extern char ?tmpnam(char ?`H);
#define L_tmpnam 20
extern int fclose(FILE @);
extern int pclose(FILE @);

extern void clearerr(FILE @);
extern int feof(FILE @);
extern int ferror(FILE @);
extern int fflush(FILE *);
extern int fileno(FILE @);
extern void flockfile(FILE @);
extern int ftrylockfile(FILE @);
extern void funlockfile(FILE @);
extern int setvbuf(FILE @, char ? @nozeroterm`H, int, size_t);
extern void setbuf(FILE @, char ? @nozeroterm`H);

extern int fgetpos(FILE @, fpos_t @);
extern int fsetpos(FILE @, const fpos_t @);
extern int fseek(FILE @, long, int);
extern int fseeko(FILE @, off_t, int);
extern long ftell(FILE @);
extern off_t ftello(FILE @);
extern void rewind(FILE @);

extern int fgetc(FILE @);
extern int getc(FILE @);
extern int getchar(void);
extern int getc_unlocked(FILE @);
extern int getchar_unlocked(void);
extern int ungetc(int, FILE @);
extern int getw(FILE @);
extern char ? @nozeroterm`r fgets(char ? @nozeroterm`r, int, FILE @);
extern size_t fread(char ? @nozeroterm, size_t, size_t, FILE @);

extern int fputc(int, FILE @);
extern int putc(int, FILE @);
extern "C" int putchar(int);
extern int putc_unlocked(int, FILE @);
extern "C" int putchar_unlocked(int);
extern int putw(int, FILE @);
extern int fputs(const char @, FILE @);
extern "C" int puts(const char @);
extern size_t fwrite(const char ? @nozeroterm, size_t, size_t, FILE @);

extern "C" void perror(const char *);
extern "C" int remove(const char @);
extern "C" int rename(const char @, const char @);

// Formatted output. aprintf and rprintf allocate a string of the right length; vrprintf and the other `v` functions
// take the arguments as an array.
extern int printf(const char ?, ... inject parg_t)
  __attribute__((format(printf,1,2)));
extern int fprintf(FILE @, const char ?, ... inject parg_t)
  __attribute__((format(printf,2,3)));
extern int sprintf(char ? @nozeroterm, const char ?, ... inject parg_t)
  __attribute__((format(printf,2,3)));
extern int snprintf(char ? @nozeroterm, size_t, const char ?, ... inject parg_t)
  __attribute__((format(printf,3,4)));
extern char ?aprintf(const char ?, ... inject parg_t)
  __attribute__((format(printf,1,2)));
extern char ?`r rprintf(region_t<`r>, const char ?, ... inject parg_t)
  __attribute__((format(printf,2,3)));
extern int vprintf(const char ?, parg_t ?)
  __attribute__((format(printf,1,0)));
extern int vfprintf(FILE @, const char ?, parg_t ?)
  __attribute__((format(printf,2,0)));
extern int vsprintf(char ? @nozeroterm, const char ?, parg_t ?)
  __attribute__((format(printf,2,0)));
extern int vsnprintf(char ? @nozeroterm, size_t, const char ?, parg_t ?)
  __attribute__((format(printf,3,0)));
extern char ?`r vrprintf(region_t<`r>, const char ?, parg_t ?)
  __attribute__((format(printf,2,0)));

// Formatted input.
extern int scanf(const char ?, ... inject sarg_t)
  __attribute__((format(scanf,1,2)));
extern int fscanf(FILE @, const char ?, ... inject sarg_t)
  __attribute__((format(scanf,2,3)));
extern int sscanf(const char ?, const char ?, ... inject sarg_t)
  __attribute__((format(scanf,2,3)));
extern int vfscanf(FILE @, const char ?, sarg_t ?)
  __attribute__((format(scanf,2,0)));
extern int vsscanf(const char ?, const char ?, sarg_t ?)
  __attribute__((format(scanf,2,0)));

// Files that throw instead of returning an error; reads and writes at an offset of a string.
extern datatype exn {
  extern FileOpenError(const char ?);
  extern FileCloseError;
};
extern FILE @file_open(const char ?, const char ?);
extern void file_close(FILE @);
extern int file_string_read(FILE @, char ?dest, int dest_offset, int max_count);
extern int file_string_write(FILE @, const char ?src, int src_offset, int max_count);

}
#endif
