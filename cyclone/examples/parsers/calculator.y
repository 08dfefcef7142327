// A calculator: one sum a line. A line with an error is skipped.
%{
#include <stdio.h>
#include <ctype.h>
#include <stdlib.h>
int yylex();
void yyerror(const char ?`r);
%}
%union {
  int number;
}
%token <number> NUMBER "number"
%type <number> sum
%left '+' '-'
%left '*' '/'
%right NEG
%%
lines: %empty | lines line ;
line: '\n'
  | sum '\n' { printf("= %d\n", $1); }
  | error '\n' { yyerrok; }
  ;
sum: NUMBER
  | sum '+' sum { $$ = $1 + $3; }
  | sum '-' sum { $$ = $1 - $3; }
  | sum '*' sum { $$ = $1 * $3; }
  | sum '/' sum {
      if ($3 == 0) {
        printf("division by zero\n");
        YYERROR;
      }
      $$ = $1 / $3;
    }
  | '-' sum %prec NEG { $$ = -$2; }
  | '(' sum ')' { $$ = $2; }
  ;
%%
int yylex() {
  int c = getchar();
  while (c == ' ')
    c = getchar();
  if (isdigit(c)) {
    int n = 0;
    for (; isdigit(c); c = getchar())
      n = 10 * n + c - '0';
    ungetc(c, stdin);
    yylval.number = n;
    return NUMBER;
  }
  return c == EOF ? 0 : c;
}
void yyerror(const char ?`r message) { printf("%s\n", message); }
int main() { return yyparse(); }
