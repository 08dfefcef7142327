// A hash table of words: numbers in two bases are looked up in each other. With SAME_ALLOCATION the collector has the heap.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SAME_ALLOCATION
#include <gc.h>
#define malloc(bytes) GC_MALLOC(bytes)
#define calloc(count, bytes) GC_MALLOC((count) * (bytes))
#define strdup(text) GC_STRDUP(text)
#endif

struct entry {
    char *key;
    int value;
    struct entry *next;
};

struct table {
    struct entry **buckets;
    unsigned size;
};

static struct table *table_new(unsigned size)
{
    struct table *table = malloc(sizeof(struct table));
    table->buckets = calloc(size, sizeof(struct entry *));
    table->size = size;
    return table;
}

static unsigned bucket_of(const struct table *table, const char *key)
{
    unsigned hash = 0;
    for (; *key != 0; key++)
        hash = 5 * hash + (unsigned)*key;
    return hash % table->size;
}

static struct entry *find(const struct table *table, const char *key)
{
    struct entry *entry = table->buckets[bucket_of(table, key)];
    while (entry != NULL && strcmp(entry->key, key) != 0)
        entry = entry->next;
    return entry;
}

static void insert(struct table *table, const char *key, int value)
{
    unsigned bucket = bucket_of(table, key);
    struct entry *entry = malloc(sizeof(struct entry));
    entry->key = strdup(key);
    entry->value = value;
    entry->next = table->buckets[bucket];
    table->buckets[bucket] = entry;
}

static void write_number(char *to, unsigned number, unsigned base)
{
    char digits[32];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    while (count > 0)
        *to++ = digits[--count];
    *to = 0;
}

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 1;
#ifdef SAME_ALLOCATION
    GC_set_free_space_divisor(1);
    GC_INIT();
#endif
    struct table *table = table_new((unsigned)n);
    char key[32];
    for (int i = 1; i <= n; i++) {
        write_number(key, (unsigned)i, 16);
        insert(table, key, i);
    }
    int count = 0;
    for (int i = n; i > 0; i--) {
        write_number(key, (unsigned)i, 10);
        if (find(table, key) != NULL)
            count++;
    }
    printf("%d\n", count);
    return 0;
}
