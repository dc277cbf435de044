/*
 * Preloaded into a process, this intercepts its operations on the files of one folder (DISK_SHIM_FOLDER):
 * - operations on files directly in the folder are appended to a journal (DISK_SHIM_JOURNAL), in their order;
 * - a control page (DISK_SHIM_CONTROL, a file that the test writes) makes syncs fail, or gives the folder a disk of a few bytes.
 * Only this process is affected: its children do not inherit the variables.
 */
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

/* ---- The small disk */

static int64_t size_of(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 && S_ISREG(about.st_mode) ? about.st_size : -1;
}

/* Whether a write up to `end` fits. A file's own blocks stay writable. The shared-memory index is not on the disk. */
static int claim(int fd, const char *name, int64_t end) {
  size_t length = strlen(name);
  int64_t size = size_of(fd);
  if (!control->is_small || size < 0 || end <= size) return 1;
  if (length > 4 && strcmp(name + length - 4, "-shm") == 0) return 1;
  if (end - size > control->room) return 0;
  control->room -= end - size;
  return 1;
}

static void give_back(int64_t bytes) {
  if (control->is_small && bytes > 0) control->room += bytes;
}

#define STATFS(name, type) \
  int name(const char *path, struct type *about) { \
    REAL(int, #name, const char *, struct type *); \
    int result = real(path, about); \
    if (result == 0 && control->is_small && below(path)) \
      about->f_bavail = about->f_bfree = (uint64_t)control->room / (uint64_t)about->f_bsize; \
    return result; \
  }
STATFS(statfs, statfs)
STATFS(statfs64, statfs64)

/* ---- Opening and closing */

static int opened(const char *path, int flags, mode_t mode, int (*open_it)(const char *, int, mode_t)) {
  const char *name = below(path);
  if (!name) return open_it(path, flags, mode);
  pthread_mutex_lock(&turn);
  struct stat before;
  int is_new = lstat(path, &before) != 0;
  int fd = open_it(path, flags, mode);
  if (fd >= FILES_MAX) abort();
  if (fd >= 0) {
    struct stat about;
    if (fstat(fd, &about) != 0) abort();
    free(files[fd].name);
    files[fd] = (struct file){strdup(name), about.st_dev, about.st_ino};
    if (is_new) note('c', name, NULL, 0, NULL, 0);
    else if ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY && S_ISREG(before.st_mode)) {
      give_back(before.st_size);
      note('t', name, NULL, 0, NULL, 0);
    }
  }
  pthread_mutex_unlock(&turn);
  return fd;
}

#define MODE(flags) \
  mode_t mode = 0; \
  if (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
  }

