// Arrays behind fat pointers, with the operations that lists have. Functions with `_c` hand their function an environment;
// those with `imp_` change the array.

#ifndef _ARRAY_H_
#define _ARRAY_H_
__noinference__ {
#include <list.h>

namespace Array {

typedef int (@cmpfn_t<`a,`r1::E,`r2::E>)(`a @`r1, `a @`r2);

// Sort the first len elements; msort keeps the order of equal ones.
extern void qsort<`a::B,`r::E>(cmpfn_t<`a,`r,`r>, `a ?`r x, int len);
extern void msort(cmpfn_t<`a::B,`H,`H>, `a ?`H x, int len);

extern `a? from_list(List::list_t<`a> l);
extern List::list_t<`a> to_list(`a ? x);
extern `a ?copy(`a::B ?x);
extern `a ?rev_copy(`a::B ? x);
extern void imp_rev(`a::B ? x);
// n elements from start on, or all that follow without n.
extern `a ?extract(`a::B ? x, int start, int *n);

extern `b ?map(`b f(`a), `a ? x);
extern `b ?map_c(`b f(`c,`a), `c env, `a ? x);
extern void imp_map(`a f(`a), `a ? x);
extern void imp_map_c(`a f(`b,`a), `b env, `a ? x);

// Two arrays of different lengths where equal ones are needed.
extern datatype exn { extern Array_mismatch };
extern `c ?map2(`c f(`a,`b), `a ? x, `b ? y);

extern void app(`b f(`a), `a ?`r x);
extern void app_c(`c f(`a,`b), `a env, `b ? x);
extern void iter(void f(`a), `a ? x);
extern void iter_c(void f(`b,`a), `b env, `a ? x);
extern void app2(`c f(`a,`b), `a ? x, `b ? y);
extern void app2_c(`d f(`a,`b,`c), `a env, `b ? x, `c ? y);
extern void iter2(void f(`a,`b), `a ? x, `b ? y);
extern void iter2_c(void f(`a,`b,`c), `a env, `b ? x, `c ? y);

extern `a fold_left(`a f(`a,`b), `a accum, `b ? x);
extern `a fold_left_c(`a f(`c,`a,`b), `c env, `a accum, `b ? x);
extern `b fold_right(`b f(`a,`b), `a ? x, `b accum);
extern `b fold_right_c(`b f(`c,`a,`b), `c env, `a ? x, `b accum);

extern bool forall(bool pred(`a), `a ? x);
extern bool forall_c(bool pred(`a,`b), `a env, `b ? x);
extern bool exists(bool pred(`a), `a ? x);
extern bool exists_c(bool pred(`a,`b), `a env, `b ? x);

extern $(`a,`b) ?zip(`a ?`r1 x, `b ? y);
extern $(`a?,`b?) split($(`a,`b) ? x);

extern bool memq(`a ?l, `a x);
extern bool mem(int cmp(`a,`a), `a ?l, `a x);

}
}
#endif
