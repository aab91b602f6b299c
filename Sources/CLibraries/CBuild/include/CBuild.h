// What only the build knows.

#ifndef TOUCHSTONE_BUILD_H
#define TOUCHSTONE_BUILD_H

// The commit that was built, as `git describe --always --dirty` names it; empty if the build wasn't told
// (Package.swift).
const char *build_commit(void);

#endif
