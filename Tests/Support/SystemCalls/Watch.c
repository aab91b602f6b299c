#define _GNU_SOURCE
#include "Watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// MARK: The watched folder

static char folder[4096];
static size_t folder_length;
static atomic_bool is_watching;
enum { DESCRIPTORS = 1 << 16 };
static atomic_bool watched[DESCRIPTORS];

static atomic_ulong counts[CALL_KINDS];

static atomic_int failing_kind = -1, failing_error, failing_half;
static atomic_long failing_after;
static _Atomic(const char *) failed;

int system_calls_are_wrapped(void) { return WRAPS_ALL; }

void watch_folder(const char *path) {
  is_watching = false;
  failing_kind = -1;
  for (int kind = 0; kind < CALL_KINDS; kind++) counts[kind] = 0;
  for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) watched[descriptor] = false;
  if (!path || strlen(path) >= sizeof folder) return;
  strcpy(folder, path);
  folder_length = strlen(folder);
  is_watching = true;
}

unsigned long watched_calls(int kind) { return counts[kind]; }

bool watches(int descriptor) {
  return is_watching && descriptor >= 0 && descriptor < DESCRIPTORS && watched[descriptor];
}

bool watches_path(const char *path) {
  return is_watching && path && strncmp(path, folder, folder_length) == 0
      && (path[folder_length] == '/' || path[folder_length] == 0);
}

static const char *path_of(int descriptor, char path[4096]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  long length = syscall(SYS_readlink, link, path, 4095);
  if (length < 0) return NULL;
  path[length] = 0;
  return path;
}

const char *watched_path(int directory, const char *path, char whole[4096]) {
  if (!is_watching || !path) return NULL;
  if (path[0] != '/' && directory != AT_FDCWD) {
    char base[4096];
    if (!path_of(directory, base)) return NULL;
    if (snprintf(whole, 4096, "%s/%s", base, path) >= 4096) return NULL;
    path = whole;
  }
  return watches_path(path) ? path : NULL;
}

void watch_descriptor(int descriptor) {
  char path[4096];
  if (!is_watching || descriptor < 0 || descriptor >= DESCRIPTORS) return;
  int error = errno;
  watched[descriptor] = path_of(descriptor, path) && watches_path(path);
  errno = error;
}

void unwatch_descriptor(int descriptor) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS) watched[descriptor] = false;
}

// MARK: Failing

void fail_call(int kind, unsigned long after, int error, int isHalf) {
  failed = NULL;
  failing_error = error;
  failing_half = isHalf;
  failing_after = (long)after;
  failing_kind = kind;
}

const char *failed_call(void) {
  failing_kind = -1;
  return atomic_exchange(&failed, NULL);
}

static atomic_int interrupted_kind = -1;
static atomic_long interrupted_after;
static void (*interruption)(void);

void at_call(int kind, unsigned long after, void (*body)(void)) {
  interruption = body;
  interrupted_after = (long)after;
  interrupted_kind = kind;
}

bool fails(int kind, const char *name) {
  counts[kind]++;
  if (interrupted_kind == kind && interrupted_after-- == 0) {
    interrupted_kind = -1;
    interruption();
  }
  if (failing_kind != kind || failing_after-- != 0) return false;
  failing_kind = -1;
  failed = name;
  errno = failing_error;
  return true;
}

bool write_fails(const char *name, size_t count, bool *half) {
  *half = false;
  if (!fails(CALL_WRITE, name)) return false;
  *half = failing_half && count > 1;
  return true;
}

// MARK: Recording

static atomic_flag is_busy = ATOMIC_FLAG_INIT;
static atomic_bool is_recording;
static struct recorded_call *calls;
static size_t call_count, capacity;

void record_calls(void) {
  forget_calls();
  is_recording = true;
}

bool begin_recorded(void) {
  if (!is_recording) return false;
  while (atomic_flag_test_and_set(&is_busy)) usleep(10);
  return true;
}

void end_recorded(void) { atomic_flag_clear(&is_busy); }

size_t recorded_calls(void) { return call_count; }
struct recorded_call recorded_call(size_t number) { return calls[number]; }

void forget_calls(void) {
  is_recording = false;
  while (atomic_flag_test_and_set(&is_busy)) usleep(10);
  for (size_t place = 0; place < call_count; place++) {
    free((void *)calls[place].bytes);
    free((void *)calls[place].path);
    free((void *)calls[place].other);
  }
  free(calls);
  calls = NULL;
  call_count = capacity = 0;
  end_recorded();
}

void record(int kind, uint64_t number, int64_t offset, const void *bytes, size_t count, const char *path, const char *other) {
  int error = errno;
  if (call_count == capacity) {
    capacity = capacity ? capacity * 2 : 1024;
    calls = realloc(calls, capacity * sizeof *calls);
    if (!calls) abort();
  }
  uint8_t *copy = NULL;
  if (bytes) {
    copy = malloc(count ? count : 1);
    if (!copy) abort();
    memcpy(copy, bytes, count);
  }
  calls[call_count++] = (struct recorded_call){
    kind, number, offset, count, copy, path ? strdup(path) : NULL, other ? strdup(other) : NULL};
  errno = error;
}

uint64_t inode_of(int descriptor) {
  struct stat status;
  int error = errno;
  uint64_t number = fstat(descriptor, &status) == 0 ? status.st_ino : 0;
  errno = error;
  return number;
}

uint64_t inode_at(const char *path) {
  struct stat status;
  int error = errno;
  uint64_t number = lstat(path, &status) == 0 ? status.st_ino : 0;
  errno = error;
  return number;
}
