// A lexical analyser: numbers, names, strings, and the line that each is in.
#include <scanner.h>

enum token { END, NAME, NUMBER, STRING, OTHER };

enum token next(Scanner::scanner_t scanner) {
again:
  Scanner::begin(scanner);
  /*!re2c
    re2c:eof = 0;
    re2c:yyfill:enable = 0;
    digit = [0-9];
    letter = [a-zA-Z_];

    $                              { return END; }
    [ \t\n]+                       { goto again; }
    "//" [^\n]*                    { goto again; }
    digit+ ("." digit+)?           { return NUMBER; }
    letter (letter | digit)*       { return NAME; }
    ["] ([^"\\\n] | "\\" [^\n])* ["] { return STRING; }
    *                              { return OTHER; }
  */
}

int main() {
  const char *names[5] = { "end", "name", "number", "string", "other" };
  struct Scanner::Scanner scanner = Scanner::of_text(Scanner::rest_of(stdin));
  for (enum token token = next(&scanner); token != END; token = next(&scanner))
    printf("%d %s %s\n", scanner.line, names[(int)token], Scanner::lexeme(&scanner));
  return 0;
}
