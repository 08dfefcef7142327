// A string grows by appending to it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int count = argc == 2 ? atoi(argv[1]) : 1;
    size_t room = 32, length = 0;
    char *text = calloc(room, 1);
    for (int i = 0; i < count; i++) {
        if (length + 7 > room) {
            char *larger = calloc(2 * room, 1);
            strcpy(larger, text);
            free(text);
            text = larger;
            room *= 2;
        }
        strcpy(text + length, "hello\n");
        length += 6;
    }
    printf("%d\n", (int)strlen(text));
    free(text);
    return 0;
}
