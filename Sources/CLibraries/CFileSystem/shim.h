// What glibc declares only to those who ask for all of its extensions.
#include <sys/types.h>

extern int syncfs(int descriptor);
extern int renameat2(int old_directory, const char *old_path, int new_directory, const char *new_path,
                     unsigned int flags);
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
extern ssize_t fgetxattr(int descriptor, const char *name, void *value, size_t bytes);
extern ssize_t getxattr(const char *path, const char *name, void *value, size_t bytes);
extern int fsetxattr(int descriptor, const char *name, const void *value, size_t bytes, int flags);
extern int fremovexattr(int descriptor, const char *name);
