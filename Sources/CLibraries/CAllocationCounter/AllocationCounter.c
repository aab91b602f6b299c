// A library to be preloaded that counts allocations: malloc and its kin, which it hands on to glibc.

#include "CAllocationCounter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

// What glibc's own functions are called besides.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations;

static inline void count(void) {
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

long touchstone_allocation_count(void) {
  return atomic_load_explicit(&allocations, memory_order_relaxed);
}

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
  count();
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  count();
  int before = errno;
  void *found = __libc_memalign(alignment, size);
  // It says what it has to say by its result alone.
  errno = before;
  if (found == NULL) return ENOMEM;
  *result = found;
  return 0;
}
