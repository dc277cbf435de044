/*
 * Preloaded into a process, this intercepts its operations on the files of one folder (DISK_SHIM_FOLDER):
 * - operations on files directly in the folder are appended to a journal (DISK_SHIM_JOURNAL), in their order;
 * - a control page (DISK_SHIM_CONTROL, a file that the test writes) makes syncs fail, or gives the folder a disk of a few bytes.
 * Only this process is affected: its children do not inherit the variables.
 */
#include "disk-files.h"

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
