#ifndef CALLOCATIONCOUNTER_H
#define CALLOCATIONCOUNTER_H

// Allocations of this process so far, by all threads. Found by name (dlsym) in processes that were started with the
// library preloaded (LD_PRELOAD); nothing links it.
long touchstone_allocation_count(void);

#endif
