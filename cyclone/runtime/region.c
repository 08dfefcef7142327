/* Regions: lists of pages in which objects are laid one after the other, freed together.

   Pages double in size from FIRST_PAGE up to LAST_PAGE, so a region of any size has few of them and a small one wastes
   little. An object too large for that gets a page of its own. Pages of lexical regions go to a small store of their thread
   when the region ends: a region that is opened per packet or per request asks the heap for nothing.

   Where there is a collector, it looks for pointers in all of a page, also in what is not in use. It keeps what old
   contents point to until they are overwritten; the store is small so that this stays bounded. Pages of lexical regions are
   the collector's roots; those of dynamic regions are ordinary objects, collected if the key is lost. */
#include "internal.h"

struct _cyc_page {
  struct _cyc_page *older;
  struct _cyc_page **link; /* what points to this page: `pages` of the region or `older` of another page */
  _cyc_size size;          /* bytes after this header */
  _cyc_size used;          /* of them, set when the page is full; the newest page's is not */
};

#define FIRST_PAGE 1024
#define PAGE_CLASSES 6
#define LAST_PAGE (FIRST_PAGE << (PAGE_CLASSES - 1))
/* With a page's own header, and that of malloc, a page is just below a power of two. */
#define PAGE_OVERHEAD (sizeof(struct _cyc_page) + 16)
#define STORED_PER_CLASS 16

static __thread struct store {
  struct _cyc_page *pages;
  unsigned count;
} store[PAGE_CLASSES];

static inline unsigned char *page_start(struct _cyc_page *page) { return (unsigned char *)(page + 1); }

/* The class whose pages have exactly this size, or PAGE_CLASSES. */
static unsigned class_of(_cyc_size size) {
  for (unsigned class = 0; class < PAGE_CLASSES; class++)
    if (((_cyc_size)FIRST_PAGE << class) - PAGE_OVERHEAD == size)
      return class;
  return PAGE_CLASSES;
}

#ifdef _CYC_THREADS
#include <pthread.h>

static pthread_key_t store_key;

static void empty_store(void *unused) {
  (void)unused;
  for (unsigned class = 0; class < PAGE_CLASSES; class++) {
    for (struct _cyc_page *page = store[class].pages, *older; page; page = older) {
      older = page->older;
      _cyc_free(page);
    }
    store[class].pages = 0;
    store[class].count = 0;
  }
}

static void make_store_key(void) { pthread_key_create(&store_key, empty_store); }

/* A thread that stores a page for the first time arranges that its pages are freed when it ends. */
static void announce_store(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static __thread int announced;
  if (announced)
    return;
  announced = 1;
  pthread_once(&once, make_store_key);
  pthread_setspecific(store_key, &announced);
}
#else
static void announce_store(void) {}
#endif

static struct _cyc_page *get_page(_cyc_size size, enum page_memory kind) {
  unsigned class = class_of(size);
  struct _cyc_page *page;
  if (kind == PAGE_KEPT && class < PAGE_CLASSES && (page = store[class].pages)) {
    store[class].pages = page->older;
    store[class].count--;
  } else {
    page = page_memory(sizeof *page + size, kind);
    if (!page)
      _cyc_throw_alloc();
    page->size = size;
  }
  return page;
}

static void put_page(struct _cyc_page *page, enum page_memory kind) {
  unsigned class = class_of(page->size);
  if (kind == PAGE_KEPT && class < PAGE_CLASSES && store[class].count < STORED_PER_CLASS) {
    announce_store();
    page->older = store[class].pages;
    store[class].pages = page;
    store[class].count++;
  } else {
    _cyc_free(page);
  }
}

static inline enum page_memory memory_of(struct _cyc_region *r) {
  return r->frame.release ? PAGE_KEPT : PAGE_COLLECTED;
}

static void link_page(struct _cyc_page *page, struct _cyc_page **link) {
  page->link = link;
  page->older = *link;
  if (page->older)
    page->older->link = &page->older;
  *link = page;
}

/* A page for one large object. It is put behind the newest page, whose rest stays in use. */
static void *page_of_its_own(struct _cyc_region *r, _cyc_size bytes) {
  if (bytes > (_cyc_size)__PTRDIFF_MAX__ - 4096)
    _cyc_throw_alloc();
  struct _cyc_page *page = get_page((bytes + 15) & ~(_cyc_size)15, memory_of(r));
  page->used = page->size;
  if (!r->pages) {
    link_page(page, &r->pages);
    r->next = r->end = page_start(page) + page->size;
  } else {
    link_page(page, &r->pages->older);
  }
  return page_start(page);
}

void *_cyc_region_grow(struct _cyc_region *r, _cyc_size bytes) {
  if (bytes == 0)
    return _cyc_rmalloc(r, 8);
  if (bytes > LAST_PAGE / 2)
    return page_of_its_own(r, bytes);
  _cyc_size size = FIRST_PAGE, least = bytes;
  if (r->pages) {
    r->pages->used = (_cyc_size)(r->next - page_start(r->pages));
    /* A page of one object says nothing about how much more will come. */
    if (least <= r->pages->size && class_of(r->pages->size) < PAGE_CLASSES)
      least = r->pages->size + 1;
  }
  while (size < LAST_PAGE && size - PAGE_OVERHEAD < least)
    size *= 2;
  struct _cyc_page *page = get_page(size - PAGE_OVERHEAD, memory_of(r));
  link_page(page, &r->pages);
  r->next = page_start(page);
  r->end = r->next + page->size;
  return _cyc_rmalloc(r, bytes);
}

