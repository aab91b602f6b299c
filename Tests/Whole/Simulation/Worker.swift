import ChildProcesses
import Foundation
import TestSupport

/// A process that has the database open: `whole-child simulation`. It reads operations, a line of JSON each, and
/// writes answers so.
final class Worker {
  private let process: ChildProcess
  private var answers = 0

  /// Starts one, and waits until it has opened the database.
  init(_ engine: String, _ directory: String, isReadOnly: Bool) throws {
    process = try startChild(
      .whole, ["simulation", engine, directory, isReadOnly ? "read" : "write"], hasInput: true)
    try process.waitForOutput(lines: 1)
    guard process.wholeLines.first == "open" else { throw died() }
  }

  /// Tells it an operation, and returns its answer.
  func ask(_ operation: Operation) throws -> Answer {
    try tell(operation)
    return try nextAnswer()
  }

  func tell(_ operation: Operation) throws {
    try process.write(Array(try JSONEncoder().encode(operation)) + [UInt8(ascii: "\n")])
  }

  func nextAnswer() throws -> Answer {
    answers += 1
    try process.waitForOutput(lines: 1 + answers)
    guard let answer = try lastAnswer() else { throw died() }
    return answer
  }

  /// The answer that was waited for, if it is there.
  private func lastAnswer() throws -> Answer? {
    try process.line(answers).map { try JSONDecoder().decode(Answer.self, from: Data($0.utf8)) }
  }

  /// Kills it. Returns the answer to what it was told last, if it came before.
  func kill() throws -> Answer? {
    process.kill()
    try process.wait()
    answers += 1
    return try lastAnswer()
  }

  /// Lets it close the database and end.
  func close() throws {
    guard try process.end() == .exited(0), process.wholeLines.last == "closed" else { throw died() }
  }

  private func died() -> Mismatch {
    Mismatch(
      "a process died or said what wasn't asked for: \(process.outputText.suffix(300)) \(process.errorText.suffix(2_000))"
    )
  }
}
