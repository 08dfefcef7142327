// The names that every Cyclone program may count on: string types, options, allocation with a quality, counted pointers,
// dynamic regions, and what is known about the exception being handled.

#ifndef _CORE_H_
#define _CORE_H_
__noinference__ {

// Strings. `C` types are thin pointers as C's own functions take them, the others know their length. A buffer is not
// taken to end with a zero.
typedef char *@aqual(`q) `r Cstring<`r,`q::Q>;
typedef char @@aqual(`q) `r CstringNN<`r,`q::Q>;
typedef const char ?@aqual(`q) `r string_t<`r,`q::Q>;
typedef char ?@aqual(`q) `r mstring_t<`r,`q::Q>;
typedef string_t<`r1,`q1> @@aqual(`q2) `r2 stringptr_t<`r1,`r2,`q1,`q2>;
typedef mstring_t<`r1,`q1> @@aqual(`q2) `r2 mstringptr_t<`r1,`r2,`q1,`q2>;
typedef char *@aqual(`q) @nozeroterm `r Cbuffer_t<`r,`q>;
typedef char @@aqual(`q) @nozeroterm `r CbufferNN_t<`r,`q>;
typedef const char ?@aqual(`q) @nozeroterm `r buffer_t<`r,`q>;
typedef char ?@aqual(`q) @nozeroterm `r mbuffer_t<`r,`q>;

#ifndef bool
typedef int bool;
#endif
#ifndef false
#define false (0)
#endif
#ifndef true
#define true (1)
#endif

#if __CYCLONE_COMPAT__ == 8
#include <bits/process.h>
#endif

namespace Core {

// The one value that the size of `a has. Where a function's last parameter is this, a call may leave it out.
typedef tag_t<valueof_t(sizeof(`a::A))> sizeof_t<`a>;

// A value or nothing.
extern struct Opt<`a::B> { `a v; };
typedef struct Opt<`a> *@aqual(`q) `r opt_t<`a,`r,`q>;
opt_t<`b,`H,UNIQUE> opt_map(`b f(`a), opt_t<`a> x);

// New strings of x characters, all zero: on the heap, in a region, in a region with an alias qualifier.
mstring_t<`H> new_string(unsigned int x);
mstring_t<`r::E> rnew_string(region_t<`r>, unsigned int x);
mstring_t<`r,`q> rqnew_string(region_t<`r>, aqual_t<`q\T>, unsigned int x);

// Small functions to hand to functions that take functions.
bool true_f(`a);
bool false_f(`a);
`a fst($(`a,`b)@);
`b snd($(`a,`b)@);
`c third($(`a,`b,`c)@);
`a identity(`a);

// Orders: negative, zero or positive. Pointers are ordered by address.
int intcmp(int, int);
int charcmp(char, char);
int ptrcmp(`a::A\T @ `r, `a @ `r);
int nptrcmp(`a::A\T * `r, `a * `r);

// The region opened last and not closed yet, or the heap.
region_t<`C> current_handle(void);

// Exceptions of the library: a wrong argument; something that went wrong; what cannot be; nothing there.
extern datatype exn { extern Invalid_argument(string_t) };
extern datatype exn { extern Failure(string_t) };
extern datatype exn { extern Impossible(string_t) };
extern datatype exn { extern Not_found };
extern datatype exn.Not_found Not_found_val;
extern datatype exn { extern Unreachable(string_t) };

// Bytes of a region's pages, bytes left in its current page, bytes of the objects in it.
extern "C" int region_used_bytes(region_t<`r>);
extern "C" int region_free_bytes(region_t<`r>);
extern "C" int region_alloc_bytes(region_t<`r>);

extern region_t<`H> heap_region;

// What `qnew` and `qmalloc` take to say how the new object may be aliased.
extern aqual_t<ALIASABLE> aliasable_qual;
extern aqual_t<UNIQUE> unique_qual;
extern aqual_t<REFCNT> refcnt_qual;

#if __CYCLONE_COMPAT__ == 8
// The regions of unique and of counted pointers.
extern region_t<`U> unique_region;
extern region_t<`RC> refcnt_region;
#endif

#define unew qnew (Core::unique_qual)
#define qunew qnew (Core::unique_qual)
#define umalloc(arg) qmalloc (Core::heap_region, Core::unique_qual, arg)
#define rcnew qnew (Core::refcnt_qual)
#define rcmalloc(arg) qmalloc (Core::heap_region, Core::refcnt_qual, arg)

// Give back the only pointer to an object.
void ufree(`a::A\T *@aqual(UNIQUE) `H ptr) __attribute__((noliveunique(1)));
void rufree(region_t<`r> h, `a::A\T *@aqual(UNIQUE) `r ptr : single(`r)) __attribute__((noliveunique(2)));

// Counted pointers. `refptr_count` and `alias_refptr` leave their argument usable. `drop_refptr` gives back one pointer;
// the last one frees the object, but not what the object points to.
int refptr_count(`a::A\T ?@aqual(REFCNT) `r ptr);
`a ?@aqual(REFCNT) `r alias_refptr(`a::A\T ?@aqual(REFCNT) `r ptr;{});
void drop_refptr(`a::A\T ?@aqual(REFCNT) `H ptr;{}) __attribute__((noliveunique(1)));
void rdrop_refptr(region_t<`r> h, `a::A\T ?@aqual(REFCNT) `r ptr;{}) __attribute__((noliveunique(2)));

// Autorelease: a region takes over a counted pointer, drops it when the region ends, and lends an alias until then.
// `inc_refptr` makes a counted pointer from such an alias.
`a ? @autoreleased `r autorelease_handle(region_t<`r> h, `a::A\T ?`RC ptr) __attribute__((noliveunique(2)));
`a ? @autoreleased `C autorelease(`a::A\T ?`RC ptr) __attribute__((noliveunique(1)));
`a ?`RC inc_refptr(`a::A\T ? @autoreleased `r ptr);

// Dynamic regions: a key is the right to open the region; the region lives until the key (or the last of its counted
// keys) is given back.
struct DynamicRegion<`r::E>;
typedef struct DynamicRegion<`r1>@@aqual(`q) `r2 region_key_t<`r1,`q,`r2>;
typedef region_key_t<`r,UNIQUE,`r2> uregion_key_t<`r,`r2>;
typedef region_key_t<`r,REFCNT,`r2> rcregion_key_t<`r,`r2>;
struct NewDynamicRegion<`q::Q> {
  <`r> : single(`r)
  region_key_t<`r,`q> key;
};

// The first argument switches single frees within the region off; the others name who asks.
struct NewDynamicRegion<UNIQUE> _new_ukey(unsigned int dis_reaps, const char *file, const char *func, int lineno);
struct NewDynamicRegion<REFCNT> _new_rckey(unsigned int dis_reaps, const char *file, const char *func, int lineno);

#ifndef _CYC_INTERNAL_DISABLE_REAPS
#define new_ukey() _new_ukey(0, __FILE__, "", __LINE__)
#define new_rckey() _new_rckey(0, __FILE__, "", __LINE__)
#else
#define new_ukey() _new_ukey(1, __FILE__, "", __LINE__)
#define new_rckey() _new_rckey(1, __FILE__, "", __LINE__)
#endif

void free_ukey(uregion_key_t<`r> k; {}) __attribute__((consume(1)));
void free_rckey(rcregion_key_t<`r> k; {}) __attribute__((consume(1)));

// Runs body with the region open; the caller needs no other right to the region than the key.
`result open_region(region_key_t<`r,`q> key, `arg arg, `result body(region_t<`r> h, `arg arg); {} : RESTRICTED >= `q);

// Exceptions: throw again without a change of where it came from; its name; where it was thrown.
void rethrow(datatype exn @) __attribute__((noreturn));
const char *get_exn_name(datatype exn @);
const char *get_exn_filename();
int get_exn_lineno();

// The function is called when an exception is thrown that nobody will catch.
void set_uncaught_exn_fun(int (*)());

// Between thin pointers with a known bound and fat pointers. `arrcast` gives NULL if dyn has fewer than bd elements.
typedef `a::A*{valueof(`i)}`r __cyclone_internal_array_t<`a,`i,`r>;
typedef `a::A@{valueof(`i)}`r __nn_cyclone_internal_array_t<`a,`i,`r>;
typedef tag_t<`i> __cyclone_internal_singleton<`i>;

__cyclone_internal_array_t<`a,`i,`r> arrcast(`a ?`r dyn, __cyclone_internal_singleton<`i> bd, sizeof_t<`a> sz);
`a?`r mkfat(__nn_cyclone_internal_array_t<`a,`i,`r::E> arr, sizeof_t<`a> s, __cyclone_internal_singleton<`i> n);

struct ThinRes<`a::A,`r> {
  <`i::I>
  __cyclone_internal_array_t<`a,`i,`r> arr;
  __cyclone_internal_singleton<`i> nelts;
};
struct ThinRes<`a,`r> mkthin(`a ?`r dyn, sizeof_t<`a> sz);

// How many elements lie between the start of arr's object and arr.
unsigned int arr_prevsize(`a ? arr, sizeof_t<`a> elt_sz);
}

}
#endif
