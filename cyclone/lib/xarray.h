// Arrays that grow at their end. The elements are behind a unique pointer, so that the old ones can be freed at once.

#ifndef _XARRAY_H_
#define _XARRAY_H_
__noinference__ {
namespace Xarray {

struct Xarray<`a::B> {
  `a ?`U elmts;
  int num_elmts;
};
typedef struct Xarray<`a> @`r xarray_t<`a,`r>;

// Empty, with room for so many elements (and a value to fill it); with no room; with one element; from an array.
extern xarray_t<`a> create(int, `a);
extern xarray_t<`a,`r> rcreate(region_t<`r>, int, `a);
extern xarray_t<`a> create_empty();
extern xarray_t<`a,`r> rcreate_empty(region_t<`r>);
extern xarray_t<`a> singleton(int, `a);
extern xarray_t<`a,`r> rsingleton(region_t<`r>, int, `a);
extern xarray_t<`a> from_array(`a ?arr);
extern xarray_t<`a,`r> rfrom_array(region_t<`r>, `a ?arr);

// An index that is out of range throws Core::Invalid_argument.
extern int length(xarray_t<`a>);
extern `a get(xarray_t<`a>, int);
extern void set(xarray_t<`a>, int, `a);

// At the end; add_ind gives the index.
extern void add(xarray_t<`a>, `a);
extern int add_ind(xarray_t<`a>, `a);

extern `a ?to_array(xarray_t<`a>);
extern `a ?`r rto_array(region_t<`r>, xarray_t<`a>);
extern xarray_t<`a> append(xarray_t<`a>, xarray_t<`a>);
extern xarray_t<`a,`r> rappend(region_t<`r>, xarray_t<`a>, xarray_t<`a>);

extern void app(`b f(`a), xarray_t<`a>);
extern void app_c(`b f(`c,`a), `c, xarray_t<`a>);
extern void iter(void f(`a), xarray_t<`a>);
extern void iter_c(void f(`b,`a), `b, xarray_t<`a>);
extern xarray_t<`b> map(`b f(`a), xarray_t<`a>);
extern xarray_t<`b,`r> rmap(region_t<`r>, `b f(`a), xarray_t<`a>);
extern xarray_t<`b> map_c(`b f(`c,`a), `c, xarray_t<`a>);
extern xarray_t<`b,`r> rmap_c(region_t<`r>, `b f(`c,`a), `c, xarray_t<`a>);

// Empties it; takes the last num elements away; takes the element at i away.
extern void reuse(xarray_t<`a> xarr);
extern void delete(xarray_t<`a> xarr, int num);
extern void remove(xarray_t<`a> xarr, int i);

}
}
#endif
