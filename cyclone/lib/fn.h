// Closures: a function with an environment whose type is hidden, so that closures over different things have one type. `bd is
// an effect that covers what the environment may refer to.

#ifndef _FN_H_
#define _FN_H_
__noinference__ {
#include <list.h>

namespace Fn {

extern struct Function<`arg,`res,`bd> { <`env> : regions(`env) <= `bd
  `res (@`H f)(`env,`arg);
  `env env;
};
typedef struct Function<`arg,`res,`bd> @fn_t<`arg,`res,`bd>;

extern fn_t<`arg,`res,`bd> make_fn(`res (@`H f)(`env,`arg), `env x : regions(`env) <= `bd);
extern fn_t<`arg,`res,`bd> fp2fn(`res (@`H f)(`arg) : regions(`res (@`H)(`arg)) <= `bd);

extern `res apply(fn_t<`arg,`res> f, `arg x);

// First g, then f.
extern fn_t<`a,`c,`bd2> compose(fn_t<`a,`b,`bd> g, fn_t<`b,`c,`bd> f : regions($(`a,`b,`c)@`H+`bd) <= `bd2);

// Between closures of a pair and closures that give closures.
extern fn_t<`a,fn_t<`b,`c,`bd2>,`bd2> curry(fn_t<$(`a,`b)@`H,`c,`bd> f : regions($(`a,`b,`c)@`H+`bd) <= `bd2);
extern fn_t<$(`a,`b)@,`c,`bd3> uncurry(fn_t<`a,fn_t<`b,`c,`bd2>,`bd> f : regions($(`a,`b,`c)@`H+`bd+`bd2) <= `bd3);

extern List::list_t<`b,`H> map_fn(fn_t<`a,`b,`bd> f, List::list_t<`a> x);

}
}
#endif
