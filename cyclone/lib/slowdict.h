// Dictionaries as splay trees once had them: the interface of dict.h for the heap alone.

#ifndef _SLOWDICT_H_
#define _SLOWDICT_H_
__noinference__ {
#include <core.h>
#include <list.h>

namespace SlowDict {
using List;

extern struct Dict<`a,`b>;
typedef struct Dict<`a,`b> @ dict_t<`a,`b>;

extern datatype exn { extern Present };
extern datatype exn { extern Absent };

extern dict_t<`a,`b> empty(int (@`H cmp)(`a,`a));
extern dict_t<`a,`b> singleton(int (@`H cmp)(`a,`a), `a k, `b v);
extern bool is_empty(dict_t d);
extern bool member(dict_t<`a> d, `a k);

// insert_new throws Present, delete_present and lookup throw Absent.
extern dict_t<`a,`b> insert(dict_t<`a,`b> d, `a k, `b v);
extern dict_t<`a,`b> insert_new(dict_t<`a,`b> d, `a k, `b v);
extern dict_t<`a,`b> inserts(dict_t<`a,`b> d, list_t<$(`a,`b)@> l);
extern dict_t<`a,`b> delete(dict_t<`a,`b> d, `a k);
extern dict_t<`a,`b> delete_present(dict_t<`a,`b> d, `a k);
extern `b lookup(dict_t<`a,`b> d, `a k);
extern Core::opt_t<`b> lookup_opt(dict_t<`a,`b> d, `a k);

extern `c fold(`c f(`a,`b,`c), dict_t<`a,`b> d, `c accum);
extern `c fold_c(`c f(`d,`a,`b,`c), `d env, dict_t<`a,`b> d, `c accum);
extern void app(`c f(`a,`b), dict_t<`a,`b> d);
extern void app_c(`c f(`d,`a,`b), `d env, dict_t<`a,`b> d);
extern void iter(void f(`a,`b), dict_t<`a,`b> d);
extern void iter_c(void f(`c,`a,`b), `c env, dict_t<`a,`b> d);
extern dict_t<`a,`c> map(`c f(`b), dict_t<`a,`b> d);
extern dict_t<`a,`c> map_c(`c f(`d,`b), `d env, dict_t<`a,`b> d);

// Some key with its value, or Absent; all of them in order.
extern $(`a,`b)@ choose(dict_t<`a,`b> d);
extern list_t<$(`a,`b)@> to_list(dict_t<`a,`b> d);

}
}
#endif
