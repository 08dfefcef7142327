// Hash tables that grow: from keys to values, with the order and the hash that the table was made with. A key may be inserted
// again: the newer value hides the older one until it is removed.

#ifndef _HASHTABLE_H_
#define _HASHTABLE_H_
__noinference__ {
#include <core.h>

namespace Hashtable {

extern struct Table<`a,`b,`r::E>;
typedef struct Table<`a,`b,`r> @`r table_t<`a,`b,`r>;

extern table_t<`a,`b> create(int sz, int (@`H cmp)(`a,`a), int (@`H hash)(`a));
extern table_t<`a,`b,`r> rcreate(region_t<`r>, int sz, int (@`H cmp)(`a,`a), int (@`H hash)(`a));

extern void insert(table_t<`a,`b>, `a key, `b val);
extern void remove(table_t<`a,`b>, `a key);

// The value of a key: Core::Not_found without one; NULL without one; with another type of key that hashes and compares
// alike; false without one.
extern `b lookup(table_t<`a,`b>, `a key);
extern `b*`r lookup_opt(table_t<`a,`b,`r>, `a key);
extern `b*`r lookup_other_opt(table_t<`a,`b,`r>, `c key, int cmp(`c,`a), int hash(`c));
extern bool try_lookup(table_t<`a,`b>, `a key, `b@data);

extern void iter(void f(`a,`b), table_t<`a,`b>);
extern void iter_c(void f(`a,`b,`c), table_t<`a,`b> t, `c env);

// Twice as many buckets.
extern void resize(table_t<`a,`b>);
extern unsigned int num_buckets(table_t<`a,`b> t);

extern int hash_string(string_t);
extern int hash_stringptr(stringptr_t);

// For inspection: the buckets with what is in them, on standard output; the size of each, on standard error.
extern void print_table_map(table_t<`a,`b>, void prn_key(`a), void prn_val(`b));
extern void print_hist(table_t<`a,`b> t);

}
}
#endif
