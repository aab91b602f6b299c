#include "include/CBuild.h"

#ifndef TOUCHSTONE_COMMIT
#define TOUCHSTONE_COMMIT ""
#endif

const char *build_commit(void) { return TOUCHSTONE_COMMIT; }
