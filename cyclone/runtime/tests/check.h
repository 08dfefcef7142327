/* Tests of the run-time library, written as compiled programs use it. Each file has one function, called by main.c. */
#include "../cyc_runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

/* The name of the exception that evaluating `expression` throws, or "nothing". */
#define THROWN(expression)                               \
  ({                                                     \
    struct _cyc_handler thrown_to;                       \
    const char *volatile name = "nothing";               \
    struct _cyc_frame *top_before = _cyc_top;            \
    if (_cyc_try(&thrown_to) == 0) {                     \
      (void)(expression);                                \
      _cyc_pop_handler();                                \
    } else {                                             \
      name = *(const char **)thrown_to.exn;              \
    }                                                    \
    CHECK(_cyc_top == top_before);                       \
    name;                                                \
  })
#define CHECK_THROWS(exception, expression) CHECK(!strcmp(THROWN(expression), exception))
#define CHECK_GIVES(value, expression)                                      \
  do {                                                                      \
    volatile _cyc_word got = 0;                                             \
    CHECK_THROWS("nothing", got = (_cyc_word)(expression));                 \
    CHECK(got == (_cyc_word)(value));                                       \
  } while (0)

/* core.h, as the compiler would write it. */
extern struct _cyc_region *Cyc_Core_heap_region;
struct Cyc_Core_DynamicRegion;
struct Cyc_Core_NewDynamicRegion {
  struct Cyc_Core_DynamicRegion *key;
};
void Cyc_Core_ufree(void *);
void Cyc_Core_rufree(struct _cyc_region *, void *);
int Cyc_Core_refptr_count(struct _cyc_fat);
struct _cyc_fat Cyc_Core_alias_refptr(struct _cyc_fat);
void Cyc_Core_drop_refptr(struct _cyc_fat);
void Cyc_Core_rdrop_refptr(struct _cyc_region *, struct _cyc_fat);
struct _cyc_fat Cyc_Core_autorelease_handle(struct _cyc_region *, struct _cyc_fat);
struct Cyc_Core_NewDynamicRegion Cyc_Core__new_ukey(unsigned, const char *, const char *, int);
struct Cyc_Core_NewDynamicRegion Cyc_Core__new_rckey(unsigned, const char *, const char *, int);
void Cyc_Core_free_ukey(struct Cyc_Core_DynamicRegion *);
void Cyc_Core_free_rckey(struct Cyc_Core_DynamicRegion *);
void *Cyc_Core_open_region(struct Cyc_Core_DynamicRegion *, void *, void *(*)(struct _cyc_region *, void *));
struct _cyc_region *Cyc_Core_current_handle(void);
const char *Cyc_Core_get_exn_name(void *);
const char *Cyc_Core_get_exn_filename(void);
int Cyc_Core_get_exn_lineno(void);
void Cyc_Core_set_uncaught_exn_fun(int (*)(void));
int region_used_bytes(struct _cyc_region *);
int region_free_bytes(struct _cyc_region *);
int region_alloc_bytes(struct _cyc_region *);

void fat_pointers(void);
void zero_terminated(void);
void exceptions(void);
void heap(void);
void regions(void);
void single_objects(void);
void dynamic_regions(void);
void original_names(void);
void threads(void);
void throw_uncaught(void);
