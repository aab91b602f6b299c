#define _GNU_SOURCE
#include "CountedSync.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int directories, files, failure, once, remaining = -1;

int synced_directories(void) { return directories; }
int synced_files(void) { return files; }

static atomic_ulong synced[64];

int has_synced_directory(unsigned long inode) {
  for (int place = 0; place < 64; place++) {
    if (synced[place] == inode) return 1;
  }
  return 0;
}

void fail_syncs(int error) { failure = error; }

void fail_one_sync(int after, int error) {
  once = error;
  remaining = after;
}

int take_back_failing_sync(void) { return atomic_exchange(&remaining, -1) >= 0; }

static atomic_int changes, last = -1;

int changed_files(void) { return changes; }
void die_at_change(int change) { last = change; }

static void change(void) {
  if (changes++ == last) kill(getpid(), SIGKILL);
}

static int counted(int descriptor, const char *name) {
  struct stat status;
  change();
  if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    synced[directories++ % 64] = status.st_ino;
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

// The other calls change names.
#define CHANGE(name, parameters, ...)                                   \
  int name parameters {                                                 \
    change();                                                           \
    int(*call) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name); \
    return call(__VA_ARGS__);                                           \
  }

CHANGE(mkdir, (const char *path, mode_t mode), path, mode)
CHANGE(rename, (const char *old, const char *new), old, new)
CHANGE(renameat2, (int from, const char *old, int to, const char *new, unsigned flags), from, old, to, new, flags)
CHANGE(rmdir, (const char *path), path)
CHANGE(syncfs, (int descriptor), descriptor)
CHANGE(unlink, (const char *path), path)
