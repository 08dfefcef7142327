# A skeleton with which bison writes a parser in Cyclone: `cyc yacc` calls bison with it.
#
# The parser is the usual one: a stack of states, a stack of values beside it, bison's tables. Values are what %union lists, as a
# union with tags: what an action reads as one member and was stored as another throws Match_Exn. Both stacks are fat pointers,
# which grow. An action is Cyclone; $$, $1, $<type>1, $name, @$ and @1 are those of bison.

m4_include(b4_skeletonsdir/[c.m4])

# Messages always say what was expected; grammars that ask for it are not refused.
m4_define([b4_asked], b4_percent_define_get([parse.error], [[detailed]]))

m4_define([b4_language], [[Cyclone]])
m4_define([b4_comment], [m4_ifval([$1], [// $1])])
m4_define([b4_case], [  case $1:
$2
    break;
])

# The tables.
m4_define([b4_integral_parser_table_define],
[static const int yy$1@{@} = {
  $2
};
])

# Values and places: yytop is the index of the top of the stacks, yylen the length of the rule that is reduced.
m4_define([b4_symbol_value],
[m4_ifval([$3], [$1.$3],
          [m4_ifval([$2], [b4_symbol_if([$2], [has_type], [$1.b4_symbol([$2], [type])], [$1])], [$1])])])
m4_define([b4_lhs_value], [b4_symbol_value([yyval], [$1], [$2])])
m4_define([b4_rhs_value], [b4_symbol_value([yyvs@{yytop - b4_subtract([$1], [$2])@}], [$3], [$4])])
m4_define([b4_lhs_location], [(yyloc)])
m4_define([b4_rhs_location], [(yyls@{yytop - b4_subtract([$1], [$2])@})])

# What the parser and its header both declare.
m4_define([b4_token_member], [b4_token_visible_if([$1], [  b4_symbol([$1], [id]) = b4_symbol([$1], [code]),
])])
m4_define([b4_cyclone_declarations],
[b4_percent_code_get([[requires]])[
enum yytokentype {
  YYEMPTY = -2,
]b4_symbol_foreach([b4_token_member])[};
]m4_ifdef([b4_union_members],
[@@tagged union YYSTYPE {
  int yynothing;
b4_user_union_members
};
typedef @@tagged union YYSTYPE YYSTYPE;],
[typedef b4_percent_define_get([api.value.type]) YYSTYPE;])[
extern YYSTYPE yylval;
]b4_locations_if([[struct YYLTYPE { int first_line; int first_column; int last_line; int last_column; };
typedef struct YYLTYPE YYLTYPE;
extern YYLTYPE yylloc;
]])[extern int yynerrs;
int yyparse();
]b4_percent_code_get([[provides]])])

b4_header_if([b4_output_begin([b4_spec_header_file])[
// Made by cyc yacc from ]b4_file_name[.

#ifndef ]b4_cpp_guard(b4_spec_header_file)[
#define ]b4_cpp_guard(b4_spec_header_file)[
]b4_cyclone_declarations[
#endif
]b4_output_end])

b4_output_begin([b4_parser_file_name])[
// Made by cyc yacc from ]b4_file_name[.

#include <core.h>
#include <stdio.h>
#include <string.h>
]b4_percent_code_get([[top]])[
]b4_user_pre_prologue[
]b4_header_if([[#include "]m4_bpatsubst(m4_quote(b4_spec_header_file), [.*/], [])["]], [b4_cyclone_declarations])[
]b4_user_post_prologue[
]b4_percent_code_get[

]m4_ifdef([b4_union_members], [[YYSTYPE yylval = { .yynothing = 0 };]], [[YYSTYPE yylval;]])[
]b4_locations_if([[YYLTYPE yylloc = { 1, 1, 1, 1 };
]])[int yychar = YYEMPTY;
int yynerrs = 0;

#define YYFINAL ]b4_final_state_number[
#define YYLAST ]b4_last[
#define YYNTOKENS ]b4_tokens_number[
#define YYMAXUTOK ]b4_code_max[
#define YYPACT_NINF ]b4_pact_ninf[
#define YYTABLE_NINF ]b4_table_ninf[
#define YY_NULLPTR NULL

static const int yytranslate[] = {
  ]b4_translate[
};
]b4_parser_tables_define[
static const char *yytname[] = {
  ]b4_tname[
};

#define YYACCEPT return 0
#define YYABORT return 1
#define YYERROR goto yyerrorlab
#define yyerrok (yyerrstatus = 0)
#define yyclearin (yychar = YYEMPTY)
#define YYRECOVERING() (yyerrstatus != 0)

// The name of a symbol without the quotes that bison puts around it.
static char ?yysymbol(int yytoken) {
  const char ?yyname = yytname[yytoken];
  size_t yylength = strlen(yyname);
  if (yylength > 2 && yyname[0] == '"')
    return (char ?)substring(yyname, 1, yylength - 2);
  return strdup(yyname);
}

static void yysyntax_error(int yystate, int yytoken) {
  char ?yymessage = aprintf("syntax error, unexpected %s", yysymbol(yytoken));
  int yyn = yypact[yystate], yycount = 0;
  if (yyn != YYPACT_NINF)
    for (int yyx = yyn < 0 ? -yyn : 0; yyx < YYNTOKENS && yyx + yyn <= YYLAST; yyx++)
      if (yycheck[yyx + yyn] == yyx && yyx != 1 && yytable[yyx + yyn] != YYTABLE_NINF)
        yycount++;
  if (0 < yycount && yycount < 5) {
    const char *yybetween = ", expecting";
    for (int yyx = yyn < 0 ? -yyn : 0; yyx < YYNTOKENS && yyx + yyn <= YYLAST; yyx++)
      if (yycheck[yyx + yyn] == yyx && yyx != 1 && yytable[yyx + yyn] != YYTABLE_NINF) {
        yymessage = aprintf("%s%s %s", yymessage, yybetween, yysymbol(yyx));
        yybetween = " or";
      }
  }
  yyerror(yymessage);
}

int yyparse() {
  int yysize = 200;
  int ?@@nozeroterm yyss = new { for yyi < 200 : 0 };
  YYSTYPE ?@@nozeroterm yyvs = new { for yyi < 200 : yylval };
  YYSTYPE yyval = yylval;
]b4_locations_if([[  YYLTYPE ?@@nozeroterm yyls = new { for yyi < 200 : yylloc };
  YYLTYPE yyloc = yylloc;
]])[  int yytop = 0, yystate = 0, yyerrstatus = 0, yytoken = 0, yyn = 0, yylen = 0;
  yychar = YYEMPTY;
  yynerrs = 0;
]m4_ifdef([b4_initial_action], [b4_dollar_pushdef([yylval], [], [], [yylloc])b4_user_initial_action
b4_dollar_popdef])[
  while (yystate != YYFINAL) {
    // What the state does with the next token: yyn is the state that a shift leads to, or minus the rule to reduce.
    yyn = yypact[yystate];
    bool yydefault = yyn == YYPACT_NINF;
    if (!yydefault) {
      if (yychar == YYEMPTY)
        yychar = yylex();
      if (yychar < 0)
        yychar = 0;
      yytoken = yychar <= YYMAXUTOK ? yytranslate[yychar] : 2;
      yyn += yytoken;
      yydefault = yyn < 0 || yyn > YYLAST || yycheck[yyn] != yytoken;
    }
    bool yyfailed = false;
    if (yydefault) {
      yyn = -yydefact[yystate];
      yyfailed = yyn == 0;
    } else {
      yyn = yytable[yyn];
      yyfailed = yyn == YYTABLE_NINF;
    }

    if (!yyfailed && yyn < 0) {
      yyn = -yyn;
      yylen = yyr2[yyn];
      if (yylen > 0)
        yyval = yyvs[yytop + 1 - yylen];
]b4_locations_if([[      if (yylen > 0) {
        yyloc = yyls[yytop + 1 - yylen];
        yyloc.last_line = yyls[yytop].last_line;
        yyloc.last_column = yyls[yytop].last_column;
      } else {
        yyloc = yyls[yytop];
        yyloc.first_line = yyloc.last_line;
        yyloc.first_column = yyloc.last_column;
      }
]])[      switch (yyn) {
]b4_user_actions[
      default:
        break;
      }
      yytop -= yylen;
      yyn = yyr1[yyn] - YYNTOKENS;
      int yyto = yypgoto[yyn] + yyss[yytop];
      yyn = 0 <= yyto && yyto <= YYLAST && yycheck[yyto] == yyss[yytop] ? yytable[yyto] : yydefgoto[yyn];
    } else if (!yyfailed) {
      if (yyerrstatus > 0)
        yyerrstatus--;
      yychar = YYEMPTY;
      yyval = yylval;
]b4_locations_if([[      yyloc = yylloc;
]])[    } else {
      if (yyerrstatus == 0) {
        yynerrs++;
        if (yychar == YYEMPTY)
          yytoken = 0;
        yysyntax_error(yystate, yytoken);
      } else if (yyerrstatus == 3) {
        if (yychar == 0)
          return 1;
        yychar = YYEMPTY;
      }
      yylen = 0;
      if (false) {
        // An action said YYERROR: what its rule was made of goes.
      yyerrorlab:
        ;
      }
      yytop -= yylen;
      yyerrstatus = 3;
      // Back to a state in which `error` may come.
      while (true) {
        yystate = yyss[yytop];
        yyn = yypact[yystate];
        if (yyn != YYPACT_NINF) {
          yyn += 1;
          if (0 <= yyn && yyn <= YYLAST && yycheck[yyn] == 1 && yytable[yyn] > 0)
            break;
        }
        if (yytop == 0)
          return 1;
        yytop--;
      }
      yyn = yytable[yyn];
      yyval = yylval;
]b4_locations_if([[      yyloc = yylloc;
]])[    }

    yystate = yyn;
    yytop++;
    if (yytop == yysize) {
      let yyoldss = yyss;
      let yyoldvs = yyvs;
      yyss = new { for yyi < 2 * yysize : yyi < yysize ? yyoldss[yyi] : 0 };
      yyvs = new { for yyi < 2 * yysize : yyi < yysize ? yyoldvs[yyi] : yylval };
]b4_locations_if([[      let yyoldls = yyls;
      yyls = new { for yyi < 2 * yysize : yyi < yysize ? yyoldls[yyi] : yylloc };
]])[      yysize *= 2;
    }
    yyss[yytop] = yystate;
    yyvs[yytop] = yyval;
]b4_locations_if([[    yyls[yytop] = yyloc;
]])[  }
  return 0;
}
]b4_percent_code_get([[epilogue]])[]b4_epilogue[]b4_output_end
