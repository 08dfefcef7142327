// What a region is in Cyclone: objects one behind the other in pages that double in size, freed together. Pages of the usual sizes
// are kept for the next arena.
#include <stddef.h>
#include <stdlib.h>

struct page {
    struct page *older;
    size_t size;
};

struct arena {
    char *next, *end;
    struct page *pages;
};

enum { FIRST_PAGE = 1024, SIZES = 6, KEPT_PAGES = 16 };

static struct page *kept[SIZES];
static unsigned kept_count[SIZES];

static __attribute__((noinline)) void *arena_grow(struct arena *arena, size_t bytes)
{
    unsigned class = 0;
    if (arena->pages != NULL)
        while (class < SIZES - 1 && (size_t)FIRST_PAGE << class <= arena->pages->size)
            class++;
    struct page *page = kept[class];
    if (page != NULL) {
        kept[class] = page->older;
        kept_count[class]--;
    } else {
        page = malloc(sizeof(struct page) + ((size_t)FIRST_PAGE << class));
        page->size = (size_t)FIRST_PAGE << class;
    }
    page->older = arena->pages;
    arena->pages = page;
    arena->next = (char *)(page + 1) + bytes;
    arena->end = (char *)(page + 1) + page->size;
    return page + 1;
}

// For small objects whose sizes are multiples of eight.
static inline void *arena_allocate(struct arena *arena, size_t bytes)
{
    char *object = arena->next;
    if ((size_t)(arena->end - object) < bytes)
        return arena_grow(arena, bytes);
    arena->next = object + bytes;
    return object;
}

static inline void arena_free(struct arena *arena)
{
    for (struct page *page = arena->pages, *older; page != NULL; page = older) {
        older = page->older;
        unsigned class = 0;
        while ((size_t)FIRST_PAGE << class < page->size)
            class++;
        if (kept_count[class] < KEPT_PAGES) {
            page->older = kept[class];
            kept[class] = page;
            kept_count[class]++;
        } else {
            free(page);
        }
    }
}
