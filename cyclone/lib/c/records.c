/* What C's functions return in memory that they use again or free: entries of directories, users, groups, hosts, services and
   protocols are handed on as copies on the heap. */
#define _GNU_SOURCE
#include "native.h"

#include <dirent.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <string.h>

/* ---- Directories. */

struct Cyc___cycDIR {
  DIR *directory;
};

static DIR *opened(struct Cyc___cycDIR *d) {
  if (!d->directory)
    _cyc_fail("the directory is closed");
  return d->directory;
}

struct Cyc___cycDIR *Cyc_opendir(const char *name) {
  DIR *directory = opendir(name);
  if (!directory)
    return NULL;
  struct Cyc___cycDIR *d = _cyc_malloc_atomic(sizeof *d);
  d->directory = directory;
  return d;
}

int Cyc_closedir(struct Cyc___cycDIR *d) {
  DIR *directory = opened(d);
  d->directory = NULL;
  return closedir(directory);
}

struct dirent *Cyc_readdir(struct Cyc___cycDIR *d) {
  struct dirent *entry = readdir(opened(d));
  if (!entry)
    return NULL;
  struct dirent *copy = _cyc_calloc_atomic(sizeof *copy);
  /* Only as much of the name as there is may be read. */
  memcpy(copy, entry, offsetof(struct dirent, d_name));
  memccpy(copy->d_name, entry->d_name, 0, sizeof copy->d_name - 1);
  return copy;
}

void Cyc_rewinddir(struct Cyc___cycDIR *d) { rewinddir(opened(d)); }
void Cyc_seekdir(struct Cyc___cycDIR *d, long place) { seekdir(opened(d), place); }
long Cyc_telldir(struct Cyc___cycDIR *d) { return telldir(opened(d)); }

/* ---- Users and groups. */

static struct passwd *copy_user(const struct passwd *user) {
  if (!user)
    return NULL;
  struct passwd *copy = _cyc_malloc(sizeof *copy);
  *copy = *user;
  copy->pw_name = _cyc_copy_text(user->pw_name);
  copy->pw_passwd = _cyc_copy_text(user->pw_passwd);
  copy->pw_gecos = _cyc_copy_text(user->pw_gecos);
  copy->pw_dir = _cyc_copy_text(user->pw_dir);
  copy->pw_shell = _cyc_copy_text(user->pw_shell);
  return copy;
}

struct passwd *Cyc_getpwnam(const char *name) { return copy_user(getpwnam(name)); }
struct passwd *Cyc_getpwuid(unsigned id) { return copy_user(getpwuid(id)); }

static char *or_empty(char *text) { return text ? text : ""; }

static struct group *copy_group(const struct group *group) {
  if (!group)
    return NULL;
  struct group *copy = _cyc_malloc(sizeof *copy);
  *copy = *group;
  copy->gr_name = _cyc_copy_text(or_empty(group->gr_name));
  copy->gr_passwd = _cyc_copy_text(or_empty(group->gr_passwd));
  copy->gr_mem = _cyc_copy_texts(group->gr_mem);
  return copy;
}

struct group *Cyc_getgrnam(const char *name) { return copy_group(getgrnam(name)); }
struct group *Cyc_getgrgid(unsigned id) { return copy_group(getgrgid(id)); }

/* ---- Hosts, services, protocols. */

/* Only hosts with addresses of the internet's fourth version, which are as long as Cyclone's struct in_addr. */
struct hostent *Cyc_gethostbyname(const char *name) {
  struct hostent *host = name ? gethostbyname(name) : NULL;
  if (!host || host->h_length != sizeof(struct in_addr))
    return NULL;
  struct hostent *copy = _cyc_malloc(sizeof *copy);
  *copy = *host;
  copy->h_name = _cyc_copy_text(host->h_name);
  copy->h_aliases = _cyc_copy_texts(host->h_aliases);
  size_t count = 0;
  while (host->h_addr_list[count])
    count++;
  copy->h_addr_list = _cyc_calloc((count + 1) * sizeof(char *));
  for (size_t i = 0; i < count; i++)
    copy->h_addr_list[i] = memcpy(_cyc_malloc_atomic(sizeof(struct in_addr)), host->h_addr_list[i], sizeof(struct in_addr));
  return copy;
}

struct servent *Cyc_getservbyname(const char *name, const char *protocol) {
  struct servent *service = name ? getservbyname(name, protocol) : NULL;
  if (!service)
    return NULL;
  struct servent *copy = _cyc_malloc(sizeof *copy);
  *copy = *service;
  copy->s_name = _cyc_copy_text(service->s_name);
  copy->s_aliases = _cyc_copy_texts(service->s_aliases);
  copy->s_proto = _cyc_copy_text(service->s_proto);
  return copy;
}

struct protoent *Cyc_getprotobyname(const char *name) {
  struct protoent *protocol = name ? getprotobyname(name) : NULL;
  if (!protocol)
    return NULL;
  struct protoent *copy = _cyc_malloc(sizeof *copy);
  *copy = *protocol;
  copy->p_name = _cyc_copy_text(protocol->p_name);
  copy->p_aliases = _cyc_copy_texts(protocol->p_aliases);
  return copy;
}