/* Counted objects to be dropped when the region ends: blocks of them, allocated in the region itself. */
struct _cyc_releases {
  struct _cyc_releases *before;
  unsigned count;
  void *objects[30];
};

void region_prepare(struct _cyc_region *r) {
  *r = (struct _cyc_region){{0, 0}, 0, 0, 0, 0, 0};
}

void region_free(struct _cyc_region *r) {
  for (struct _cyc_releases *block = r->releases; block; block = block->before)
    for (unsigned i = 0; i < block->count; i++)
      drop_in_heap(block->objects[i]);
  enum page_memory kind = memory_of(r);
  for (struct _cyc_page *page = r->pages, *older; page; page = older) {
    older = page->older;
    put_page(page, kind);
  }
}

void _cyc_region_release(struct _cyc_frame *frame) { region_free((struct _cyc_region *)frame); }

/* Objects that can be freed singly. Sizes are rounded up to a class: steps of 16 up to 256, then four steps to each
   doubling, so that what was freed fits the next object of its class exactly. What is larger than any class lies on a page of
   its own, and that is freed. */

#define CLASSES 40
#define LARGEST_CLASS ((_cyc_size)16384)

struct _cyc_freed {
  struct freed_object {
    struct freed_object *next;
  } *lists[CLASSES];
};

static unsigned size_class(_cyc_size *bytes) {
  _cyc_size size = (*bytes + 15) & ~(_cyc_size)15;
  if (size <= 256) {
    *bytes = size ? size : 16;
    return (unsigned)(*bytes / 16 - 1);
  }
  /* The doubling is counted from 256: sizes above it and up to 512 are of doubling 0. */
  unsigned doubling = (unsigned)(63 - __builtin_clzl(size - 1)) - 8;
  _cyc_size step = (_cyc_size)64 << doubling;
  size = (size + step - 1) & ~(step - 1);
  *bytes = size;
  return 16 + 4 * doubling + (unsigned)((size - ((_cyc_size)256 << doubling)) / step) - 1;
}

void *reap_allocate(struct _cyc_region *r, _cyc_size bytes) {
  struct header *h;
  if (bytes > LARGEST_CLASS) {
    h = page_of_its_own(r, _cyc_bytes(bytes, 1) + sizeof *h);
  } else {
    unsigned class = size_class(&bytes);
    struct freed_object *object = r->freed ? r->freed->lists[class] : 0;
    if (object) {
      r->freed->lists[class] = object->next;
      return object;
    }
    h = _cyc_rmalloc(r, bytes + sizeof *h);
  }
  h->size = bytes;
  return h + 1;
}

void reap_free(struct _cyc_region *r, void *object) {
  _cyc_size size = header_of(object)->size;
  if (size > LARGEST_CLASS) {
    struct _cyc_page *page = (struct _cyc_page *)header_of(object) - 1;
    int newest = page == r->pages;
    *page->link = page->older;
    if (page->older)
      page->older->link = page->link;
    /* Only pages of one object lie behind a newest page that is one. */
    if (newest)
      r->next = r->end = r->pages ? page_start(r->pages) + r->pages->size : 0;
    put_page(page, memory_of(r));
    return;
  }
  if (!r->freed)
    r->freed = _cyc_rcalloc(r, sizeof *r->freed);
  unsigned class = size_class(&size);
  ((struct freed_object *)object)->next = r->freed->lists[class];
  r->freed->lists[class] = object;
}

/* core.h */

struct _cyc_fat Cyc_Core_autorelease_handle(struct _cyc_region *r, struct _cyc_fat f);
struct _cyc_fat Cyc_Core_autorelease_handle(struct _cyc_region *r, struct _cyc_fat f) {
  /* The heap never ends, so what is left to it is never dropped. */
  if (!r || !f.base)
    return f;
  struct _cyc_releases *block = r->releases;
  if (!block || block->count == sizeof block->objects / sizeof block->objects[0]) {
    block = _cyc_rmalloc(r, sizeof *block);
    block->before = r->releases;
    block->count = 0;
    r->releases = block;
  }
  block->objects[block->count++] = f.base;
  return f;
}

int region_used_bytes(struct _cyc_region *r);
int region_used_bytes(struct _cyc_region *r) {
  _cyc_size sum = 0;
  for (struct _cyc_page *page = r ? r->pages : 0; page; page = page->older)
    sum += page->size;
  return (int)sum;
}

int region_free_bytes(struct _cyc_region *r);
int region_free_bytes(struct _cyc_region *r) { return r ? (int)(r->end - r->next) : 0; }

int region_alloc_bytes(struct _cyc_region *r);
int region_alloc_bytes(struct _cyc_region *r) {
  _cyc_size sum = 0;
  for (struct _cyc_page *page = r ? r->pages : 0; page; page = page->older)
    sum += page == r->pages ? page->size - (_cyc_size)(r->end - r->next) : page->used;
  return (int)sum;
}

/* Programs of the original set the size of regions' first pages. Here pages are chosen by what a region holds: it is a hint
   that nothing follows. */
void Cyc_set_default_region_page_size(int bytes);
void Cyc_set_default_region_page_size(int bytes) { (void)bytes; }
