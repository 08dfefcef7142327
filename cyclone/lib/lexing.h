// What the lexers that cyclex makes run on: a window on a text, which is read piece by piece.

#ifndef _LEXING_H_
#define _LEXING_H_
__noinference__ {
#include <core.h>
#include <stdio.h>

namespace Lexing {
using Core;

// A lexer throws it where no rule fits.
extern datatype exn { extern Error(string_t) };

// The characters from 0 to lex_buffer_len are text, those from lex_start_pos to lex_curr_pos the present lexeme. A lexer that
// comes to the end calls refill_buff, which moves the window and the positions, or sets lex_eof_reached.
extern struct lexbuf<`a::B> {
  void (@refill_buff)(struct lexbuf<`a> @);
  `a refill_state;

  mstring_t lex_buffer;
  int lex_buffer_len;
  int lex_abs_pos; // where in the whole text the window begins
  int lex_start_pos;
  int lex_curr_pos;
  int lex_last_pos;
  int lex_last_action;
  bool lex_eof_reached;
};
typedef struct lexbuf<`a> @Lexbuf<`a>;

// A function that puts at most so many characters where it is told, and gives how many it had: 0 at the end.
extern struct function_lexbuf_state<`b> {
  int (@read_fun)(mstring_t, int, `b);
  `b read_fun_state;
};
typedef struct function_lexbuf_state<`b> @Function_lexbuf_state<`b>;

extern struct lex_tables {
  int ?lex_base;
  int ?lex_backtrk;
  int ?lex_default;
  int ?lex_trans;
  int ?lex_check;
};
typedef struct lex_tables @LexTables;

extern Lexbuf<Function_lexbuf_state<`b>> from_function(int (@`H read_fun)(mstring_t<`H>, int, `b), `b);
extern Lexbuf<Function_lexbuf_state<FILE @`r>> from_file(FILE @`r);
// A copy of the text up to its zero.
extern Lexbuf<bool> from_string(mstring_t);

// The present lexeme, one of its characters, and where it begins and ends in the whole text.
extern mstring_t<`r> rlexeme(region_t<`r>, Lexbuf<`a>);
extern mstring_t lexeme(Lexbuf);
extern char lexeme_char(Lexbuf, int);
extern int lexeme_start(Lexbuf);
extern int lexeme_end(Lexbuf);

}
}
#endif
