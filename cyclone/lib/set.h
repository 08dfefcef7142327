// Sets, ordered by a function. Functions give new sets; those with `imp_` change the set; a name with `r` in front takes the
// region of the set.

#ifndef _SET_H_
#define _SET_H_
__noinference__ {
#include <list.h>
#include <iter.h>

namespace Set {
using List;

extern struct Set<`a,`r::E>;
typedef struct Set<`a,`r> @`r set_t<`a,`r>;

extern set_t<`a> empty(int (@`H cmp)(`a,`a));
extern set_t<`a,`r> rempty(region_t<`r> r, int (@`H cmp)(`a,`a));
extern set_t<`a> singleton(int (@`H cmp)(`a,`a), `a x);
extern set_t<`a> from_list(int (@`H cmp)(`a,`a), list_t<`a> l);

extern set_t<`a> insert(set_t<`a,`H> s, `a elt);
extern void imp_insert(set_t<`a,`H> s, `a elt);
extern set_t<`a,`r> rinsert(region_t<`r> r, set_t<`a,`r> s, `a elt);
extern void imp_rinsert(region_t<`r> r, set_t<`a,`r> s, `a elt);
extern set_t<`a> delete(set_t<`a,`H> s, `a elt);
// Gives the element that was in the set; Absent where there is none.
extern `a imp_delete(set_t<`a,`H> s, `a elt);

extern set_t<`a> union_two(set_t<`a,`H> s1, set_t<`a,`H> s2);
extern set_t<`a> intersect(set_t<`a,`H> s1, set_t<`a,`H> s2);
extern set_t<`a> diff(set_t<`a,`H> s1, set_t<`a,`H> s2);

extern int cardinality(set_t s);
extern bool is_empty(set_t s);
extern bool member(set_t<`a> s, `a elt);
extern bool subset(set_t<`a> s1, set_t<`a> s2);
// The smaller set comes first; sets of one size in the order of their elements.
extern int setcmp(set_t<`a> s1, set_t<`a> s2);
extern bool equals(set_t<`a> s1, set_t<`a> s2);

// In order.
extern list_t<`a,`r> to_list(set_t<`a,`r>);
extern `b fold(`b f(`a,`b), set_t<`a> s, `b accum);
extern `b fold_c(`b f(`c,`a,`b), `c env, set_t<`a> s, `b accum);
extern void app(`b f(`a), set_t<`a> s);
extern void iter(void f(`a), set_t<`a> s);
extern void iter_c(void f(`c,`a), `c env, set_t<`a> s);
extern Iter::iter_t<`a,regions(`a)+`r1+`r2> make_iter(region_t<`r1> rgn, set_t<`a,`r2> s);

extern datatype exn { extern Absent };
// The first element; Absent where there is none.
extern `a choose(set_t<`a> s);

}
}
#endif
