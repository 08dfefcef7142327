// Dictionaries: finite maps that a change leaves alone, as it gives a new map. Keys are ordered by a function. A name with `r`
// in front takes the region that its result is to be in; `_c` behind means a function with an environment.

#ifndef _DICT_H_
#define _DICT_H_
__noinference__ {
#include <stdio.h>
#include <list.h>
#include <iter.h>

namespace Dict {
using List;

extern struct T<`a::B,`b::B,`r::E>;
typedef struct T<`a,`b,`r> const *`r tree<`a,`b,`r>;
extern struct Dict<`a,`b,`r::E> {
  int (@`H rel)(`a,`a);
  region_t<`r> r;
  tree<`a,`b,`r> t;
};
typedef struct Dict<`a,`b,`r> dict_t<`a,`b,`r>;

// A key that is there already; one that is not there.
extern datatype exn { extern Present };
extern datatype exn { extern Absent };

extern dict_t<`a,`b> empty(int (@`H cmp)(`a,`a));
extern dict_t<`a,`b,`r> rempty(region_t<`r>, int (@`H cmp)(`a,`a));
extern dict_t<`a,`b> singleton(int (@`H cmp)(`a,`a), `a k, `b v);
extern dict_t<`a,`b,`r> rsingleton(region_t<`r>, int (@`H cmp)(`a,`a), `a k, `b v);
// The same map, of which new parts will be in another region.
extern dict_t<`a,`b,`r+`r2> rshare(region_t<`r>, dict_t<`a,`b,`r2>);
extern dict_t<`a,`b> copy(dict_t<`a,`b>);
extern dict_t<`a,`b,`r> rcopy(region_t<`r>, dict_t<`a,`b>);

extern bool is_empty(dict_t d);
extern int cardinality(dict_t d);
extern bool member(dict_t<`a> d, `a k);

// insert replaces what the key had; insert_new throws Present.
extern dict_t<`a,`b,`r> insert(dict_t<`a,`b,`r> d, `a k, `b v);
extern dict_t<`a,`b,`r> insert_new(dict_t<`a,`b,`r> d, `a k, `b v);
extern dict_t<`a,`b,`r> inserts(dict_t<`a,`b,`r> d, list_t<$(`a,`b)@> l);

// Without the key, if it was there; rdelete_same has its result in the region of its argument.
extern dict_t<`a,`b> delete(dict_t<`a,`b>, `a);
extern dict_t<`a,`b,`r> rdelete(region_t<`r>, dict_t<`a,`b>, `a);
extern dict_t<`a,`b,`r> rdelete_same(dict_t<`a,`b,`r>, `a);

// The value of a key: or Absent; by another type of key; or NULL; or false.
extern `b lookup(dict_t<`a,`b> d, `a k);
extern `b lookup_other(dict_t<`a,`b> d, int cmp(`c,`a), `c k);
extern `b*`r lookup_opt(dict_t<`a,`b,`r> d, `a k);
extern bool lookup_bool(dict_t<`a,`b> d, `a k, `b @ans);

// In the order of the keys.
extern `c fold(`c f(`a,`b,`c), dict_t<`a,`b> d, `c accum);
extern `c fold_c(`c f(`d,`a,`b,`c), `d env, dict_t<`a,`b> d, `c accum);
extern void app(`c f(`a,`b), dict_t<`a,`b> d);
extern void app_c(`c f(`d,`a,`b), `d env, dict_t<`a,`b> d);
extern void iter(void f(`a,`b), dict_t<`a,`b> d);
extern void iter_c(void f(`c,`a,`b), `c env, dict_t<`a,`b> d);
extern bool forall_c(bool f(`c,`a,`b), `c env, dict_t<`a,`b> d);

// Over the keys that both maps have.
extern void iter2(void (@f)(`b,`b), dict_t<`a,`b> d1, dict_t<`a,`b> d2);
extern void iter2_c(void (@f)(`c,`b,`b), `c env, dict_t<`a,`b> d1, dict_t<`a,`b> d2);
extern `c fold2_c(`c (@f)(`d,`a,`b1,`b2,`c), `d env, dict_t<`a,`b1> d1, dict_t<`a,`b2> d2, `c accum);
extern bool forall_intersect(bool f(`a,`b,`b), dict_t<`a,`b> d1, dict_t<`a,`b> d2);

extern dict_t<`a,`c> map(`c f(`b), dict_t<`a,`b> d);
extern dict_t<`a,`c,`r> rmap(region_t<`r>, `c f(`b), dict_t<`a,`b> d);
extern dict_t<`a,`c> map_c(`c f(`d,`b), `d env, dict_t<`a,`b> d);
extern dict_t<`a,`c,`r> rmap_c(region_t<`r>, `c f(`d,`b), `d env, dict_t<`a,`b> d);
extern dict_t<`a,`b> filter(bool f(`a,`b), dict_t<`a,`b> d);
extern dict_t<`a,`b,`r> rfilter(region_t<`r>, bool f(`a,`b), dict_t<`a,`b> d);
extern dict_t<`a,`b> filter_c(bool f(`c,`a,`b), `c env, dict_t<`a,`b> d);
extern dict_t<`a,`b,`r> rfilter_c(region_t<`r>, bool f(`c,`a,`b), `c env, dict_t<`a,`b> d);

// f decides the value of a key that both have. difference: the keys of d1 that d2 does not have.
extern dict_t<`a,`b,`r> union_two_c(`b (@f)(`c,`a,`b,`b), `c env, dict_t<`a,`b,`r> d1, dict_t<`a,`b,`r> d2);
extern dict_t<`a,`b,`r> intersect(`b (@f)(`a,`b,`b), dict_t<`a,`b,`r> d1, dict_t<`a,`b,`r> d2);
extern dict_t<`a,`b,`r> intersect_c(`b (@f)(`c,`a,`b,`b), `c env, dict_t<`a,`b,`r> d1, dict_t<`a,`b,`r> d2);
extern dict_t<`a,`b> difference(dict_t<`a,`b> d1, dict_t<`a,`b> d2);
extern dict_t<`a,`b,`r> rdifference(region_t<`r>, dict_t<`a,`b> d1, dict_t<`a,`b> d2);

// The first key with its value, or Absent; all of them in order.
extern $(`a,`b)@`r rchoose(region_t<`r>, dict_t<`a,`b> d);
extern list_t<$(`a,`b)@> to_list(dict_t<`a,`b> d);
extern list_t<$(`a,`b)@`r,`r> rto_list(region_t<`r>, dict_t<`a,`b> d);
extern Iter::iter_t<$(`a,`b),regions($(`a,`b))+`r1+`r2> make_iter(region_t<`r1> rgn, dict_t<`a,`b,`r2> d);

// Writing to a stream and reading back: the number of keys, and each key and value as the functions write and read them.
extern `c marshal(region_t<`r> rgn, `c env,
                  `c (write_key<`a,`c,`r1::E>)(`c, FILE @`r1, `a),
                  `c (write_val<`b,`c,`r1::E>)(`c, FILE @`r1, `b),
                  FILE @ fp, dict_t<`a,`b> dict);
extern dict_t<`a,`b> unmarshal(region_t<`r> rgn, `c::A @`H env, int (@`H cmp)(`a,`a),
                               `a (read_key<`a,`c::A>)(`c @`H, FILE @`r2),
                               `b (read_val<`b,`c::A>)(`c @`H, FILE @`r2),
                               FILE @`r2 fp);

}
}
#endif
