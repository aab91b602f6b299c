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

    /// The lines of a `check` that tell of a fault: all but those that say how random a file looks.
    var faults: [Substring] { output.split(separator: "\n").filter { !$0.hasPrefix("file ") } }
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

/// A child process that runs.
final class Child {
  let pid: pid_t
  private let tool: Tool
  private let files: (output: String, errors: String)

  /// `input` is a path. Output goes to files, so that no pipe can fill.
  init(_ tool: Tool, _ program: String, _ arguments: [String], input: String) throws {
    self.tool = tool
    var arguments = arguments
    // Deleting needs no key.
    if program == Tool.executable, let keyFile = tool.keyFile, arguments.first != "delete" {
      arguments.insert(
        contentsOf: ["--key-file", keyFile], at: arguments.firstIndex(of: "--") ?? arguments.count)
    }
    let name = UUID().uuidString
    files = (tool.path(".\(name).out"), tool.path(".\(name).err"))
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, files.output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, files.errors, O_WRONLY | O_CREAT | O_TRUNC, 0o600)

    // The threads that tests run on block signals, and a child would inherit that.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    var interrupt = none
    sigaddset(&interrupt, SIGINT)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &interrupt)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("TOUCHSTONE_") }
    environment.merge(tool.environment) { $1 }
    // `env` goes to the directory and then becomes the program.
    var words = (["env", "-C", tool.directory, program] + arguments).map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { (words + variables).forEach { free($0) } }
    var pid: pid_t = 0
    let status = posix_spawnp(&pid, "env", &actions, &attributes, &words, &variables)
    guard status == 0 else {
      throw Tool.Failure(description: "can't run \(program): \(String(cString: strerror(status)))")
    }
    self.pid = pid
  }

  /// What is on standard output by now.
  var output: String { text(of: files.output) ?? "" }
  /// What is on standard error by now.
  var errors: String { text(of: files.errors) ?? "" }

  /// Waits until a condition holds, as long as the child runs and at most a minute.
  func wait(until condition: () throws -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while try !condition() {
      guard ContinuousClock.now < deadline else {
        kill(pid, SIGKILL)
        throw Tool.Failure(description: "waited for a minute; the output is: \(output)")
      }
      usleep(5_000)
    }
  }

  /// Waits for its end and returns its peak of resident memory in bytes. (The usage that `wait4` gives begins
  /// with the peak of the process that started it.)
  func peakMemory() -> Int {
    var peak = 0
    while let status = text(of: "/proc/\(pid)/status"),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
    {
      peak = max(peak, line.split(separator: " ").compactMap({ Int($0) }).first ?? 0)
      usleep(5_000)
    }
    return peak << 10
  }

  func wait() throws -> Tool.Result {
    var status: Int32 = 0
    let deadline = ContinuousClock.now + .seconds(300)
    while waitpid(pid, &status, WNOHANG) == 0 {
      if ContinuousClock.now > deadline { kill(pid, SIGKILL) }
      usleep(2_000)
    }
    let signal = status & 0x7F
    return Tool.Result(
      status: signal == 0 ? status >> 8 & 0xFF : 128 + signal, output: output,
      errors: text(of: files.errors) ?? "")
  }
}

/// An engine to test with, and how a database of it is made.
enum TestEngine: String, CaseIterable, Sendable {
  case sqlite, lmdb, sqlcipher
  case sqlcipherPlain = "sqlcipher-plain"
  case lmdbEncrypted = "lmdb-encrypted"

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
