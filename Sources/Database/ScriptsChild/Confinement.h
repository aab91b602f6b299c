// What this program gives up before it runs a script: memory past a limit, files, processes, the network.
#pragma once

#include <cstddef>

namespace scripts {

// Before the engine starts: closes what was inherited, and sets the limits that the engine doesn't mind.
void dropInheritance();

// After the engine has started: bounds memory to `bytes` more than is mapped now, and refuses system calls that
// computing doesn't need. Returns false when the limits can't be set. `filters` tells whether system calls are refused:
// some kernels and containers don't let it.
bool confine(size_t bytes, bool* filters);

}  // namespace scripts
