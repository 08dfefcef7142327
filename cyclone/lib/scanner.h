// Scanners: a text and where a lexical analyser is in it. `cyc lex` makes the analyser, from rules of re2c: these macros are how its
// code reads, with the scanner in a variable `scanner`.

#ifndef _SCANNER_H_
#define _SCANNER_H_
__noinference__ {
#include <core.h>
#include <stdio.h>
#include <string.h>

namespace Scanner {

struct Scanner<`r::E> {
  const char ?@nozeroterm`r text;
  size_t end;
  size_t start; // of the lexeme
  size_t at;    // what is read next
  size_t back;  // where the longest match so far ends
  int line;     // of the lexeme, from 1
};
typedef struct Scanner<`r> @`r2 scanner_t<`r,`r2>;

// All that is left of a stream.
extern mstring_t rest_of(FILE @);
// A scanner at the beginning of a text.
extern struct Scanner<`r> of_text(const char ?`r text);
// The next lexeme begins here.
extern void begin(scanner_t);
// The lexeme, copied.
extern mstring_t lexeme(scanner_t);
// The next character; 0 at the end.
extern unsigned char peek(scanner_t);

}

#define YYCTYPE unsigned char
#define YYPEEK() Scanner::peek(scanner)
#define YYSKIP() (scanner->at++)
#define YYBACKUP() (scanner->back = scanner->at)
#define YYRESTORE() (scanner->at = scanner->back)
#define YYLESSTHAN(n) (scanner->end - scanner->at < (n))

}
#endif
