#include <lmdb.h>
#include <stdint.h>

// Memory that is asked for before it is read. LMDB's walk over a leaf and the look at a value's end are a miss of the
// caches each, which the processor doesn't foresee: entries lie anywhere in a page. But pages that were filled in order
// mostly lie in order, so the entries of the next ones are asked for while those of this one are looked at.
//
// Headers of pages are read as PageFile.swift has them; what isn't a leaf of 4,096 bytes is left alone.

enum { clmdb_page_bytes = 4096, clmdb_pages_ahead = 2 };

/// Asks for the entries of the leaf at an address.
static inline void clmdb_prefetch_entries(uintptr_t page) {
  const uint16_t *header = (const uint16_t *)page;
  unsigned lower = header[6];
  if (header[5] != 2 || lower < 16 || lower > clmdb_page_bytes) return;
  unsigned count = (lower - 16) / 2;
  // Small entries lie close together.
  if (count > 24) return;
  for (unsigned index = 0; index < count; index++) {
    uintptr_t node = page + header[8 + index];
    __builtin_prefetch((const void *)node, 0, 3);
    // Below it ends another entry's value, whose end is what is read of it first.
    __builtin_prefetch((const void *)(node - 64), 0, 3);
  }
  __builtin_prefetch((const void *)(page + clmdb_page_bytes - 1), 0, 3);
}

/// Given the address of a key, asks for the entries of its leaf and of the pages behind it. `last` is what the call
/// before returned: nothing happens when the leaf is the same. `last_page` is the number of the file's last page.
static inline uintptr_t clmdb_prefetch_leaf(const void *key, uintptr_t last, uint64_t last_page) {
  uintptr_t page = (uintptr_t)key & ~(uintptr_t)(clmdb_page_bytes - 1);
  if (page == last) return page;
  uint64_t number = *(const uint64_t *)page;
  // Pages of another size: the number isn't where this looks.
  if (number > last_page) return page;
  if (page != last + clmdb_page_bytes) {
    for (unsigned next = 0; next < clmdb_pages_ahead && number + next <= last_page; next++)
      clmdb_prefetch_entries(page + next * clmdb_page_bytes);
  }
  if (number + clmdb_pages_ahead <= last_page)
    clmdb_prefetch_entries(page + clmdb_pages_ahead * clmdb_page_bytes);
  if (number + 2 * clmdb_pages_ahead <= last_page)
    __builtin_prefetch((const void *)(page + 2 * clmdb_pages_ahead * clmdb_page_bytes), 0, 3);
  return page;
}
