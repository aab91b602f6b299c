// Lets one of the system's calls fail, and counts them: those that concern files below one folder.
#ifndef TOUCHSTONE_FAILING_CALLS_H
#define TOUCHSTONE_FAILING_CALLS_H

/// The kinds of calls that can fail.
enum system_call_kind {
  CALL_OPEN,     ///< open, openat
  CALL_READ,     ///< read, pread
  CALL_WRITE,    ///< write, pwrite, writev, pwritev
  CALL_SIZE,     ///< ftruncate, posix_fallocate
  CALL_SYNC,     ///< fsync, fdatasync, sync_file_range, syncfs
  CALL_MAP,      ///< mmap
  CALL_NAME,     ///< rename, link, unlink, mkdir, rmdir and their variants
  CALL_LOCK,     ///< flock, fcntl with a lock
  CALL_CLOSE,    ///< close: the descriptor is closed all the same
  CALL_KINDS
};

/// Whether this program's calls are in the place of the C library's. Not so under a sanitizer, which needs its own.
int system_calls_are_wrapped(void);

/// Watches the calls that concern files below this folder, whose path has no symbolic links; null: none any more.
void watch_folder(const char *path);

/// How many calls of a kind were made below the folder since `watch_folder`.
unsigned long watched_calls(int kind);

/// Lets one call of a kind fail with an error of the system: that which comes after as many others of its kind. Only
/// the first half of a write is written before, when `isHalf` is set and the write is long enough.
void fail_call(int kind, unsigned long after, int error, int isHalf);

/// Takes back what `fail_call` asked for. Returns the name of the call that failed, or null if it hasn't come.
const char *failed_call(void);

/// Calls `body` at the beginning of one call of a kind: of that which comes after as many others of its kind. The call then does what
/// it should.
void at_call(int kind, unsigned long after, void (*body)(void));

#endif
