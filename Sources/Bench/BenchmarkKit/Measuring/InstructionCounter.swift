import FoundationEssentials

/// Counts the instructions of runs with valgrind's tool callgrind.
///
/// The bench runs as a child under callgrind, at small sizes because it is about fifty times slower there.
/// Only the instructions between the beginning and the end of a run count (`MeasuredRegion`), and only those
/// of the thread that runs it.
package struct InstructionCounter: Sendable {
  /// A failure to count.
  package struct Failure: Error, CustomStringConvertible {
    /// The reason, for people.
    package let description: String

    /// A failure with that reason.
    package init(description: String) { self.description = description }
  }

  private let valgrind: String
  private let strip: String

  /// Makes a counter. Throws `Failure` if valgrind or strip isn't on the search path.
  package init() throws {
    guard let valgrind = Program.path(of: "valgrind"), let strip = Program.path(of: "strip") else {
      throw Failure(
        description:
          "counting instructions needs valgrind and strip; install the Debian packages valgrind and binutils")
    }
    self.valgrind = valgrind
    self.strip = strip
  }

  /// Runs `executable arguments` and returns the instructions of each run, in order. Temporary files are made
  /// below `directory` and removed.
  package func count(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:], in directory: String
  ) throws -> [Int] {
    let scratch = try TrialDirectory(in: directory)
    defer { scratch.remove() }
    // valgrind fails on debugging information in a newer format than it knows.
    let stripped = "\(scratch.path)/\(URL(fileURLWithPath: executable).lastPathComponent)"
    try run(strip, ["--strip-debug", "-o", stripped, executable], [:])
    let output = "\(scratch.path)/callgrind"
    var variables = environment
    // Makes hash tables the same in each run.
    variables["SWIFT_DETERMINISTIC_HASHING"] = "1"
    try run(
      valgrind,
      [
        "--quiet", "--tool=callgrind", "--toggle-collect=\(MeasuredRegion.symbol)",
        "--dump-after=\(MeasuredRegion.symbol)", "--callgrind-out-file=\(output)", stripped,
      ] + arguments, variables)
    var counts: [Int] = []
    while let text = TextFile.read("\(output).\(counts.count + 1)") {
      guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("totals: ") }),
        let count = Int(line.dropFirst("totals: ".count))
      else { throw Failure(description: "callgrind's file \(counts.count + 1) has no totals") }
      counts.append(count)
    }
    return counts
  }

  private func run(_ path: String, _ arguments: [String], _ variables: [String: String]) throws {
    let outcome = try Program.run(path, arguments, environment: variables)
    guard outcome.status == 0 else {
      let name = URL(fileURLWithPath: path).lastPathComponent
      throw Failure(description: "\(name) ended with \(outcome.status): \(outcome.lastLines)")
    }
  }
}
