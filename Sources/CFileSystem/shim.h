// What glibc declares only to those who ask for all of its extensions.
#include <sys/types.h>

extern int syncfs(int descriptor);
extern int sync_file_range(int descriptor, off_t offset, off_t count, unsigned int flags);
