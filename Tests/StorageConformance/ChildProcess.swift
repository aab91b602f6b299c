import Foundation
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A process that runs a command of `ConformanceChild`. Its output is read as it arrives.
final class ChildProcess: Sendable {
  /// How the process ended.
  enum Ending: Equatable, CustomStringConvertible {
    case exited(Int32)
    case signalled(Int32)

    var description: String {
      switch self {
      case .exited(let status): "exited with status \(status)"
      case .signalled(let signal): "ended by signal \(signal)"
      }
    }
  }

  private struct Pipe {
    var reading: Int32
    var writing: Int32

    init() throws {
      var ends: [Int32] = [0, 0]
      // Closed in every other child process. Otherwise such a child would keep our pipe open.
      let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
        throw ConformanceFailure("socketpair: errno \(errno)")
      }
      (reading, writing) = (ends[0], ends[1])
    }
  }

  private let identifier: pid_t
  private let output = Lock<[UInt8]>([])
  private let errors = Lock<[UInt8]>([])
  private let outputEnded = CountingSemaphore()
  private let errorsEnded = CountingSemaphore()
  private let hasNoMoreOutput = Lock(false)
  private let ending = Lock<Ending?>(nil)

  /// Starts the executable at `path`.
  static func start(_ path: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(path, arguments)
  }

  private init(_ path: String, _ arguments: [String]) throws {
    let outputPipe = try Pipe()
    let errorPipe = try Pipe()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, outputPipe.writing, 1)
    posix_spawn_file_actions_adddup2(&actions, errorPipe.writing, 2)
    var environment = ProcessInfo.processInfo.environment
    // A crash must end the child at once. A backtrace takes a minute.
    environment["SWIFT_BACKTRACE"] = "enable=no"
    var argv: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
    var envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") }
    argv.append(nil)
    envp.append(nil)
    defer { for text in argv + envp { free(text) } }
    var identifier: pid_t = 0
    let result = posix_spawn(&identifier, path, &actions, nil, argv, envp)
    Glibc.close(outputPipe.writing)
    Glibc.close(errorPipe.writing)
    self.identifier = identifier
    guard result == 0 else {
      Glibc.close(outputPipe.reading)
      Glibc.close(errorPipe.reading)
      ending.withLock { $0 = .exited(-1) }
      throw ConformanceFailure("\(path) can't be started: errno \(result)")
    }
    Self.collect(outputPipe.reading, in: output) { [outputEnded, hasNoMoreOutput] in
      hasNoMoreOutput.withLock { $0 = true }
      outputEnded.signal()
    }
    Self.collect(errorPipe.reading, in: errors) { [errorsEnded] in errorsEnded.signal() }
  }

  deinit {
    if ending.withLock({ $0 }) == nil {
      Glibc.kill(identifier, SIGKILL)
      var status: Int32 = 0
      waitpid(identifier, &status, 0)
    }
  }

  private static func collect(
    _ descriptor: Int32, in bytes: Lock<[UInt8]>, atEnd: @escaping @Sendable () -> Void
  ) {
    Thread.detachNewThread {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        bytes.withLock { $0 += buffer[..<count] }
      }
      Glibc.close(descriptor)
      atEnd()
    }
  }

  /// Its standard output so far.
  var outputSoFar: [UInt8] { output.withLock { $0 } }

  /// Waits for that many complete lines of output, or the end of the output, but at most `seconds`.
  func waitForOutput(lines: Int = 1, seconds: Double = 120) throws {
    try waitForOutput(seconds: seconds) { $0.count { $0 == UInt8(ascii: "\n") } >= lines }
  }

  /// Waits for that many bytes of output, or the end of the output, but at most `seconds`. For output without
  /// lines.
  func waitForOutput(bytes: Int, seconds: Double = 120) throws {
    try waitForOutput(seconds: seconds) { $0.count >= bytes }
  }

  private func waitForOutput(seconds: Double, until isEnough: ([UInt8]) -> Bool) throws {
    let end = Date() + seconds
    while !hasNoMoreOutput.withLock({ $0 }), !output.withLock({ isEnough($0) }) {
      guard Date() < end else {
        throw ConformanceFailure("the child said only “\(outputText)” and “\(errorText)”")
      }
      usleep(200)
    }
  }

  func kill() { Glibc.kill(identifier, SIGKILL) }

  /// Waits until the process ends. After `seconds` it kills the process and throws.
  @discardableResult
  func wait(seconds: Double = 120) throws -> Ending {
    guard outputEnded.wait(seconds: seconds), errorsEnded.wait(seconds: seconds) else {
      kill()
      throw ConformanceFailure("the child hangs; it said “\(outputText)” and “\(errorText)”")
    }
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    let found: Ending = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    ending.withLock { $0 = found }
    return found
  }

  var outputText: String { String(decoding: output.withLock { $0 }, as: UTF8.self) }
  var errorText: String { String(decoding: errors.withLock { $0 }.suffix(2_000), as: UTF8.self) }
}

extension ConformanceSuite {
  /// Starts a command of `ConformanceChild` on the suite's engine.
  func startChild(_ command: String, _ arguments: [String], key: [UInt8]?? = nil) throws -> ChildProcess {
    guard let childPath else { throw ConformanceFailure("there is no child to start") }
    let key = key ?? self.key
    return try ChildProcess.start(
      childPath, [command, subject.engine.name, key.map { hexadecimal($0) } ?? "-"] + arguments)
  }

  /// Runs a command, which must end with status 0, and returns the lines of its output.
  func runChild(_ command: String, _ arguments: [String], key: [UInt8]?? = nil) throws -> [String] {
    let child = try startChild(command, arguments, key: key)
    let ending = try child.wait()
    guard ending == .exited(0) else {
      throw ConformanceFailure(
        "the child of “\(command)” \(ending), after “\(child.outputText)” and “\(child.errorText)”")
    }
    return child.outputText.split(separator: "\n").map(String.init)
  }
}
