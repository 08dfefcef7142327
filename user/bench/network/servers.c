// Servers of Debian's and programs that ask them, on a disk that is not written. What counts is both, from the start of who asks to its end.
#include "network.h"
#include "../programs.h"
#include <signal.h>
#include <time.h>

// Where the disk is mounted, and the servers' directory in it, which is in memory.
#define ROOT "/mnt"
#define DIRECTORY "/tmp"

enum { SMALL = 100, LARGE = 1024 * 1024, REQUESTS = 5000, LARGE_REQUESTS = 200 };

void mount_servers(void)
{
    load_modules();
    if (access("/dev/vda", F_OK) != 0)
        return;
    mkdir(ROOT, 0755);
    must(mount("/dev/vda", ROOT, "ext4", MS_RDONLY, NULL), "mount /dev/vda");
    must(mount("devtmpfs", ROOT "/dev", "devtmpfs", 0, NULL), "mount of a devtmpfs");
    must(mount("proc", ROOT "/proc", "proc", 0, NULL), "mount of a procfs");
    must(mount("tmpfs", ROOT DIRECTORY, "tmpfs", 0, NULL), "mount of a tmpfs");
}

static void write_file(const char *path, const char *bytes, long len)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    must(file, "create a file");
    if (write(file, bytes, len) != len)
        fail("write a file");
    close(file);
}

static void wait_for_port(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int tries = 0; tries < 10000; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        must(fd, "socket");
        int connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (connected)
            return;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    fail("the server does not answer");
}

#define ARGUMENTS(...) ((const char *const[]) { __VA_ARGS__, NULL })

// Runs a program that asks so many times.
static void run_client(const char *const client[], long requests)
{
    char count[16];
    const char *arguments[16] = { client[0], "-n", count };
    snprintf(count, sizeof count, "%ld", requests);
    for (int i = 1; client[i] && i < 13; i++)
        arguments[i + 2] = client[i];
    run_in(ROOT, NULL, arguments);
}

// Has a server answer so many times; some more do not count.
static long ask(const char *const server[], int port, const char *const client[], long requests)
{
    pid_t pid = start_in(ROOT, NULL, server);
    wait_for_port(port);
    run_client(client, 100);
    MARK_BEGIN();
    run_client(client, requests);
    MARK_END();
    must(kill(pid, SIGKILL), "kill");
    must(waitpid(pid, NULL, 0), "wait");
    return requests;
}

static long ask_redis(const char *command, const char *pipeline)
{
    return ask(
        ARGUMENTS("/usr/bin/redis-server", "--port", "6379", "--save", "", "--appendonly", "no", "--dir", DIRECTORY), 6379,
        ARGUMENTS("/usr/bin/redis-benchmark", "-q", "-c", "50", "-d", "100", "-t", command, "-P", pipeline), REQUESTS);
}

static long redis_get(void) { return ask_redis("get", "1"); }
static long redis_set(void) { return ask_redis("set", "1"); }
static long redis_pipeline(void) { return ask_redis("get", "16"); }

static const char nginx_settings[] =
    "daemon off; master_process off; pid " DIRECTORY "/pid; error_log " DIRECTORY "/errors;"
    "events { worker_connections 512; }"
    "http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;"
    "client_body_temp_path " DIRECTORY "/body; proxy_temp_path " DIRECTORY "/proxy; fastcgi_temp_path " DIRECTORY "/fastcgi;"
    "uwsgi_temp_path " DIRECTORY "/uwsgi; scgi_temp_path " DIRECTORY "/scgi;"
    "server { listen 127.0.0.1:8080; root " DIRECTORY "; } }";

static long ask_nginx(const char *file, const char *keeps, long requests)
{
    static char bytes[LARGE];
    memset(bytes, 'x', sizeof bytes);
    write_file(ROOT DIRECTORY "/settings", nginx_settings, sizeof nginx_settings - 1);
    write_file(ROOT DIRECTORY "/small", bytes, SMALL);
    write_file(ROOT DIRECTORY "/large", bytes, LARGE);
    return ask(
        ARGUMENTS("/usr/sbin/nginx", "-e", DIRECTORY "/errors", "-c", DIRECTORY "/settings"), 8080,
        // What is said twice counts once.
        ARGUMENTS("/usr/bin/ab", "-q", "-c", "20", keeps, file), requests);
}

static long nginx_kept(void) { return ask_nginx("http://127.0.0.1:8080/small", "-k", REQUESTS); }
static long nginx_new(void) { return ask_nginx("http://127.0.0.1:8080/small", "-q", REQUESTS); }
static long nginx_large(void) { return ask_nginx("http://127.0.0.1:8080/large", "-q", LARGE_REQUESTS); }

const struct row server_rows[] = {
    { "redis-get", redis_get },
    { "redis-set", redis_set },
    { "redis-pipeline", redis_pipeline },
    { "nginx-kept", nginx_kept },
    { "nginx-new", nginx_new },
    { "nginx-large", nginx_large },
    { 0 },
};
