// Command lines described by a table: for each flag its name, whether the name is only a beginning, what to print behind the
// name, what to do, and a description.

#ifndef _ARG_H_
#define _ARG_H_
__noinference__ {
#include <list.h>
#include <core.h>

namespace Arg {

// Bad is for the functions of a table: parse reports its text with the usage.
extern datatype exn { extern Error, extern Bad(string_t) };

extern datatype Spec {
  Unit_spec(void (@f)()),                       // call
  Flag_spec(void (@f)(string_t)),               // call with the flag itself
  FlagString_spec(void (@f)(string_t,string_t)), // call with the flag and the next argument
  Set_spec(bool@),
  Clear_spec(bool@),
  String_spec(void (@f)(string_t)),             // call with the next argument
  Int_spec(void (@f)(int)),                     // call with the next argument, a number
  Rest_spec(void (@f)(string_t))                // call with each argument that follows
};
typedef datatype Spec @`r spec_t<`r>;
typedef List::list_t<$(string_t,bool,string_t,spec_t<`r1>,string_t)@`r1,`r2> speclist_t<`r1,`r2>;

// Prints a text and the table on standard error.
extern void usage(speclist_t<`r1,`r2>, string_t);

// The index of the argument being looked at.
extern int current;

// Goes through the arguments after the current one. anonfun gets those that are no flags, anonflagfun the flags that the table
// does not have: false from it reports an unknown flag and stops.
extern void parse(speclist_t<`r1,`r2> specs, void anonfun(string_t<`H>), bool anonflagfun(string_t<`H>), string_t errmsg,
                  string_t<`H> ?`H args);

}
}
#endif
