// The system's calls in the place of the C library's. A program's own symbols come before those of its libraries, also of
// the ones that it opens later. Each call does what the C library does, unless a test asks for more.
#define _GNU_SOURCE
#include "Watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// MARK: Syncs

static int synced(int descriptor, int number, const char *name) {
  if (counted_sync_fails(descriptor)) {
    if (watches(descriptor) && begin_recorded()) {
      record(RECORDED_FAILED_SYNC, inode_of(descriptor), 0, NULL, 0, NULL, NULL);
      end_recorded();
    }
    return -1;
  }
  if (!watches(descriptor)) return (int)syscall(number, descriptor);
  bool fail = fails(CALL_SYNC, name);
  bool recorded = begin_recorded();
  int result = fail ? -1 : (int)syscall(number, descriptor);
  if (recorded) {
    int kind = result != 0 ? RECORDED_FAILED_SYNC : number == SYS_syncfs ? RECORDED_SYNC_ALL : RECORDED_SYNC;
    record(kind, inode_of(descriptor), 0, NULL, 0, NULL, NULL);
    end_recorded();
  }
  return result;
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync, "fsync"); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync, "fdatasync"); }

int syncfs(int descriptor) {
  count_change();
  if (!watches(descriptor)) return (int)syscall(SYS_syncfs, descriptor);
  if (fails(CALL_SYNC, "syncfs")) return -1;
  bool recorded = begin_recorded();
  int result = (int)syscall(SYS_syncfs, descriptor);
  if (recorded) {
    if (result == 0) record(RECORDED_SYNC_ALL, 0, 0, NULL, 0, NULL, NULL);
    end_recorded();
  }
  return result;
}

// MARK: Names

static int renamed(int from, const char *old, int to, const char *new, unsigned flags, const char *name) {
  char old_path[4096], new_path[4096];
  const char *watched_old = watched_path(from, old, old_path), *watched_new = watched_path(to, new, new_path);
  count_change();
  if (!watched_old && !watched_new) return (int)syscall(SYS_renameat2, from, old, to, new, flags);
  if (fails(CALL_NAME, name)) return -1;
  bool recorded = begin_recorded();
  int result = (int)syscall(SYS_renameat2, from, old, to, new, flags);
  if (recorded) {
    if (result == 0) record(RECORDED_RENAME, 0, 0, NULL, 0, watched_old, watched_new);
    end_recorded();
  }
  return result;
}

int rename(const char *old, const char *new) { return renamed(AT_FDCWD, old, AT_FDCWD, new, 0, "rename"); }
int renameat(int from, const char *old, int to, const char *new) { return renamed(from, old, to, new, 0, "renameat"); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  return renamed(from, old, to, new, flags, "renameat2");
}

static int made_folder(int directory, const char *path, mode_t mode) {
  char whole[4096];
  const char *watched = watched_path(directory, path, whole);
  count_change();
  if (!watched) return (int)syscall(SYS_mkdirat, directory, path, mode);
  if (fails(CALL_NAME, "mkdir")) return -1;
  bool recorded = begin_recorded();
  int result = (int)syscall(SYS_mkdirat, directory, path, mode);
  if (recorded) {
    if (result == 0) record(RECORDED_FOLDER, inode_at(watched), 0, NULL, 0, watched, NULL);
    end_recorded();
  }
  return result;
}

int mkdir(const char *path, mode_t mode) { return made_folder(AT_FDCWD, path, mode); }
int mkdirat(int directory, const char *path, mode_t mode) { return made_folder(directory, path, mode); }

static int removed(int directory, const char *path, int flags, const char *name) {
  char whole[4096];
  const char *watched = watched_path(directory, path, whole);
  count_change();
  if (!watched) return (int)syscall(SYS_unlinkat, directory, path, flags);
  if (fails(CALL_NAME, name)) return -1;
  bool recorded = begin_recorded();
  int result = (int)syscall(SYS_unlinkat, directory, path, flags);
  if (recorded) {
    if (result == 0) record(RECORDED_UNLINK, 0, 0, NULL, 0, watched, NULL);
    end_recorded();
  }
  return result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0, "unlink"); }
int unlinkat(int directory, const char *path, int flags) { return removed(directory, path, flags, "unlinkat"); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR, "rmdir"); }

#if WRAPS_ALL

static int linked(int from, const char *old, int to, const char *new, int flags) {
  char old_path[4096], new_path[4096];
  const char *watched_old = watched_path(from, old, old_path), *watched_new = watched_path(to, new, new_path);
  if (!watched_old && !watched_new) return (int)syscall(SYS_linkat, from, old, to, new, flags);
  if (fails(CALL_NAME, "link")) return -1;
  bool recorded = begin_recorded();
  int result = (int)syscall(SYS_linkat, from, old, to, new, flags);
  if (recorded) {
    if (result == 0) record(RECORDED_LINK, 0, 0, NULL, 0, watched_old, watched_new);
    end_recorded();
  }
  return result;
}

