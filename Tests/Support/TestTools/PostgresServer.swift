import ChildProcesses
import Foundation

/// A PostgreSQL server of one test or of one process of tests, in a temporary directory, with a Unix socket and no network.
///
/// It runs as the user `postgres` where the tests run as root: PostgreSQL refuses to run as root. It doesn't sync, and ends
/// with the process that started it, however that ends.
package final class PostgresServer: Sendable {
  /// Why a server can't be started here. Nil if it can.
  package static let absence: String? =
    programs == nil ? "PostgreSQL isn't installed (postgresql-15)" : nil

  /// The folder of PostgreSQL's programs, of the newest version.
  private static let programs: String? = {
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
    return versions.sorted { (Int($0) ?? 0) > (Int($1) ?? 0) }.map { "/usr/lib/postgresql/\($0)/bin" }.first {
      folder in
      ["initdb", "postgres", "pg_isready"].allSatisfy { access("\(folder)/\($0)", X_OK) == 0 }
    }
  }()

  /// The server that the tests of this process share. It is started at its first use.
  package static let shared = Result { try PostgresServer() }

  /// Its directory: data, socket and log.
  package let directory: String
  private let options: [String]
  private let process = Lock<ChildProcess?>(nil)

  /// Makes a server and starts it.
  ///
  /// - Parameters:
  ///   - options: settings, each as `name=value`.
  ///   - primary: the server that this one follows as a standby. Nil for a server of its own.
  package init(options: [String] = [], standbyOf primary: PostgresServer? = nil) throws {
    guard let programs = Self.programs else { throw Failure(Self.absence ?? "") }
    self.options = options
    // A socket's path has at most 107 bytes.
    let temporary = NSTemporaryDirectory()
    var template = Array(
      ((temporary.utf8.count < 60 ? temporary : "/tmp/") + "touchstone-pg-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("no temporary directory: \(errno)") }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // The user that servers run as writes in it.
    func give(_ directory: String) throws {
      guard geteuid() == 0, let user = getpwnam("postgres")?.pointee else { return }
      guard chown(directory, user.pw_uid, user.pw_gid) == 0 else { throw Failure("chown: \(errno)") }
    }
    func initialize(_ data: String) throws {
      try run([
        "\(programs)/initdb", "-D", data, "-U", "touchstone", "--auth=trust", "--no-sync",
        "--encoding=UTF8", "--locale=C", "--no-instructions",
      ])
    }
    // The data of a new server, which the processes of a run of tests share to copy. Making it takes half a second.
    func sharedData(in shared: String) throws -> String {
      let directory = shared + "/postgres"
      mkdir(directory, 0o755)
      let lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard lock >= 0, flock(lock, LOCK_EX) == 0 else { throw Failure("\(directory): errno \(errno)") }
      defer { close(lock) }
      let data = directory + "/data"
      if access(data, F_OK) != 0 {
        try give(directory)
        // A process that is killed on its way leaves it under another name.
        let unfinished = "\(data)-\(getpid())"
        try initialize(unfinished)
        guard rename(unfinished, data) == 0 else { throw Failure("\(unfinished): errno \(errno)") }
      }
      return data
    }
    try give(directory)
    if let primary {
      try run([
        "\(programs)/pg_basebackup", "-D", directory + "/data", "-h", primary.directory, "-U", "touchstone",
        "-R", "--checkpoint=fast", "--no-sync", "--no-manifest",
      ])
    } else if let shared = environmentVariable("TOUCHSTONE_SHARED") {
      try run(["/bin/cp", "-a", sharedData(in: shared), directory + "/data"])
    } else {
      try initialize(directory + "/data")
    }
    try start()
  }

  deinit {
    try? stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The location of a database on it.
  package func location(_ schema: String, parameters: String = "", user: String = "touchstone") -> String {
    "postgres:///postgres?host=\(directory)&user=\(user)\(parameters)#\(schema)"
  }

  /// What postmaster is told: how a server ends.
  package enum Ending: String, Sendable {
    /// Sessions are ended, and everything is written.
    case fast = "INT"
    /// As after a crash of all its processes.
    case crash = "QUIT"
  }

  /// Starts it, and waits until it takes connections.
  package func start() throws {
    guard let programs = Self.programs else { return }
    // It ends with its standard input, and so with this process. It then removes its directory too.
    let script = """
      bin=$1 dir=$2; shift 2
      "$bin/postgres" -D "$dir/data" "$@" >>"$dir/log" 2>&1 & pid=$!
      until "$bin/pg_isready" -q -h "$dir"; do
        kill -0 $pid 2>/dev/null || { tail -n 20 "$dir/log"; exit 1; }
        sleep 0.02
      done
      echo ready
      signal=; read -r signal
      kill -"${signal:-QUIT}" $pid; wait $pid
      [ -n "$signal" ] || rm -rf "$dir"
      """
    let settings = [
      "listen_addresses=", "unix_socket_directories=\(directory)", "fsync=off", "full_page_writes=off",
      "max_connections=200", "shared_buffers=64MB", "autovacuum_naptime=1s", "default_toast_compression=lz4",
    ]
    let server = try ChildProcess.start(
      Self.asUser + ["/bin/sh", "-c", script, "sh", programs, directory]
        + (settings + options).flatMap { ["-c", $0] })
    try server.waitForOutput()
    guard server.line(0) == "ready" else {
      throw Failure("the server doesn't start: \(server.outputText) \(server.errorText)")
    }
    process.withLock { $0 = server }
  }

  /// Stops it. Its data stays.
  package func stop(_ ending: Ending = .crash) throws {
    let server = process.withLock { process in
      defer { process = nil }
      return process
    }
    guard let server else { return }
    try server.write(Array("\(ending.rawValue)\n".utf8))
    _ = try server.wait()
  }

  /// Runs SQL as the owner of the server in a database, by its name or location, and returns the lines that `psql` prints.
  @discardableResult
  package func sql(_ text: String, in database: String = "postgres") throws -> [String] {
    guard let programs = Self.programs else { return [] }
    let output = try run(
      [
        "\(programs)/psql", "-h", directory, "-U", "touchstone", "-d", database, "-AtqX", "-v",
        "ON_ERROR_STOP=1", "-c", text,
      ])
    return output.split(separator: "\n").map(String.init)
  }

  /// Runs a program of PostgreSQL as the owner of the server, and returns its output.
  package func program(_ name: String, _ arguments: [String]) throws -> String {
    try run(["\(Self.programs ?? "")/\(name)"] + arguments)
  }

  @discardableResult
  private func run(_ words: [String]) throws -> String {
    let child = try ChildProcess.start(Self.asUser + words)
    let ending = try child.wait()
    guard ending == .exited(0) else {
      throw Failure("\(words[0]) \(ending): \(child.outputText) \(child.errorText)")
    }
    return child.outputText
  }

  /// The words before a command that make its user another one than root.
  private static let asUser: [String] =
    geteuid() == 0 ? ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] : []

  /// A server can't be started.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
  }
}

extension ChildProcess {
  fileprivate static func start(_ words: [String]) throws -> ChildProcess {
    var launch = ProgramLaunch(words[0], Array(words.dropFirst()))
    // What is in the environment must not say where the server is.
    for name in launch.environment.keys where name.hasPrefix("PG") { launch.environment[name] = nil }
    return try ChildProcess(launch, input: .written)
  }
}
