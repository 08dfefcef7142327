// Singly linked lists whose cells have one owner, and whose elements may have one too. The cells are those of list.h with
// another alias qualifier: `Slist::list_t<int>` is `List::list_t<int,`H,UNIQUE>`, and what is shared goes on to List as it is.
//
// Three kinds of parameters tell what happens to a list:
//   view_t     it is looked at. A list that is owned, counted or shared can be given; an owned one is lent for the call, and
//              owned elements with it: a function over elements `int *\U` is called with `int *`. To look at it in a loop:
//                { let alias <`s> view_t<int *`s,`s> all = l; for (; all != NULL; all = all->tl) show(all->hd); }
//   any_t      cells of any qualifier are taken and given back; nothing is allocated or freed.
//   list_t     the list is taken.
// A function that compares elements must leave them as they are; one that takes them says so by `consume`. If a function
// throws, what was taken is lost, as far as there is no collector.

#ifndef _SLIST_H_
#define _SLIST_H_
__noinference__ {
#include <core.h>
#include <list.h>

namespace Slist {

typedef List::list_t<`a,`r,`q> any_t<`a::B\T,`r,`q::Q>;
typedef List::list_t<`a,`r,UNIQUE> list_t<`a::B\T,`r>;
typedef List::List_t<`a,`r,UNIQUE> List_t<`a::B\T,`r>;

// What nobody can store anything in.
struct View<`a,`r> { `a const hd; struct View<`a,`r> const *`r const tl; };
typedef struct View<`a,`r> const *`r view_t<`a,`r>;

// Making lists: one cell in front of others; of the arguments, of an array, of f(0) to f(n-1), of what another list holds.
// rqcons makes cells of any qualifier: rqcons(Core::heap_region, Core::refcnt_qual, x, l).
extern list_t<`a,`H> cons(`a::B\T hd, list_t<`a,`H> tl) __attribute__((consume(1), consume(2)));
extern list_t<`a,`r> rcons(region_t<`r>, `a::B\T hd, list_t<`a,`r> tl) __attribute__((consume(2), consume(3)));
extern any_t<`a,`r,`q> rqcons(region_t<`r>, aqual_t<`q\T>, `a::B\T hd, any_t<`a,`r,`q> tl)
  __attribute__((consume(3), consume(4)));
extern list_t<`a,`H> list(... `a);
extern list_t<`a,`H> from_array(`a ? arr);
extern list_t<`a,`H> tabulate(int n, `a::B\T f(int));
extern list_t<`a,`H> tabulate_c(int n, `a::B\T f(`b,int), `b env);
extern list_t<`a,`H> copy(view_t<`a> x);

// From and to shared lists, with new cells.
extern list_t<`a,`H> from_list(List::list_t<`a> x);
extern List::list_t<`a,`H> to_list(view_t<`a> x);

// Looking at lists. Elements are numbered from 0; nth throws List::Nth.
extern int length(view_t<`a> x);
extern `a nth(view_t<`a> x, int n);
extern `a ?`H to_array(view_t<`a> x);
extern void iter(void f(`a), view_t<`a> x);
extern void iter_c(void f(`b,`a), `b env, view_t<`a> x);
extern `a fold_left(`a f(`a,`b), `a accum, view_t<`b> x);
extern `a fold_left_c(`a f(`c,`a,`b), `c env, `a accum, view_t<`b> x);
extern `b fold_right(`b f(`a,`b), view_t<`a> x, `b accum);
extern bool forall(bool pred(`a), view_t<`a> x);
extern bool exists(bool pred(`a), view_t<`a> x);
extern bool memq(view_t<`a> l, `a x);
extern bool mem(int compare(`a,`a), view_t<`a> l, `a x);

// New lists: of a function's results, which may be owned; of the elements that satisfy a predicate; the other way round; of
// the elements of two lists.
extern list_t<`b,`H> map(`b::B\T f(`a), view_t<`a> x);
extern list_t<`b,`H> map_c(`b::B\T f(`c,`a), `c env, view_t<`a> x);
extern list_t<`a,`H> filter(bool f(`a), view_t<`a> x);
extern list_t<`a,`H> rev(view_t<`a> x);
extern list_t<`a,`H> append(view_t<`a> x, view_t<`a> y);

// The same cells in another order; the cells of x and then those of y; those of two sorted lists, or one.
extern any_t<`a,`r,`q> imp_rev(any_t<`a::B\T,`r,`q\T> x) __attribute__((consume(1)));
extern any_t<`a,`r,`q> imp_append(any_t<`a::B\T,`r,`q\T> x, any_t<`a,`r,`q> y) __attribute__((consume(1), consume(2)));
extern list_t<`a,`r> imp_merge(int cmp(`a,`a), list_t<`a::B\T,`r> a, list_t<`a,`r> b) __attribute__((consume(2), consume(3)));
extern list_t<`a,`r> imp_merge_sort(int cmp(`a,`a), list_t<`a::B\T,`r> x) __attribute__((consume(2)));
extern list_t<`a,`H> insert(int cmp(`a,`a), `a::B\T x, list_t<`a,`H> l) __attribute__((consume(2), consume(3)));

// The first n cells and those behind them; all of them and NULL where there are fewer.
extern $(any_t<`a,`r,`q>, any_t<`a,`r,`q>) split_at(any_t<`a::B\T,`r,`q\T> x, int n) __attribute__((consume(1)));

// The list with x in the place of element n, and what was there; or x itself if there is no such element.
extern $(any_t<`a,`r,`q>, `a) swap_nth(any_t<`a::B\T,`r,`q\T> l, int n, `a x) __attribute__((consume(1), consume(3)));

// The first element, and the others; its cell is freed. An empty list has none: Core::Not_found is thrown.
extern $(`a, list_t<`a,`H>) pop(list_t<`a::B\T,`H> l) __attribute__((consume(1)));

// The end of a list: f gets its elements, and the cells are freed. free_cells is for elements that nobody owns. drop gives
// back a list with counted cells: those to which no other list leads are freed.
extern void free(void f(`a::B\T) __attribute__((consume(1))), list_t<`a::B\T,`H> l) __attribute__((consume(2)));
extern void rfree(region_t<`r> h, void f(`a::B\T) __attribute__((consume(1))), list_t<`a::B\T,`r> l : single(`r))
  __attribute__((consume(3)));
extern void free_cells(list_t<`a,`H> l) __attribute__((consume(1)));
extern void drop(any_t<`a,`H,REFCNT> l) __attribute__((consume(1)));

}
}
#endif