int link(const char *old, const char *new) { return linked(AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) { return linked(from, old, to, new, flags); }

// MARK: Descriptors

static int opened(int directory, const char *path, int flags, mode_t mode) {
  char whole[4096];
  const char *watched = watched_path(directory, path, whole);
  if (!watched) {
    int descriptor = (int)syscall(SYS_openat, directory, path, flags, mode);
    watch_descriptor(descriptor);
    return descriptor;
  }
  if (fails(CALL_OPEN, "open")) return -1;
  bool changes = (flags & (O_CREAT | O_TRUNC)) && begin_recorded();
  struct stat status;
  bool is_new = changes && lstat(watched, &status) != 0;
  int descriptor = (int)syscall(SYS_openat, directory, path, flags, mode);
  watch_descriptor(descriptor);
  if (changes) {
    if (descriptor >= 0 && is_new) record(RECORDED_FILE, inode_of(descriptor), 0, NULL, 0, watched, NULL);
    if (descriptor >= 0 && !is_new && (flags & O_TRUNC)) record(RECORDED_SIZE, inode_of(descriptor), 0, NULL, 0, NULL, NULL);
    end_recorded();
  }
  return descriptor;
}

#define MODE                          \
  mode_t mode = 0;                    \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list list;                     \
    va_start(list, flags);            \
    mode = va_arg(list, mode_t);      \
    va_end(list);                     \
  }

