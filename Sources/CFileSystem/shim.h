// What glibc declares only to those who ask for all of its extensions.
extern int syncfs(int descriptor);