int open(const char *path, int flags, ...) {
  MODE(flags);
  return opened(path, flags, mode, real_open);
}
int open64(const char *path, int flags, ...) {
  MODE(flags);
  return opened(path, flags | O_LARGEFILE, mode, real_open);
}
int creat(const char *path, mode_t mode) { return opened(path, O_CREAT | O_WRONLY | O_TRUNC, mode, real_open); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

#define OPENAT(name) \
  int name(int at, const char *path, int flags, ...) { \
    MODE(flags); \
    if (path[0] == '/') return opened(path, flags, mode, real_open); \
    REAL(int, #name, int, const char *, int, ...); \
    return real(at, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
  REAL(int, "close", int);
  if (!name_of(fd)) return real(fd);
  pthread_mutex_lock(&turn);
  free(files[fd].name);
  files[fd].name = NULL;
  int result = real(fd);
  pthread_mutex_unlock(&turn);
  return result;
}

/* ---- Writing */

static ssize_t written(int fd, const struct iovec *bytes, int count, int64_t at, int is_placed) {
  REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
  pthread_mutex_lock(&turn);
  const char *name = name_of(fd);
  int64_t length = 0, done = -1;
  for (int n = 0; n < count; n++) length += (int64_t)bytes[n].iov_len;
  if (!is_placed) at = fcntl(fd, F_GETFL) & O_APPEND ? size_of(fd) : lseek(fd, 0, SEEK_CUR);
  if (!claim(fd, name, at + length)) errno = ENOSPC;
  else done = real(fd, bytes, count, (off_t)at);
  if (done >= 0 && done < length) abort(); /* the journal holds only whole writes */
  if (done >= 0) {
    note('w', name, NULL, (uint64_t)at, bytes, count);
    if (!is_placed) lseek(fd, (off_t)(at + done), SEEK_SET);
  }
  pthread_mutex_unlock(&turn);
  return done;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  REAL(ssize_t, "write", int, const void *, size_t);
  struct iovec one = {(void *)bytes, length};
  return name_of(fd) ? written(fd, &one, 1, 0, 0) : real(fd, bytes, length);
}
ssize_t writev(int fd, const struct iovec *bytes, int count) {
  REAL(ssize_t, "writev", int, const struct iovec *, int);
  return name_of(fd) ? written(fd, bytes, count, 0, 0) : real(fd, bytes, count);
}

#define PWRITE(name, offset) \
  ssize_t name(int fd, const void *bytes, size_t length, offset at) { \
    REAL(ssize_t, #name, int, const void *, size_t, offset); \
    struct iovec one = {(void *)bytes, length}; \
    return name_of(fd) ? written(fd, &one, 1, at, 1) : real(fd, bytes, length, at); \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PWRITEV(name, offset) \
  ssize_t name(int fd, const struct iovec *bytes, int count, offset at) { \
    REAL(ssize_t, #name, int, const struct iovec *, int, offset); \
    return name_of(fd) ? written(fd, bytes, count, at, 1) : real(fd, bytes, count, at); \
  }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

static int cut(int fd, int64_t size) {
  REAL(int, "ftruncate", int, off_t);
  if (!name_of(fd)) return real(fd, (off_t)size);
  pthread_mutex_lock(&turn);
  int64_t before = size_of(fd);
  int result = real(fd, (off_t)size);
  if (result == 0) {
    give_back(before - size);
    note('t', name_of(fd), NULL, (uint64_t)size, NULL, 0);
  }
  pthread_mutex_unlock(&turn);
  return result;
}
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }

/* ---- Syncing */

/* Whether this sync must fail; counts it. */
static int fails(const char *name) {
  size_t length = strlen(name), suffix = strnlen(control->sync_suffix, sizeof control->sync_suffix);
  if (control->failing_syncs == 0 || length < suffix) return 0;
  if (strncmp(name + length - suffix, control->sync_suffix, suffix) != 0) return 0;
  if (control->failing_syncs > 0) control->failing_syncs--;
  return 1;
}

static int synced(int fd, int (*sync_it)(int)) {
  if (!name_of(fd)) return sync_it(fd);
  pthread_mutex_lock(&turn); /* held throughout: nothing is written during a sync */
  const char *name = name_of(fd);
  int result = -1;
  if (fails(name)) {
    note('f', name, NULL, 0, NULL, 0);
    errno = EIO;
  } else {
    result = sync_it(fd);
    if (result == 0) note('s', name, NULL, 0, NULL, 0);
  }
  pthread_mutex_unlock(&turn);
  return result;
}
static int real_fsync(int fd) {
  REAL(int, "fsync", int);
  return real(fd);
}
static int real_fdatasync(int fd) {
  REAL(int, "fdatasync", int);
  return real(fd);
}
int fsync(int fd) { return synced(fd, real_fsync); }
int fdatasync(int fd) { return synced(fd, real_fdatasync); }

/* ---- Names */

/* Renames open files; NULL: the name is gone, and later operations on the files are not recorded. */
static void rename_open(const char *from, const char *to) {
  for (int fd = 0; fd < FILES_MAX; fd++) {
    if (!files[fd].name || strcmp(files[fd].name, from) != 0) continue;
    free(files[fd].name);
    files[fd].name = to ? strdup(to) : NULL;
  }
}

static int removed(const char *path, int (*remove_it)(const char *)) {
  const char *name = below(path);
  if (!name) return remove_it(path);
  pthread_mutex_lock(&turn);
  struct stat before;
  int is_file = lstat(path, &before) == 0 && S_ISREG(before.st_mode);
  int result = remove_it(path);
  if (result == 0 && is_file) {
    give_back(before.st_size);
    note('u', name, NULL, 0, NULL, 0);
    rename_open(name, NULL);
  }
  pthread_mutex_unlock(&turn);
  return result;
}
static int real_unlink(const char *path) {
  REAL(int, "unlink", const char *);
  return real(path);
}
static int real_remove(const char *path) {
  REAL(int, "remove", const char *);
  return real(path);
}
int unlink(const char *path) { return removed(path, real_unlink); }
int remove(const char *path) { return removed(path, real_remove); }
int unlinkat(int at, const char *path, int flags) {
  REAL(int, "unlinkat", int, const char *, int);
  if (flags == 0 && path[0] == '/') return removed(path, real_unlink);
  return real(at, path, flags);
}

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  const char *old = below(from), *new = below(to);
  if (!old || !new) return real(from, to);
  pthread_mutex_lock(&turn);
  int result = real(from, to);
  if (result == 0) {
    note('r', old, new, 0, NULL, 0);
    rename_open(new, NULL);
    rename_open(old, new);
  }
  pthread_mutex_unlock(&turn);
  return result;
}
