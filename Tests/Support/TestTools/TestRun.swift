// The settings of this test run, from the environment.

import Foundation
import Storage

@_exported import ChildProcesses
@_exported import struct StorageConformance.ConformanceFailure
@_exported import struct StorageConformance.SeededGenerator
@_exported import struct StorageConformance.SortedMap
@_exported import struct StorageConformance.Strictness
@_exported import let StorageConformance.testSeed

/// The text of an environment variable; nil if it is unset or empty.
package func environmentVariable(_ name: String) -> String? { EnvironmentVariable.value(name) }

/// Whether long test campaigns run: TOUCHSTONE_LONG is set.
package let isLong = environmentVariable("TOUCHSTONE_LONG") != nil

/// Whether a sanitizer is linked. Memory measurements then include the sanitizer's own memory.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// Whether tests that repeat something, at random or in many variants, make do with a part of it. A run under a sanitizer doesn't: it is
/// part of `make test-long`.
package let isShort = !isLong && !isSanitized

/// How often something is repeated: in `make test`, in the run under a sanitizer, and in the long run.
package func times(_ short: Int, sanitized: Int, long: Int) -> Int {
  isLong ? long : isSanitized ? sanitized : short
}
