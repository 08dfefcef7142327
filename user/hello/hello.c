// Says hello through the C library: buffered output, an allocation, the environment, a thread.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *greet(void *name)
{
    char *text = malloc(64);
    if (text)
        snprintf(text, 64, "hello, %s", (const char *)name);
    return text;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *text = NULL;
    if (pthread_create(&thread, NULL, greet, argc > 1 ? argv[1] : "world") != 0 || pthread_join(thread, &text) != 0 || !text)
        return 1;
    printf("%s (%zu characters)\n", (char *)text, strlen(text));
    free(text);
    return 0;
}
