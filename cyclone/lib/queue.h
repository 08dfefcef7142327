// Queues, in a region, of elements of any one-word type. Elements may be unique: what goes in is consumed, and the functions
// at the end take such elements out.

#ifndef _QUEUE_H_
#define _QUEUE_H_
__noinference__ {
#include <core.h>
#include <list.h>

namespace Queue {

extern struct Queue<`a::B\T,`r::E,`q::Q>;
typedef struct Queue<`a,`r,`q> @@aqual(`q) `r queue_t<`a,`r,`q>;

extern queue_t<`a::B\T> create();
extern queue_t<`a::B\T,`r> rcreate(region_t<`r>);
extern bool is_empty(queue_t<`a::B\T>);
extern int length(queue_t<`a::B\T>);

// At the end, and at the front.
extern void add(queue_t<`a::B\T,`H>, `a x) __attribute__((consume(2)));
extern void radd(region_t<`r>, queue_t<`a::B\T,`r>, `a x : RESTRICTED >= aquals(`a)) __attribute__((consume(3)));
extern void push(queue_t<`a::B\T,`H> q, `a x) __attribute__((consume(2)));
extern void rpush(region_t<`r> r, queue_t<`a::B\T,`r> q, `a x) __attribute__((consume(3)));

// The element at the front; Empty where there is none.
extern datatype exn { extern Empty };
extern `a take(queue_t<`a>);
extern `a peek(queue_t<`a>);

extern void clear(queue_t<`a::B\T>);
// Takes the first element that is == out, if there is one.
extern void remove(queue_t<`a,`r>, `a);

extern void iter(void f(`a), queue_t<`a>);
extern void app(`b f(`a), queue_t<`a>);

// Unique elements: the first that satisfies f, or NULL; the one at the front, with something to put in its place.
extern `a *`U take_match(region_t<`r> r, queue_t<`a::A\T *`U,`r> q, bool (@f)(`b,`a *`U), `b env);
extern `a noalias_take(queue_t<`a::B\T> q, `a null_elem) __attribute__((consume(2)));
extern `a *`U ptr_take(queue_t<`a::A\T *`U> q);

}
}
#endif
