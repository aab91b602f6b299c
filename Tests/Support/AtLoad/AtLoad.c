#include "AtLoad.h"

// Runs before `main` of every bundle of tests that links TestSupport: no test can open an engine before.
__attribute__((constructor)) static void at_load(void) { touchstone_tests_at_load(); }
