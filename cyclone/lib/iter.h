// Iterators: what is still to come of a collection, hidden behind a function that gives one element at a time.

#ifndef _ITER_H_
#define _ITER_H_
__noinference__ {
#include <core.h>

namespace Iter {

struct Iter<`a::A,`bd::E> {
  <`env> : regions(`env) <= `bd
  `env env;
  bool (@next)<`r>(`env env, `a @`r dest);
};
typedef struct Iter<`a,`bd> iter_t<`a,`bd>;

// Stores the next element at dest; false, and nothing stored, when there is none.
bool next(iter_t<`a::A>, `a @);

}
}
#endif
