#include <linux/falloc.h>
#include <lmdb.h>
#include <stddef.h>
#include <sys/types.h>

// Of the system, which declares it only for programs that ask for all of GNU's functions.
int fallocate(int file, int mode, off_t offset, off_t bytes);

/// Allocates the blocks of a file's first bytes. The size of the file stays. Returns -1 and sets `errno` if it can't.
static inline int clmdb_allocate(int file, off_t bytes) {
  return fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes);
}

/// Asks the processor for the memory of a value that LMDB has returned and that will be read soon: two lines where it
/// begins, and two where it ends. A Fleece body is read from its end, where its root and its last texts are.
static inline void clmdb_will_read(const void *value, size_t bytes) {
  const char *first = value;
  __builtin_prefetch(first, 0, 3);
  if (bytes > 64) __builtin_prefetch(first + bytes - 1, 0, 3);
  if (bytes > 192) {
    __builtin_prefetch(first + 64, 0, 3);
    __builtin_prefetch(first + bytes - 65, 0, 3);
  }
}
