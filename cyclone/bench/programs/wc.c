// Lines, words and characters of a text that is made in memory.
#include <stdio.h>
#include <stdlib.h>

#define SIZE 65536

static char text[SIZE];

int main(int argc, char **argv)
{
    int rounds = argc == 2 ? atoi(argv[1]) : 1;
    unsigned state = 1;
    for (int i = 0; i < SIZE; i++) {
        state = state * 1103515245 + 12345;
        unsigned pick = (state >> 16) % 32;
        text[i] = pick < 26 ? (char)('a' + pick) : pick < 30 ? ' ' : '\n';
    }
    long lines = 0, words = 0, characters = 0;
    for (int round = 0; round < rounds; round++) {
        int in_word = 0;
        for (int i = 0; i < SIZE; i++) {
            char c = text[i];
            characters++;
            if (c == '\n')
                lines++;
            if (c == ' ' || c == '\n')
                in_word = 0;
            else if (!in_word) {
                in_word = 1;
                words++;
            }
        }
    }
    printf("%ld %ld %ld\n", lines, words, characters);
    return 0;
}
