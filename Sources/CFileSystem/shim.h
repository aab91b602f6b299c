// What glibc declares only to those who ask for all of its extensions.
#include <sys/types.h>

extern int syncfs(int descriptor);
extern int renameat2(int old_directory, const char *old_path, int new_directory, const char *new_path,
                     unsigned int flags);
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
