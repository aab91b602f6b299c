#define _GNU_SOURCE
#include "CountedSync.h"
#include "Watch.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
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

void count_change(void) { change(); }

bool counted_sync_fails(int descriptor) {
  struct stat status;
  change();
  if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    synced[directories++ % 64] = status.st_ino;
  } else {
    files++;
  }
  if (failure != 0) {
    errno = failure;
    return true;
  }
  if (remaining >= 0 && remaining-- == 0) {
    errno = once;
    return true;
  }
  return false;
}
