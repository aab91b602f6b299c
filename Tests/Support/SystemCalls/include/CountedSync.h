// The system's calls that sync files, in the place of the C library's: those of a program that links this are counted, also
// the ones that libraries make, and fail when a test says so.

#ifndef COUNTED_SYNC_H
#define COUNTED_SYNC_H

/// How often a directory was synced, and how often a file.
int synced_directories(void);
int synced_files(void);

// Whether a directory with that inode is among the last 64 that were synced, or that a program tried to sync.
int has_synced_directory(unsigned long inode);

/// Lets syncs fail with this error of the system from now on; 0: they do what they should.
void fail_syncs(int error);

/// Lets one sync fail, once: that which comes after as many others as `after` says.
void fail_one_sync(int after, int error);

/// Takes back what `fail_one_sync` asked for. Returns whether that sync hasn't come.
int take_back_failing_sync(void);

/// How many calls were made that sync a file or change a name: of files and of directories.
int changed_files(void);

/// Kills the process just before one of these calls, the first of which is 0.
void die_at_change(int change);

#endif
