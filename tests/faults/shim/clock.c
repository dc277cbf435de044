/* LD_PRELOAD: shifts one process's wall clock by the offset in a file, while it runs. The monotonic clock is unchanged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds, shared with every process that maps the file. */
static volatile int64_t *offset_ms;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_offset(void) {
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("MILLRACE_TEST_CLOCK");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) offset_ms = page;
}

static int now(clockid_t id, struct timespec *out) {
  if (real_clock_gettime == NULL) real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real_clock_gettime(id, out);
  if (failed || offset_ms == NULL || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  int64_t all = (int64_t)out->tv_sec * 1000000000 + out->tv_nsec + *offset_ms * 1000000;
  out->tv_sec = all / 1000000000;
  out->tv_nsec = all % 1000000000;
  return 0;
}

int clock_gettime(clockid_t id, struct timespec *out) { return now(id, out); }

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  (void)zone;
  struct timespec at;
  if (now(CLOCK_REALTIME, &at)) return -1;
  out->tv_sec = at.tv_sec;
  out->tv_usec = at.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec at;
  if (now(CLOCK_REALTIME, &at)) return (time_t)-1;
  if (out != NULL) *out = at.tv_sec;
  return at.tv_sec;
}
