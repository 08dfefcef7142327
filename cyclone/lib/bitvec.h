// Vectors of bits, packed into ints.

#ifndef _BITVEC_H_
#define _BITVEC_H_
__noinference__ {
#include <list.h>
#include <dict.h>

namespace Bitvec {

typedef int ?`r bitvec_t<`r>;

// At least so many bits: all 0, all 1, as in another.
extern bitvec_t new_empty(int);
extern bitvec_t new_full(int);
extern bitvec_t new_copy(bitvec_t);
// The bits that f gives for the values of the listed keys.
extern bitvec_t from_list(Dict::dict_t<`a,`b,`e> d, int f(`b), int sz, List::list_t<`a>);
// The numbers below sz whose bits are 1.
extern List::list_t<int> to_sorted_list(bitvec_t bvec, int sz);
extern void print_bvec(bitvec_t bvec);

// One bit; get_and_set gives what it was before.
extern bool get(bitvec_t, int);
extern void set(bitvec_t, int);
extern void clear(bitvec_t, int);
extern bool get_and_set(bitvec_t, int);

// All bits.
extern void clear_all(bitvec_t);
extern void set_all(bitvec_t);
extern bool all_set(bitvec_t bvec, int sz);

// Bit by bit into dest: in either, in both, in the first alone. Whether two are equal.
extern void union_two(bitvec_t dest, bitvec_t src1, bitvec_t src2);
extern void intersect_two(bitvec_t dest, bitvec_t src1, bitvec_t src2);
extern void diff_two(bitvec_t dest, bitvec_t src1, bitvec_t src2);
extern bool compare_two(bitvec_t src1, bitvec_t src2);

}
}
#endif
