import TestSupport

/// The built `touchstone`, run as a child process in a directory of its own.
struct Tool {
  /// What a run gave.
  struct Result {
    let status: Int32
    let output: String
    let errors: String
    var lines: [String] { output.split(separator: "\n").map(String.init) }
    /// The JSON object that was printed.
    func json() throws -> [String: Any] {
      try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
    }

    /// The lines of a `check` that tell of a fault: all but those that say how random a file looks, or that all is well.
    var faults: [Substring] {
      output.split(separator: "\n").filter { line in
        !["file ", "searched ", "sound: "].contains { line.hasPrefix($0) }
      }
    }
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The directory that runs begin in, and that relative paths are below.
  let directory: String
  var environment: [String: String] = [:]
  /// The file of the key that each run is given.
  var keyFile: String?

  /// Calls `body` with a tool in a new directory, removed afterwards.
  static func run(_ body: (Tool) throws -> Void) throws {
    try withTemporaryDirectory { try body(Tool(directory: $0)) }
  }

  /// Beside the test bundle, where the build puts both.
  static let executable: String = {
    let process = CommandLine.arguments
    let bundle =
      process.firstIndex(of: "--test-bundle-path").map { process[$0 + 1] }
      ?? (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? process[0]
    return URL(filePath: bundle).deletingLastPathComponent().appending(path: "touchstone").path
  }()

  func path(_ name: String) -> String { directory + "/" + name }

  func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: URL(filePath: path(name)))
  }

  func read(_ name: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: path(name))), as: UTF8.self)
  }

  /// Runs the tool to its end.
  @discardableResult
  func callAsFunction(_ arguments: String..., input: String = "") throws -> Result {
    try run(Self.executable, arguments, input: input)
  }

  /// Runs the tool and throws unless it ends with status 0.
  @discardableResult
  func succeed(_ arguments: String..., input: String = "") throws -> Result {
    let result = try run(Self.executable, arguments, input: input)
    guard result.status == 0 else {
      throw Failure(description: "\(arguments) ended with \(result.status): \(result.errors)")
    }
    return result
  }

  /// Runs any program to its end.
  func run(_ program: String, _ arguments: [String], input: String = "") throws -> Result {
    let name = UUID().uuidString
    try write(input, to: "." + name)
    let child = try Child(self, program, arguments, input: path("." + name))
    let result = try child.wait()
    try FileManager.default.removeItem(atPath: path("." + name))
    return result
  }
}

/// The text of a file, or nil. (Foundation's own way leaks a buffer for each file that says its size is 0.)
private func text(of path: String) -> String? {
  (try? AtomicFile.read(path, limit: 8 << 20)).map { String(decoding: $0, as: UTF8.self) }
}

/// A child process that runs. It is killed with its object.
final class Child {
  private let process: ChildProcess

  /// `input` is a path.
  init(_ tool: Tool, _ program: String, _ arguments: [String], input: String = "/dev/null") throws {
    var arguments = arguments
    // Deleting needs no key.
    if program == Tool.executable, let keyFile = tool.keyFile, arguments.first != "delete" {
      arguments.insert(
        contentsOf: ["--key-file", keyFile], at: arguments.firstIndex(of: "--") ?? arguments.count)
    }
    // `env` goes to the directory and then becomes the program.
    var launch = ProgramLaunch("/usr/bin/env", ["-C", tool.directory, program] + arguments)
    launch.environment = launch.environment.filter { !$0.key.hasPrefix("TOUCHSTONE_") }
    launch.environment.merge(tool.environment) { $1 }
    process = try ChildProcess(launch, input: .file(input))
  }

  /// The ID of the process.
  var identifier: pid_t { process.identifier }
  /// Whether it hasn't ended.
  var isRunning: Bool { process.ending == nil }
  /// What is on standard output by now.
  var output: String { process.outputText }
  /// What is on standard error by now.
  var errors: String { process.errorText }

  /// Sends a signal, if it hasn't ended.
  func kill(_ signal: Int32 = SIGKILL) { process.kill(signal) }

  /// Waits until a condition holds, as long as the child runs and at most a minute. It asks more and more seldom, since most conditions
  /// are commands.
  func wait(until condition: () throws -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(60)
    var pause: UInt32 = 2_000
    while try !condition() {
      guard ContinuousClock.now < deadline else {
        kill()
        throw Tool.Failure(description: "waited for a minute; the output is: \(output) \(errors)")
      }
      usleep(pause)
      pause = min(pause + pause / 2, 100_000)
    }
  }

  /// Waits for its end and returns its peak of resident memory in bytes. (The usage that `wait4` gives begins
  /// with the peak of the process that started it.)
  func peakMemory() -> Int {
    var peak = 0
    while let status = text(of: "/proc/\(process.identifier)/status"),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
    {
      peak = max(peak, line.split(separator: " ").compactMap({ Int($0) }).first ?? 0)
      usleep(5_000)
    }
    return peak << 10
  }

  func wait() throws -> Tool.Result {
    let ending = try process.wait(seconds: 300)
    return Tool.Result(status: ending.shellStatus, output: output, errors: errors)
  }
}

/// An engine to test with, and how a database of it is made.
enum TestEngine: String, CaseIterable, Sendable {
  case sqlite, lmdb, sqlcipher
  case sqlcipherPlain = "sqlcipher-plain"
  case lmdbEncrypted = "lmdb-encrypted"

  /// All in the long run; otherwise a plain one and an encrypted one, of both libraries.
  static let some = isLong ? allCases : [.sqlite, .lmdbEncrypted]

  var encrypts: Bool { self == .sqlcipher || self == .lmdbEncrypted }

  /// A tool with an empty database `db` of this engine, and its key when there is one: a raw one, since each run would
  /// take half a second to derive it from a passphrase.
  func withDatabase(_ body: (Tool) throws -> Void) throws {
    try Tool.run { tool in
      var tool = tool
      if encrypts {
        tool.keyFile = tool.path("raw.key")
        try Data(0..<32).write(to: URL(filePath: tool.path("raw.key")))
      }
      try tool.succeed("create", "db", "--engine", rawValue)
      try body(tool)
    }
  }
}
