import FoundationEssentials

#if canImport(Glibc)
  import Glibc
#endif

/// Counts the allocations of runs: calls of malloc, calloc, realloc and similar functions, by all threads.
///
/// A library that is preloaded into a separate process counts them, and that process repeats the same runs.
/// The process that measures times isn't affected.
package enum AllocationCounter {
  /// The file name of the library. It is beside the executable.
  package static let libraryName = "libtouchstone-allocations.so"

  /// The number of allocations of this process so far; nil if it was started without the library.
  static func current() -> Int? { function.map { $0() } }

  private static let function: (@convention(c) () -> Int)? = {
    // With nil, dlsym searches everything that is loaded.
    guard let symbol = dlsym(nil, "touchstone_allocation_count") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int).self)
  }()

  /// Runs `executable arguments`, a bench that writes results to `output`, and counts its allocations.
  /// Returns the least count of each result's runs, by the result's identity. Throws
  /// `InstructionCounter.Failure`.
  package static func count(_ executable: String, _ arguments: [String], output: String) throws -> [String:
    Int]
  {
    let directory = URL(fileURLWithPath: executable).deletingLastPathComponent().path
    let library = directory + "/" + libraryName
    guard FileManager.default.isReadableFile(atPath: library) else {
      throw InstructionCounter.Failure(
        description:
          "counting allocations needs \(library); build it with: swift build --product touchstone-allocations"
      )
    }
    // The library is given by name: a path with a space would be read as two libraries.
    let directories = [directory, ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? ""]
    let outcome = try Program.run(
      executable, arguments,
      environment: [
        "LD_PRELOAD": libraryName,
        "LD_LIBRARY_PATH": directories.filter { !$0.isEmpty }.joined(separator: ":"),
      ])
    guard outcome.status == 0 else {
      throw InstructionCounter.Failure(
        description:
          "the run that counts allocations ended with status \(outcome.status): \(outcome.lastLines)")
    }
    var counts: [String: Int] = [:]
    for result in try ResultsFile(validating: Data(contentsOf: URL(fileURLWithPath: output))).results {
      if let least = result.metrics[.allocations]?.samples.min() { counts[result.identity] = Int(least) }
    }
    return counts
  }
}
