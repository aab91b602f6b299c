#define _GNU_SOURCE
#include "CountedSync.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>

static atomic_int directories, files, failure, once, remaining = -1;

int synced_directories(void) { return directories; }
int synced_files(void) { return files; }
void fail_syncs(int error) { failure = error; }

void fail_one_sync(int after, int error) {
  once = error;
  remaining = after;
}

int take_back_failing_sync(void) { return atomic_exchange(&remaining, -1) >= 0; }

static int counted(int descriptor, const char *name) {
  struct stat status;
  if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    directories++;
  } else {
    files++;
  }
  if (failure != 0) {
    errno = failure;
    return -1;
  }
  if (remaining >= 0 && remaining-- == 0) {
    errno = once;
    return -1;
  }
  int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  return call(descriptor);
}

// LMDB finds them here: a program's own symbols come before those of the C library.
int fsync(int descriptor) { return counted(descriptor, "fsync"); }
int fdatasync(int descriptor) { return counted(descriptor, "fdatasync"); }
