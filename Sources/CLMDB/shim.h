#include <lmdb.h>
#include <stdint.h>

/// Asks for the memory of all entries of a leaf page before they are read, given the address of a key in it: entries
/// lie anywhere in a page, and the processor guesses none of them. `last` is what the call before returned; nothing
/// happens when the page is the same.
///
/// The page's header is read as PageFile.swift has it. What isn't a leaf of 4,096 bytes is left alone.
static inline uintptr_t clmdb_prefetch_leaf(const void *key, uintptr_t last) {
  uintptr_t page = (uintptr_t)key & ~(uintptr_t)4095;
  if (page == last) return page;
  const uint16_t *header = (const uint16_t *)page;
  unsigned lower = header[6];
  if (header[5] != 2 || lower < 16 || lower > 4096) return page;
  unsigned count = (lower - 16) / 2;
  for (unsigned index = 0; index < count; index++) {
    uintptr_t node = page + header[8 + index];
    __builtin_prefetch((const void *)node, 0, 3);
    // Below it ends the value of another entry, whose end is what is read of it.
    __builtin_prefetch((const void *)(node - 64), 0, 3);
  }
  __builtin_prefetch((const void *)(page + 4095), 0, 3);
  return page;
}
