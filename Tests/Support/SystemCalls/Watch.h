// What the wrapped calls have in common.
#ifndef TOUCHSTONE_WATCH_H
#define TOUCHSTONE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "FailingCalls.h"
#include "RecordedCalls.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WRAPS_ALL 0
#endif
#endif
#ifndef WRAPS_ALL
#define WRAPS_ALL 1
#endif

/// Whether a folder is watched, and the descriptor's file lies in it; whether a path lies in it.
bool watches(int descriptor);
bool watches_path(const char *path);
/// The same for a path that may be relative to the folder of a descriptor: the whole path in `whole`, or null.
const char *watched_path(int folder, const char *path, char whole[4096]);

/// Takes up and drops a descriptor.
void watch_descriptor(int descriptor);
void unwatch_descriptor(int descriptor);

/// Counts a call; true if it is to fail, and then `errno` is set.
bool fails(int kind, const char *name);
/// Counts a write; of one that is to fail, `half` says whether its first half is to be written.
bool write_fails(const char *name, size_t count, bool *half);

/// While calls are recorded, they come one after another: `begin_recorded` is true and `end_recorded` has to follow.
bool begin_recorded(void);
void end_recorded(void);
void record(int kind, uint64_t number, int64_t offset, const void *bytes, size_t count, const char *path, const char *other);
/// The inode of a descriptor or a path.
uint64_t inode_of(int descriptor);
uint64_t inode_at(const char *path);

/// For CountedSync: counts the sync of a file or a change of a name, and says whether it is to fail (then `errno` is set).
bool counted_sync_fails(int descriptor);
void count_change(void);

#endif
