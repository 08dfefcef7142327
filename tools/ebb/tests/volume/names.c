// A file gets a second name and loses both at once, again and again, while a thread looks for them: says what went wrong.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_over;

static void *look(void *unused)
{
    struct stat st;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        stat("/v/f", &st);
        stat("/v/g", &st);
    }
    return unused;
}

static void *removed(void *name)
{
    return unlink(name) ? strerror(errno) : NULL;
}

int main(void)
{
    pthread_t looks, removes;
    struct stat st;
    pthread_create(&looks, NULL, look, NULL);
    for (int i = 0; i < 300; i++) {
        int fd = open("/v/f", O_CREAT | O_EXCL | O_RDWR, 0644);
        if (fd < 0 || link("/v/f", "/v/g"))
            return printf("made %d: %s\n", i, strerror(errno));
        pthread_create(&removes, NULL, removed, "/v/f");
        char *error = removed("/v/g");
        void *other;
        pthread_join(removes, &other);
        if (error || other)
            printf("removed %d: %s\n", i, error ? error : (char *)other);
        if (stat("/v/f", &st) == 0 || stat("/v/g", &st) == 0)
            printf("removed %d: still there\n", i);
        if (fstat(fd, &st) || st.st_nlink)
            printf("removed %d: %d names\n", i, (int)st.st_nlink);
        close(fd);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_join(looks, NULL);
    puts("done");
}
