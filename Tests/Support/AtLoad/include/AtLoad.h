#ifndef ATLOAD_H
#define ATLOAD_H

/// What TestSupport does before the first test: `StrictRun.swift`.
void touchstone_tests_at_load(void);

#endif
