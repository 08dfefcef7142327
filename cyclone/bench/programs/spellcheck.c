// Words are looked up in a dictionary held in an open-addressed table of strings.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 65536

static char *slots[SLOTS];

static unsigned first_slot(const char *word)
{
    unsigned hash = 2166136261u;
    for (; *word != 0; word++)
        hash = (hash ^ (unsigned char)*word) * 16777619u;
    return hash % SLOTS;
}

static int slot_of(const char *word)
{
    unsigned slot = first_slot(word);
    while (slots[slot] != NULL && strcmp(slots[slot], word) != 0)
        slot = (slot + 1) % SLOTS;
    return (int)slot;
}

static unsigned state = 7;

static void make_word(char *word)
{
    state = state * 1103515245 + 12345;
    unsigned bits = state >> 8;
    int length = 3 + (int)(bits % 6);
    for (int i = 0; i < length; i++) {
        word[i] = (char)('a' + bits % 11);
        bits = bits / 11 + 977 * (unsigned)i;
    }
    word[length] = 0;
}

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 1;
    char word[16];
    for (int i = 0; i < 20000; i++) {
        make_word(word);
        int slot = slot_of(word);
        if (slots[slot] == NULL)
            slots[slot] = strdup(word);
    }
    int unknown = 0;
    for (int i = 0; i < n; i++) {
        make_word(word);
        if (slots[slot_of(word)] == NULL)
            unknown++;
    }
    printf("%d\n", unknown);
    return 0;
}
