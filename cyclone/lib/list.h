// Singly linked lists, generic in the element, the region and the alias qualifier of the cells. A name with `r` in front
// allocates the result in the given region instead of the heap; one with `_c` behind hands its function an environment as
// the first argument; `imp_` changes the cells of its argument instead of making new ones.

#ifndef _LIST_H_
#define _LIST_H_
__noinference__ {
#include <core.h>

namespace List {

struct List<`a::B\T,`r,`q::Q> { `a hd; struct List<`a,`r,`q> *@aqual(`q) `r tl; };

// A list that may be empty, and one that is not.
typedef struct List<`a,`r,`q> *@aqual(`q) `r list_t<`a,`r,`q>;
typedef struct List<`a,`r,`q> @@aqual(`q) `r List_t<`a,`r,`q>;

// List_mismatch: two lists of different lengths where equal ones are needed. Nth: no element of that number.
extern datatype exn { extern List_mismatch };
extern datatype exn { extern Nth };

// Making lists: of the arguments, of another list, of an array, of f(0) to f(n-1).
extern list_t<`a> list(... `a);
extern list_t<`a,`r> rlist(region_t<`r>, ... `a);
extern list_t<`a> copy(list_t<`a> x);
extern list_t<`a,`r> rcopy(region_t<`r>, list_t<`a> x);
extern list_t<`a> from_array(`a ? arr);
list_t<`a,`r> rfrom_array(region_t<`r> r, `a ? arr);
extern list_t<`a> tabulate(int n, `a f(int));
extern list_t<`a> tabulate_c(int n, `a f(`b,int), `b env);
extern list_t<`a,`r> rtabulate(region_t<`r> r, int n, `a f(int));
extern list_t<`a,`r> rtabulate_c(region_t<`r> r, int n, `a f(`b,int), `b env);

// Looking at lists. Elements are numbered from 0.
extern int length(list_t<`a::B\T> x);
extern `a hd(List_t<`a> x);
extern list_t<`a,`r> tl(List_t<`a::B\T,`r> x);
extern `a nth(list_t<`a> x, int n);
extern list_t<`a,`r> nth_tail(list_t<`a,`r> x, int i);
extern `a ?`H to_array(list_t<`a> x);
extern `a ?`r rto_array(region_t<`r> r, list_t<`a> x);

// New lists of the results of a function.
extern list_t<`b> map(`b f(`a), list_t<`a> x);
extern list_t<`b,`r> rmap(region_t<`r>, `b f(`a), list_t<`a> x);
extern list_t<`b> map_c(`b f(`c,`a), `c env, list_t<`a> x);
extern list_t<`b,`r> rmap_c(region_t<`r>, `b f(`c,`a), `c env, list_t<`a> x);
extern list_t<`c> map2(`c f(`a,`b), list_t<`a> x, list_t<`b> y);
extern list_t<`c,`r> rmap2(region_t<`r>, `c f(`a,`b), list_t<`a> x, list_t<`b> y);
extern list_t<`d> map3(`d f(`a,`b,`c), list_t<`a> x, list_t<`b> y, list_t<`c> z);
extern list_t<`d,`r> rmap3(region_t<`r>, `d f(`a,`b,`c), list_t<`a> x, list_t<`b> y, list_t<`c> z);

// Calls of a function for its effect: `app` for one with a result, `iter` for one without.
extern void app(`b f(`a), list_t<`a> x);
extern void app_c(`c f(`a,`b), `a, list_t<`b> x);
extern void app2(`c f(`a,`b), list_t<`a> x, list_t<`b> y);
extern void app2_c(`d f(`a,`b,`c), `a env, list_t<`b> x, list_t<`c> y);
extern void iter(void f(`a), list_t<`a> x);
extern void iter_c(void f(`b,`a), `b env, list_t<`a> x);
extern void iter2(void f(`a,`b), list_t<`a> x, list_t<`b> y);
extern void iter2_c(void f(`a,`b,`c), `a env, list_t<`b> x, list_t<`c> y);

// f(..f(f(accum,x1),x2)..) and f(x1,f(x2,..f(xn,accum))).
extern `a fold_left(`a f(`a,`b), `a accum, list_t<`b> x);
extern `a fold_left_c(`a f(`c,`a,`b), `c, `a accum, list_t<`b> x);
extern `b fold_right(`b f(`a,`b), list_t<`a> x, `b accum);
extern `b fold_right_c(`b f(`c,`a,`b), `c, list_t<`a> x, `b accum);

// Reversal and concatenation. The cells of y become part of the result of append and revappend.
extern list_t<`a> rev(list_t<`a> x);
extern list_t<`a,`r> rrev(region_t<`r>, list_t<`a> x);
extern list_t<`a,`r> imp_rev(list_t<`a::B\T,`r> x);
extern list_t<`a> revappend(list_t<`a,`r> x, list_t<`a,`H> y);
extern list_t<`a,`r> rrevappend(region_t<`r>, list_t<`a> x, list_t<`a,`r> y);
extern list_t<`a> append(list_t<`a> x, list_t<`a,`H> y);
extern list_t<`a,`r> rappend(region_t<`r>, list_t<`a> x, list_t<`a,`r> y);
extern list_t<`a,`r> imp_append(list_t<`a::B\T,`r> x, list_t<`a,`r> y);
extern list_t<`a> flatten(list_t<list_t<`a,`H>> x);
extern list_t<`a,`r> rflatten(region_t<`r>, list_t<list_t<`a,`r>> x);

// Stable sorting, and merging of sorted lists.
extern list_t<`a> merge_sort(int cmp(`a,`a), list_t<`a> x);
extern list_t<`a,`r> rmerge_sort(region_t<`r>, int cmp(`a,`a), list_t<`a> x);
extern list_t<`a,`r> rimp_merge_sort(int cmp(`a,`a), list_t<`a,`r> x);
extern list_t<`a> merge(int cmp(`a,`a), list_t<`a,`H> x, list_t<`a,`H> y);
extern list_t<`a,`r3> rmerge(region_t<`r3>, int cmp(`a,`a), list_t<`a> a, list_t<`a> b);
extern list_t<`a,`r> imp_merge(int cmp(`a,`a), list_t<`a,`r> a, list_t<`a,`r> b);

// Questions about all elements, about some element; the first result that is not NULL.
extern bool forall(bool pred(`a), list_t<`a> x);
extern bool forall_c(bool pred(`a,`b), `a env, list_t<`b> x);
extern bool exists(bool pred(`a), list_t<`a> x);
extern bool exists_c(bool pred(`a,`b), `a env, list_t<`b> x);
extern `c *`r find_c(`c::A\T *`r pred(`a,`b), `a env, list_t<`b> x);

// Lists of pairs and triples, and pairs and triples of lists.
extern list_t<$(`a,`b)@`H,`H> zip(list_t<`a> x, list_t<`b> y);
extern list_t<$(`a,`b)@`r2,`r1> rzip(region_t<`r1> r1, region_t<`r2> r2, list_t<`a> x, list_t<`b> y);
extern list_t<$(`a,`b,`c)@`H,`H> zip3(list_t<`a> x, list_t<`b> y, list_t<`c> z);
extern list_t<$(`a,`b,`c)@`r2,`r1> rzip3(region_t<`r1> r1, region_t<`r2> r2, list_t<`a> x, list_t<`b> y, list_t<`c> z);
extern $(list_t<`a>,list_t<`b>) split(list_t<$(`a,`b)@> x);
extern $(list_t<`a>,list_t<`b>,list_t<`c>) split3(list_t<$(`a,`b,`c)@> x);
extern $(list_t<`a,`r1>,list_t<`b,`r2>) rsplit(region_t<`r1> r1, region_t<`r2> r2, list_t<$(`a,`b)@> x);
extern $(list_t<`a,`r3>,list_t<`b,`r4>,list_t<`c,`r5>)
  rsplit3(region_t<`r3> r3, region_t<`r4> r4, region_t<`r5> r5, list_t<$(`a,`b,`c)@> x);

// Membership and association, by == or by an order; assoc and assoc_cmp throw Core::Not_found.
extern bool memq(list_t<`a> l, `a x);
extern bool mem(int compare(`a,`a), list_t<`a> l, `a x);
extern `b assoc(list_t<$(`a,`b)@> l, `a k);
extern `b assoc_cmp(int cmp(`a,`c), list_t<$(`a,`b)@> l, `c x);
extern bool mem_assoc(list_t<$(`a,`b)@> l, `a x);
extern bool mem_assoc_cmp(int cmp(`a,`c), list_t<$(`a,`b)@> l, `c x);

// The list without the first element that is equal, or Core::Not_found; in a sorted list, an element that is there twice;
// the elements that satisfy f.
extern list_t<`a,`r::E> delete(list_t<`a,`r> l, `a x);
extern list_t<`a,`r> delete_cmp(int cmp(`a,`a), list_t<`a,`r> l, `a x);
extern Core::opt_t<`c> check_unique(int cmp(`c,`c), list_t<`c> x);
extern list_t<`a> filter(bool f(`a), list_t<`a> x);
extern list_t<`a> filter_c(bool f(`b,`a), `b env, list_t<`a> x);
extern list_t<`a,`r> rfilter(region_t<`r> r, bool f(`a), list_t<`a> x);
extern list_t<`a,`r> rfilter_c(region_t<`r> r, bool f(`b,`a), `b env, list_t<`a> x);

// The lexicographic order; whether l1 is the beginning of l2.
extern int list_cmp(int cmp(`a,`b), list_t<`a> l1, list_t<`b> l2);
extern bool list_prefix(int cmp(`a,`b), list_t<`a> l1, list_t<`b> l2);

}
}
#endif
