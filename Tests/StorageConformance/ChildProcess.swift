import Foundation
import Storage

/// A process that tests start. Its output is read as it arrives.
package final class ChildProcess: Sendable {
  /// How the process ended.
  package enum Ending: Equatable, CustomStringConvertible {
    case exited(Int32)
    case signalled(Int32)

    package var description: String {
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

  /// The number of the process.
  package let identifier: pid_t
  private let output = Lock<[UInt8]>([])
  private let errors = Lock<[UInt8]>([])
  private let outputEnded = CountingSemaphore()
  private let errorsEnded = CountingSemaphore()
  private let hasNoMoreOutput = Lock(false)
  private let ending = Lock<Ending?>(nil)
  /// Our end of its standard input; nil if that is empty or was ended.
  private let input: Lock<Int32?>

  /// Starts the executable at `path`. Its environment is that of this process with `environment`; nil removes
  /// a variable. Its standard input is empty, or open until `endInput`.
  package static func start(
    _ path: String, _ arguments: [String], environment: [String: String?] = [:], hasInput: Bool = false
  ) throws -> ChildProcess {
    try ChildProcess(path, arguments, environment, hasInput)
  }

  private init(_ path: String, _ arguments: [String], _ changes: [String: String?], _ hasInput: Bool) throws {
    let inputPipe = hasInput ? try Pipe() : nil
    let outputPipe = try Pipe()
    let errorPipe = try Pipe()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let inputPipe {
      posix_spawn_file_actions_adddup2(&actions, inputPipe.reading, 0)
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    posix_spawn_file_actions_adddup2(&actions, outputPipe.writing, 1)
    posix_spawn_file_actions_adddup2(&actions, errorPipe.writing, 2)
    var environment = ProcessInfo.processInfo.environment
    // A crash must end the child at once. A backtrace takes a minute.
    environment["SWIFT_BACKTRACE"] = "enable=no"
    for (name, value) in changes { environment[name] = value }
    var argv: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
    var envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") }
    argv.append(nil)
    envp.append(nil)
    defer { for text in argv + envp { free(text) } }
    var identifier: pid_t = 0
    let result = posix_spawn(&identifier, path, &actions, nil, argv, envp)
    Glibc.close(outputPipe.writing)
    Glibc.close(errorPipe.writing)
    if let inputPipe { Glibc.close(inputPipe.reading) }
    self.identifier = identifier
    input = Lock(inputPipe?.writing)
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
    endInput()
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

  /// Ends its standard input.
  package func endInput() {
    input.withLock { descriptor in
      if let descriptor { Glibc.close(descriptor) }
      descriptor = nil
    }
  }

  /// Its standard output so far.
  package var outputSoFar: [UInt8] { output.withLock { $0 } }

  /// Waits for that many complete lines of output, or the end of the output, but at most `seconds`.
  package func waitForOutput(lines: Int = 1, seconds: Double = 120) throws {
    try waitForOutput(seconds: seconds) { $0.count { $0 == UInt8(ascii: "\n") } >= lines }
  }

  /// Waits for that many bytes of output, or the end of the output, but at most `seconds`. For output without
  /// lines.
  package func waitForOutput(bytes: Int, seconds: Double = 120) throws {
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

  package func kill() { Glibc.kill(identifier, SIGKILL) }

  /// Waits until the process ends. After `seconds` it kills the process and throws.
  @discardableResult
  package func wait(seconds: Double = 120) throws -> Ending {
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

  /// Ends its standard input, and waits until it ends.
  package func end() throws -> Ending {
    endInput()
    return try wait()
  }

  package var outputText: String { String(decoding: output.withLock { $0 }, as: UTF8.self) }

  /// The lines of its output that have an end: a killed child may leave a part of one.
  package var wholeLines: [Substring] {
    let lines = outputText.split(separator: "\n")
    return outputText.hasSuffix("\n") ? lines : lines.dropLast()
  }

  package var errorText: String { String(decoding: errors.withLock { $0 }.suffix(2_000), as: UTF8.self) }
}

extension ConformanceSuite {
  /// Starts a command of `ConformanceChild` on the suite's engine.
  func startChild(_ command: String, _ arguments: [String], key: [UInt8]?? = nil) throws -> ChildProcess {
    guard let childPath else { throw ConformanceFailure("there is no child to start") }
    let key = key ?? self.key
    return try ChildProcess.start(
      childPath,
      childArguments + [command, subject.engine.name, key.map { hexadecimal($0) } ?? "-"] + arguments)
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
