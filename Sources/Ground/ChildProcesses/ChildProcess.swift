#if canImport(Glibc)
  import Glibc
#endif
import System

/// A child process whose output is collected as it arrives. It is killed with its object.
package final class ChildProcess: Sendable {
  package typealias Ending = SpawnedProcess.Ending

  /// Where its standard input comes from.
  package enum Input: Sendable {
    case empty
    case inherited
    /// The file at a path.
    case file(String)
    /// From `write`, until `endInput`.
    case written
  }

  /// A process that hangs.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private let process: SpawnedProcess
  private let output: CollectedOutput
  private let errors: CollectedOutput
  /// Our end of its standard input; nil if it has none, or it was ended.
  private let input: Lock<OwnedDescriptor?>

  /// Starts a program with these standard streams instead of those of `launch`. With `mixesErrors` its standard error
  /// goes into its output. Throws a `SpawnedProcess.Failure`.
  package init(_ launch: ProgramLaunch, input: Input = .empty, mixesErrors: Bool = false) throws {
    let (output, outputOfChild) = try OwnedDescriptor.sockets()
    let (errors, errorsOfChild) = try OwnedDescriptor.sockets()
    let (written, inputOfChild) = try OwnedDescriptor.sockets()
    var launch = launch
    launch.input =
      switch input {
      case .empty: .null
      case .inherited: .inherited
      case .file(let path): .file(path)
      case .written: .descriptor(inputOfChild.number)
      }
    launch.output = .descriptor(outputOfChild.number)
    launch.errors = .descriptor((mixesErrors ? outputOfChild : errorsOfChild).number)
    // Afterwards the process alone holds its ends.
    process = try withExtendedLifetime((outputOfChild, errorsOfChild, inputOfChild)) {
      try SpawnedProcess(launch)
    }
    self.input = Lock(written)
    self.output = CollectedOutput(output)
    self.errors = CollectedOutput(errors)
  }

  /// The number of the process.
  package var identifier: pid_t { process.identifier }

  /// How it ended; nil while it runs.
  package var ending: Ending? { process.ending }

  /// Sends a signal, if it hasn't ended.
  package func kill(_ signal: Int32 = SIGKILL) { process.kill(signal) }

  // MARK: Input

  /// Writes to its standard input. What a process doesn't take that has ended is lost. Throws a `Failure`, and kills it,
  /// if it takes nothing for `seconds`.
  package func write(_ bytes: [UInt8], seconds: Double = 120) throws {
    try input.withLock { descriptor in
      var rest = bytes[...]
      while let socket = descriptor?.number, !rest.isEmpty {
        let count = rest.withUnsafeBytes {
          send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        }
        if count >= 0 {
          rest = rest.dropFirst(count)
        } else if errno == EAGAIN || errno == EWOULDBLOCK {
          var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
          if poll(&entry, 1, Int32(seconds * 1_000)) == 0 { throw hangs("takes no input") }
        } else if errno != EINTR {
          return
        }
      }
    }
  }

  /// Ends its standard input.
  package func endInput() { input.withLock { $0 = nil } }

  // MARK: Output

  /// Its standard output so far.
  package var outputSoFar: [UInt8] { output.bytes }
  package var outputText: String { String(decoding: output.bytes, as: UTF8.self) }
  /// Its standard error so far.
  package var errorText: String { String(decoding: errors.bytes, as: UTF8.self) }

  /// The lines of its output that have an end: a killed process may leave a part of one.
  package var wholeLines: [Substring] {
    let text = outputText
    let lines = text.split(separator: "\n")
    return text.hasSuffix("\n") ? lines : lines.dropLast()
  }

  /// A line of its output, without its end; nil if it hasn't come yet. The first line has the number 0. It costs no look at the
  /// other lines.
  package func line(_ number: Int) -> String? { output.line(number) }

  /// Waits for that many complete lines of output, or the end of the output, but at most `seconds`: then it throws a
  /// `Failure`.
  package func waitForOutput(lines: Int = 1, seconds: Double = 120) throws {
    try waitForOutput(seconds: seconds) { $0.lineCount >= lines }
  }

  /// Waits for that many bytes of output, or the end of the output, but at most `seconds`. For output without lines.
  package func waitForOutput(bytes: Int, seconds: Double = 120) throws {
    try waitForOutput(seconds: seconds) { $0.byteCount >= bytes }
  }

  private func waitForOutput(seconds: Double, until isEnough: (CollectedOutput) -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while !output.hasEnded, !isEnough(output) {
      guard ContinuousClock.now < deadline else { throw hangs("says no more") }
      usleep(200)
    }
  }

  // MARK: Its end

  /// Waits until it has ended and its output is whole. After `seconds` it kills the process and throws a `Failure`; with
  /// nil it waits for as long as that takes.
  @discardableResult
  package func wait(seconds: Double? = 120) throws -> Ending {
    guard let seconds else {
      _ = output.waitForEnd() && errors.waitForEnd()
      return process.wait()
    }
    let deadline = ContinuousClock.now + .seconds(seconds)
    var left: Double { max(0, (deadline - ContinuousClock.now) / .seconds(1)) }
    // Its output may go on after its end, from a process that it has started.
    guard output.waitForEnd(seconds: left), errors.waitForEnd(seconds: left),
      let ending = process.wait(seconds: left)
    else { throw hangs("doesn't end") }
    return ending
  }

  /// Ends its standard input, and waits until it ends.
  package func end() throws -> Ending {
    endInput()
    return try wait()
  }

  private func hangs(_ what: String) -> Failure {
    kill()
    return Failure(
      description:
        "the child process \(identifier) \(what). It said “\(outputText)” and “\(errorText.suffix(2_000))”")
  }
}
