#include <lmdb.h>
#include <stddef.h>

/// Asks the processor for the memory of a value that LMDB has returned and that will be read soon: where it begins, and
/// where it ends. A Fleece body is read from its end.
static inline void clmdb_will_read(const void *value, size_t bytes) {
  __builtin_prefetch(value, 0, 3);
  if (bytes > 64) __builtin_prefetch((const char *)value + bytes - 1, 0, 3);
}
