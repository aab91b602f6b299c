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
