import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// Counts the allocations of runs: calls of malloc, calloc, realloc and their kin, by all threads.
///
/// They are counted by a library that is preloaded into a process of its own, which makes the same runs again: nothing
/// is counted, and nothing slower, in the process whose times are taken.
public enum AllocationCounter {
  /// The library's file, which lies beside the executable.
  public static let libraryName = "libtouchstone-allocations.so"

  /// Allocations of this process so far; nil when it was started without the library.
  static func current() -> Int? { function.map { $0() } }

  private static let function: (@convention(c) () -> Int)? = {
    // Nil is where the search for a name begins: all that is loaded.
    guard let symbol = dlsym(nil, "touchstone_allocation_count") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int).self)
  }()

  /// Runs `executable arguments`, a bench that writes results to `output`, with its allocations counted, and returns
  /// them: by the identity of a result, the least of its runs. Throws `InstructionCounter.Failure`.
  public static func count(_ executable: String, _ arguments: [String], output: String) throws -> [String:
    Int]
  {
    let directory = URL(fileURLWithPath: executable).deletingLastPathComponent().path
    let library = directory + "/" + libraryName
    guard FileManager.default.isReadableFile(atPath: library) else {
      throw InstructionCounter.Failure(
        description: "counting allocations needs \(library): swift build --product touchstone-allocations")
    }
    // By its name: a path with a space would be taken for two libraries.
    let directories = [directory, ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? ""]
    let outcome = try Program.run(
      executable, arguments,
      environment: [
        "LD_PRELOAD": libraryName,
        "LD_LIBRARY_PATH": directories.filter { !$0.isEmpty }.joined(separator: ":"),
      ])
    guard outcome.status == 0 else {
      throw InstructionCounter.Failure(
        description: "the run that counts allocations ended with \(outcome.status): \(outcome.lastLines)")
    }
    var counts: [String: Int] = [:]
    for result in try ResultsFile(validating: Data(contentsOf: URL(fileURLWithPath: output))).results {
      if let least = result.metrics[.allocations]?.samples.min() { counts[result.identity] = Int(least) }
    }
    return counts
  }
}
