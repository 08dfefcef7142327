// A reader of JSON: the value as a tree.
%locations
%code requires {
#include <core.h>
#include <list.h>
extern datatype Json {
  Null,
  Truth(bool),
  Number(double),
  String(string_t),
  Array(List::list_t<datatype Json @>),
  Object(List::list_t<$(string_t, datatype Json @)@>)
};
typedef datatype Json @json_t;
}
%code {
#include <stdlib.h>
#include <ctype.h>
#include <buffer.h>
using Core;
using List;
datatype Json {
  Null,
  Truth(bool),
  Number(double),
  String(string_t),
  Array(list_t<json_t>),
  Object(list_t<$(string_t, json_t)@>)
};
int yylex();
void yyerror(const char ?`r message);
static datatype Json.Null nothing = Null;
json_t result = &nothing;
}
%union {
  json_t json;
  bool truth;
  double number;
  string_t string;
  List::list_t<json_t> items;
  List::list_t<$(string_t, json_t)@> members;
  $(string_t, json_t)@ member;
}
%token NULL_WORD "null"
%token <truth> TRUTH "true or false"
%token <number> NUMBER "number"
%token <string> STRING "string"
%type <json> value
%type <items> items elements
%type <members> members pairs
%type <member> pair
%%
text: value { result = $1; };
value: NULL_WORD { $$ = new Null; }
  | TRUTH { $$ = new Truth($1); }
  | NUMBER { $$ = new Number($1); }
  | STRING { $$ = new String($1); }
  | '[' elements ']' { $$ = new Array(imp_rev($elements)); }
  | '{' members '}' { $$ = new Object(imp_rev($2)); }
  | '[' error ']' { printf("line %d to %d: an array is skipped\n", @1.first_line, @3.last_line); $$ = new Null; }
  ;
elements: %empty { $$ = NULL; } | items ;
items: value { $$ = new List($1, NULL); } | items ',' value { $$ = new List($3, $1); } ;
members: %empty { $$ = NULL; } | pairs ;
pairs: pair { $$ = new List($1, NULL); } | pairs ',' pair { $$ = new List($3, $1); } ;
pair: STRING[key] ':' value[of] { $$ = new $($key, $of); } ;
%%
int yylex() {
  int c = getchar();
  for (; isspace(c); c = getchar())
    if (c == '\n')
      yylloc.last_line++;
  yylloc.first_line = yylloc.last_line;
  if (c == EOF)
    return 0;
  if (c == '"') {
    let text = Buffer::create(16);
    for (c = getchar(); c != '"' && c != EOF; c = getchar())
      Buffer::add_char(text, (char)(c == '\\' ? getchar() : c));
    yylval.string = (string_t)Buffer::contents(text);
    return STRING;
  }
  if (isdigit(c) || c == '-') {
    let text = Buffer::create(16);
    for (; isdigit(c) || c == '-' || c == '.'; c = getchar())
      Buffer::add_char(text, (char)c);
    ungetc(c, stdin);
    yylval.number = atof(Buffer::contents(text));
    return NUMBER;
  }
  if (isalpha(c)) {
    int first = c;
    while (isalpha(c))
      c = getchar();
    ungetc(c, stdin);
    yylval.truth = first == 't';
    return first == 'n' ? NULL_WORD : TRUTH;
  }
  return c;
}
void yyerror(const char ?`r message) { printf("line %d: %s\n", yylloc.first_line, message); }

static int larger(int x, int y) { return x > y ? x : y; }

// Prints the keys on the way.
static int depth(json_t value) {
  int deepest = 0;
  switch (value) {
  case &Array(items):
    for (; items != NULL; items = items->tl)
      deepest = larger(deepest, depth(items->hd));
    return deepest + 1;
  case &Object(members):
    for (; members != NULL; members = members->tl) {
      let &$(key, inner) = members->hd;
      printf("%s\n", key);
      deepest = larger(deepest, depth(inner));
    }
    return deepest + 1;
  default:
    return 0;
  }
}

int main() {
  if (yyparse() != 0)
    return 1;
  printf("depth %d\n", depth(result));
  return 0;
}
