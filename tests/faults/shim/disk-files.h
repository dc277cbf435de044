/* What disk-shim.c knows: the folder, its open files, the control page, and the journal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES_MAX 65536
#define NAME_MAX_BYTES 250

/* Written by the test, read here; `room` is written by both. disk-shim.ts has the same layout. */
struct control {
  int32_t failing_syncs; /* the number of next syncs that fail; -1: all */
  int32_t is_small;      /* whether the disk has only `room` bytes */
  int64_t room;
  char sync_suffix[48];  /* only files with this suffix fail to sync; empty: every file */
};

struct record {
  uint32_t size; /* total: this head, the two names, the bytes */
  uint8_t kind;
  uint8_t name_size;
  uint8_t to_size;
  uint8_t unused;
  uint64_t at; /* an offset, or a size */
};

struct file {
  char *name; /* relative to the folder; "" is the folder itself */
  dev_t device;
  ino_t node;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_size;
static int journal = -1;
static struct control nothing, *control = &nothing;
static struct file files[FILES_MAX];

#define REAL(result, name, ...) \
  static result (*real)(__VA_ARGS__); \
  if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int real_open(const char *path, int flags, mode_t mode) {
  REAL(int, "open", const char *, int, ...);
  return real(path, flags, mode);
}

__attribute__((constructor)) static void begin(void) {
  const char *at = getenv("DISK_SHIM_FOLDER"), *log = getenv("DISK_SHIM_JOURNAL"), *page = getenv("DISK_SHIM_CONTROL");
  if (!at || strlen(at) >= sizeof folder) return;
  if (log) journal = real_open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (page) {
    int fd = real_open(page, O_RDWR | O_CLOEXEC, 0);
    void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) abort();
    control = map;
    close(fd);
  }
  folder_size = strlen(strcpy(folder, at));
  unsetenv("LD_PRELOAD");
  unsetenv("DISK_SHIM_FOLDER");
  unsetenv("DISK_SHIM_JOURNAL");
  unsetenv("DISK_SHIM_CONTROL");
}

/* The name within the folder; NULL for a path elsewhere. */
static const char *below(const char *path) {
  if (!path || !folder_size || strncmp(path, folder, folder_size) != 0) return NULL;
  const char *rest = path + folder_size;
  while (*rest == '/') rest++;
  if (rest == path + folder_size && *rest) return NULL;
  return strlen(rest) > NAME_MAX_BYTES ? NULL : rest;
}

/* The name under which this was opened; NULL for a file elsewhere. Unseen closes may reuse the number. */
static const char *name_of(int fd) {
  struct stat about;
  if (fd < 0 || fd >= FILES_MAX || !files[fd].name || fstat(fd, &about) != 0) return NULL;
  return about.st_dev == files[fd].device && about.st_ino == files[fd].node ? files[fd].name : NULL;
}

static void note(char kind, const char *name, const char *to, uint64_t at, const struct iovec *bytes, int count) {
  if (journal < 0 || strchr(name, '/') || (to && strchr(to, '/'))) return;
  if (!to) to = "";
  size_t size = 0;
  for (int n = 0; n < count; n++) size += bytes[n].iov_len;
  struct record head = {0, (uint8_t)kind, (uint8_t)strlen(name), (uint8_t)strlen(to), 0, at};
  head.size = (uint32_t)(sizeof head + head.name_size + head.to_size + size);
  struct iovec all[3 + 64];
  if (count > 64) abort();
  all[0] = (struct iovec){&head, sizeof head};
  all[1] = (struct iovec){(void *)name, head.name_size};
  all[2] = (struct iovec){(void *)to, head.to_size};
  memcpy(all + 3, bytes, sizeof *bytes * (size_t)count);
  REAL(ssize_t, "writev", int, const struct iovec *, int);
  /* a single call, so that other appends cannot land in between */
  if (real(journal, all, 3 + count) != (ssize_t)head.size) abort();
}