int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE return opened(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE return opened(directory, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int descriptor) {
  bool fail = watches(descriptor) && fails(CALL_CLOSE, "close");
  int error = errno;
  unwatch_descriptor(descriptor);
  int result = (int)syscall(SYS_close, descriptor);
  if (!fail) return result;
  errno = error;
  return -1;
}

static int copied(int result) {
  watch_descriptor(result);
  return result;
}

int dup(int descriptor) { return copied((int)syscall(SYS_dup, descriptor)); }
int dup2(int descriptor, int copy) {
  // The kernel's dup3 refuses equal numbers.
  return descriptor == copy ? (int)syscall(SYS_dup2, descriptor, copy) : copied((int)syscall(SYS_dup3, descriptor, copy, 0));
}
int dup3(int descriptor, int copy, int flags) { return copied((int)syscall(SYS_dup3, descriptor, copy, flags)); }

static int controlled(int descriptor, int command, long argument) {
  switch (command) {
    case F_SETLK: case F_SETLKW: case F_OFD_SETLK: case F_OFD_SETLKW:
      // A local file system doesn't refuse to release a lock, and SQLite doesn't look.
      if (watches(descriptor) && ((const struct flock *)argument)->l_type != F_UNLCK && fails(CALL_LOCK, "fcntl")) return -1;
      break;
    case F_DUPFD: case F_DUPFD_CLOEXEC:
      return copied((int)syscall(SYS_fcntl, descriptor, command, argument));
    default: break;
  }
  return (int)syscall(SYS_fcntl, descriptor, command, argument);
}

#define ARGUMENT(type, last)       \
  va_list list;                    \
  va_start(list, last);            \
  type argument = va_arg(list, type); \
  va_end(list);

int fcntl(int descriptor, int command, ...) {
  ARGUMENT(long, command)
  return controlled(descriptor, command, argument);
}
int fcntl64(int descriptor, int command, ...) {
  ARGUMENT(long, command)
  return controlled(descriptor, command, argument);
}

int flock(int descriptor, int operation) {
  if (watches(descriptor) && operation != LOCK_UN && fails(CALL_LOCK, "flock")) return -1;
  return (int)syscall(SYS_flock, descriptor, operation);
}

// MARK: Bytes

ssize_t read(int descriptor, void *bytes, size_t count) {
  if (watches(descriptor) && fails(CALL_READ, "read")) return -1;
  return syscall(SYS_read, descriptor, bytes, count);
}

static ssize_t read_at(int descriptor, void *bytes, size_t count, off_t offset) {
  if (watches(descriptor) && fails(CALL_READ, "pread")) return -1;
  return syscall(SYS_pread64, descriptor, bytes, count, offset);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) { return read_at(descriptor, bytes, count, offset); }
ssize_t pread64(int descriptor, void *bytes, size_t count, off_t offset) { return read_at(descriptor, bytes, count, offset); }

// Records a write that has been done: `offset` is negative if it was at the descriptor's own place.
static void record_write(int descriptor, const struct iovec *parts, size_t count, off_t offset) {
  int error = errno;
  if (offset < 0) offset = (off_t)syscall(SYS_lseek, descriptor, 0, SEEK_CUR) - (off_t)count;
  long flags = syscall(SYS_fcntl, descriptor, F_GETFL);
  int kind = flags & O_DSYNC ? RECORDED_SYNCED_WRITE : RECORDED_WRITE;
  uint64_t number = inode_of(descriptor);
  for (; count > 0; parts++) {
    size_t length = parts->iov_len < count ? parts->iov_len : count;
    record(kind, number, offset, parts->iov_base, length, NULL, NULL);
    offset += (off_t)length;
    count -= length;
  }
  errno = error;
}

static ssize_t written(int descriptor, const struct iovec *parts, int count, off_t offset, const char *name) {
  bool half = false;
  bool fail = watches(descriptor) && write_fails(name, parts[0].iov_len, &half);
  if (fail && !half) return -1;
  struct iovec first = {parts[0].iov_base, parts[0].iov_len / 2};
  if (half) {
    parts = &first;
    count = 1;
  }
  bool recorded = watches(descriptor) && begin_recorded();
  ssize_t result = offset < 0 ? syscall(SYS_writev, descriptor, parts, count)
                              : syscall(SYS_pwritev, descriptor, parts, count, offset, 0);
  if (recorded) {
    if (result > 0) record_write(descriptor, parts, (size_t)result, offset);
    end_recorded();
  }
  return result;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  if (!watches(descriptor)) return syscall(SYS_write, descriptor, bytes, count);
  struct iovec part = {(void *)bytes, count};
  return written(descriptor, &part, 1, -1, "write");
}

static ssize_t written_at(int descriptor, const void *bytes, size_t count, off_t offset) {
  if (!watches(descriptor)) return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
  struct iovec part = {(void *)bytes, count};
  return written(descriptor, &part, 1, offset, "pwrite");
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  return written_at(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
  return written_at(descriptor, bytes, count, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  if (!watches(descriptor) || count < 1) return syscall(SYS_writev, descriptor, parts, count);
  return written(descriptor, parts, count, -1, "writev");
}
ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
  if (!watches(descriptor) || count < 1) return syscall(SYS_pwritev, descriptor, parts, count, offset, 0);
  return written(descriptor, parts, count, offset, "pwritev");
}

static int resized(int descriptor, off_t size) {
  if (!watches(descriptor)) return (int)syscall(SYS_ftruncate, descriptor, size);
  if (fails(CALL_SIZE, "ftruncate")) return -1;
  bool recorded = begin_recorded();
  int result = (int)syscall(SYS_ftruncate, descriptor, size);
  if (recorded) {
    if (result == 0) record(RECORDED_SIZE, inode_of(descriptor), size, NULL, 0, NULL, NULL);
    end_recorded();
  }
  return result;
}

int ftruncate(int descriptor, off_t size) { return resized(descriptor, size); }
int ftruncate64(int descriptor, off_t size) { return resized(descriptor, size); }

// Returns an error of the system, or 0.
static int allocated(int descriptor, int mode, off_t offset, off_t count, const char *name) {
  bool is_watched = watches(descriptor);
  if (is_watched && fails(CALL_SIZE, name)) return errno;
  bool recorded = is_watched && !(mode & FALLOC_FL_KEEP_SIZE) && begin_recorded();
  int error = errno;
  int result = syscall(SYS_fallocate, descriptor, mode, offset, count) == 0 ? 0 : errno;
  errno = error;
  if (recorded) {
    struct stat status;
    if (result == 0 && fstat(descriptor, &status) == 0) {
      record(RECORDED_SIZE, inode_of(descriptor), status.st_size, NULL, 0, NULL, NULL);
    }
    end_recorded();
  }
  return result;
}

int posix_fallocate(int descriptor, off_t offset, off_t count) {
  return allocated(descriptor, 0, offset, count, "posix_fallocate");
}
int posix_fallocate64(int descriptor, off_t offset, off_t count) {
  return allocated(descriptor, 0, offset, count, "posix_fallocate");
}

static int allocated_with(int descriptor, int mode, off_t offset, off_t count) {
  int error = allocated(descriptor, mode, offset, count, "fallocate");
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int fallocate(int descriptor, int mode, off_t offset, off_t count) {
  return allocated_with(descriptor, mode, offset, count);
}
int fallocate64(int descriptor, int mode, off_t offset, off_t count) {
  return allocated_with(descriptor, mode, offset, count);
}

// A copy within the kernel is left out: the caller goes on with reads and writes, which can be seen.
ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t count, unsigned flags) {
  if (watches(to)) {
    errno = EXDEV;
    return -1;
  }
  return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, count, flags);
}

// MARK: Maps

static void *mapped(void *address, size_t count, int protection, int flags, int descriptor, off_t offset) {
  if (watches(descriptor) && fails(CALL_MAP, "mmap")) return MAP_FAILED;
  return (void *)syscall(SYS_mmap, address, count, protection, flags, descriptor, offset);
}

void *mmap(void *address, size_t count, int protection, int flags, int descriptor, off_t offset) {
  return mapped(address, count, protection, flags, descriptor, offset);
}
void *mmap64(void *address, size_t count, int protection, int flags, int descriptor, off_t offset) {
  return mapped(address, count, protection, flags, descriptor, offset);
}

#endif
