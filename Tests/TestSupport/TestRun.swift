// What the environment says about this run of the tests.

import Foundation
import Storage

@_exported import struct StorageConformance.SeededGenerator
@_exported import struct StorageConformance.Strictness

#if canImport(Glibc)
  import Glibc
#endif

/// The text of a variable of the environment; nil when it is unset or empty.
public func environmentVariable(_ name: String) -> String? { EnvironmentVariable.value(name) }

/// Whether the long campaigns were asked for: TOUCHSTONE_LONG is set.
public let isLong = environmentVariable("TOUCHSTONE_LONG") != nil

/// Whether a sanitizer is linked: what a test measures of memory then is the sanitizer's.
public let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// The seed of all random tests of this process, printed at its first use; TOUCHSTONE_SEED repeats one.
public let testSeed: UInt64 = {
  let seed =
    environmentVariable("TOUCHSTONE_SEED").flatMap(UInt64.init)
    ?? UInt64.random(in: 0..<1_000_000_000)
  print("random tests run with TOUCHSTONE_SEED=\(seed)")
  return seed
}()

/// The path of an executable of this package, such as `blobs-child`; nil when it wasn't built.
public func childExecutable(_ name: String) -> String? {
  // It is built beside the bundle of the tests, which its runner loads, or which is the running executable.
  let candidates = Bundle.allBundles.map(\.bundlePath) + CommandLine.arguments
  return candidates.lazy
    .map { ($0 as NSString).deletingLastPathComponent + "/" + name }
    .first { FileManager.default.isExecutableFile(atPath: $0) }
}
