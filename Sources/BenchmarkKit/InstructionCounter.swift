import Foundation

/// Counts the instructions of runs with valgrind's tool callgrind.
///
/// The bench is run as a child under callgrind, at small sizes, for it is some fifty times slower there. What is
/// counted is what happens between a run's beginning and its end (`MeasuredRegion`), in the thread that runs it.
public struct InstructionCounter: Sendable {
  /// Why nothing was counted.
  public struct Failure: Error, CustomStringConvertible {
    /// For people.
    public let description: String

    /// A failure of that description.
    public init(description: String) { self.description = description }
  }

  private let valgrind: String
  private let strip: String

  /// Throws `Failure` when valgrind or strip isn't on the search path.
  public init() throws {
    guard let valgrind = SearchPath.executable("valgrind"), let strip = SearchPath.executable("strip") else {
      throw Failure(
        description: "counting instructions needs valgrind and strip (Debian: valgrind, binutils)")
    }
    self.valgrind = valgrind
    self.strip = strip
  }

  /// Runs `executable arguments` below `directory`, where files are made and removed, and returns the instructions of
  /// each run in order.
  public func count(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:], in directory: String
  ) throws -> [Int] {
    let scratch = try TrialDirectory(in: directory)
    defer { scratch.remove() }
    // valgrind stops at debugging information that is newer than it is.
    let stripped = "\(scratch.path)/\(URL(fileURLWithPath: executable).lastPathComponent)"
    _ = try run(strip, ["--strip-debug", "-o", stripped, executable], [:])
    let output = "\(scratch.path)/callgrind"
    var variables = environment
    // Hash tables are the same in each run then.
    variables["SWIFT_DETERMINISTIC_HASHING"] = "1"
    _ = try run(
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

  private func run(_ path: String, _ arguments: [String], _ variables: [String: String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(variables) { $1 }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      let name = URL(fileURLWithPath: path).lastPathComponent
      let said = text.split(separator: "\n").suffix(3).joined(separator: " ")
      throw Failure(description: "\(name) ended with \(process.terminationStatus): \(said)")
    }
    return text
  }
}

/// Where programs are found.
enum SearchPath {
  /// The path of a program that can be run, or nil.
  static func executable(_ name: String) -> String? {
    let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(
      separator: ":")
    return directories.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
