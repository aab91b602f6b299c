// Records what a program does to the files below one folder, so that a test can make of it what a loss of power leaves.
#ifndef TOUCHSTONE_RECORDED_CALLS_H
#define TOUCHSTONE_RECORDED_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum recorded_kind {
  RECORDED_FILE,         ///< A new file `number` has the name `path`.
  RECORDED_FOLDER,       ///< A new folder `number` has the name `path`.
  RECORDED_WRITE,        ///< `count` bytes were written to the file at `offset`.
  RECORDED_SYNCED_WRITE, ///< The same by a descriptor whose writes are synced (O_DSYNC).
  RECORDED_SIZE,         ///< The file has `offset` bytes.
  RECORDED_SYNC,         ///< The file or folder was synced.
  RECORDED_FAILED_SYNC,  ///< A sync of the file or folder failed.
  RECORDED_SYNC_ALL,     ///< All was synced.
  RECORDED_RENAME,       ///< The name `path` became `other`.
  RECORDED_LINK,         ///< What has the name `path` has the name `other` too.
  RECORDED_UNLINK,       ///< The name `path` is gone, of a file or a folder.
};

struct recorded_call {
  int kind;
  /// The number of the inode. A new file may have that of a removed one.
  uint64_t number;
  int64_t offset;
  size_t count;
  const uint8_t *bytes;
  const char *path, *other;
};

/// Records the calls below the folder that is watched (`watch_folder`), from the first one on. It has to be empty.
void record_calls(void);

/// How many calls are recorded.
size_t recorded_calls(void);

/// One of them. It stays valid.
struct recorded_call recorded_call(size_t number);

/// Stops, and forgets them.
void forget_calls(void);

#endif
