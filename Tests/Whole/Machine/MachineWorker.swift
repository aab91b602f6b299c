import ChildProcesses
import Foundation
import Simulation
import SystemCalls
import TestSupport
import Touchstone

/// A process with a database whose system calls fail when it is told: `whole-child machine work`. It reads orders, a line
/// of JSON each, and answers so.
final class MachineWorker {
  struct Order: Codable {
    /// Nil: what the database shows.
    var request: MachineRequest?
    var failing: FailingCall?
  }

  struct Outcome: Codable {
    var reply: MachineDatabase.Reply
    /// The name of the call that failed.
    var failed: String?
  }

  private let process: ChildProcess
  private var answers = 0

  init(folder: String, engine: String, isFull: Bool) throws {
    process = try startChild(
      .whole, ["machine", "work", folder, engine, isFull ? "full" : "normal"], hasInput: true)
  }

  func ask(_ request: MachineRequest?, failing: FailingCall? = nil) throws -> Outcome {
    let order = try JSONEncoder().encode(Order(request: request, failing: failing))
    try process.write(Array(order) + [UInt8(ascii: "\n")])
    answers += 1
    try process.waitForOutput(lines: answers)
    guard let line = process.line(answers - 1) else {
      let ending = try process.wait()
      throw Mismatch("the process died: \(ending) \(process.errorText.suffix(2_000))")
    }
    return try JSONDecoder().decode(Outcome.self, from: Data(line.utf8))
  }

  func kill() throws {
    process.kill()
    try process.wait()
  }

  func end() throws {
    let ending = try process.end()
    guard ending == .exited(0) else {
      throw Mismatch("the process ended with \(ending) \(process.errorText.suffix(2_000))")
    }
  }
}

/// The other side of it.
package enum MachineWork {
  /// Reads orders until the input ends.
  package static func run(folder: String, engine: String, isFull: Bool, say: (String) -> Void) throws {
    let database = MachineDatabase(folder: folder, engine: engine, durability: isFull ? .full : .normal)
    watch_folder(folder)
    /// At the end of the input, `readLine` looks at an old error of the system.
    func nextLine() -> String? {
      errno = 0
      return readLine()
    }
    while let line = nextLine() {
      let order = try JSONDecoder().decode(MachineWorker.Order.self, from: Data(line.utf8))
      order.failing?.arm()
      let reply = order.request.map { MachineDatabase.Reply.answer(database.perform($0)) } ?? database.show()
      let failed = failed_call().map { String(cString: $0) }
      let outcome = MachineWorker.Outcome(reply: reply, failed: failed)
      say(String(decoding: try JSONEncoder().encode(outcome), as: UTF8.self))
    }
    // What was left open is closed by the end of the process.
  }

  /// How many calls of each kind reach the wrappers while a database is made, used and closed.
  package static func counts(engine: String) throws -> [CallKind: Int] {
    try withFastDirectory { directory in
      let database = MachineDatabase(folder: directory, engine: engine, durability: .full)
      watch_folder(directory)
      defer { watch_folder(nil) }
      let content = Content(number: 1, words: ["wort1x"], blob: "blob", padding: 10_000)
      let requests: [MachineRequest] = [
        .open, .operation(.save(id: "doc", content)), .operation(.createIndex), .operation(.compact), .close,
        .open, .operation(.document(id: "doc")), .close,
      ]
      for request in requests {
        if case .refused(_, let message) = database.perform(request) { throw Mismatch(message) }
      }
      return CallKind.allCases.reduce(into: [:]) { $0[$1] = Int(watched_calls($1.number)) }
    }
  }
}
