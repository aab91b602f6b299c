import Foundation
import Simulation
import TestSupport

/// A script of either kind, as it is printed and run again.
package enum MachineScript: Codable, Sendable {
  case power(PowerLoss)
  case failing(FailingCalls)

  /// The engines that a search begins scripts with.
  package static let engines =
    (onlyEngines ?? [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted] + optionalEngines).map(\.rawValue)

  private var steps: [MachineStep] {
    get {
      switch self {
      case .power(let script): script.steps
      case .failing(let script): script.steps
      }
    }
    set {
      switch self {
      case .power(var script):
        script.steps = newValue
        self = .power(script)
      case .failing(var script):
        script.steps = newValue
        self = .failing(script)
      }
    }
  }

  /// How many states were looked at, or calls failed. Throws a `Mismatch`.
  @discardableResult
  package func run() throws -> Int {
    switch self {
    case .power(let script): try script.run()
    case .failing(let script): try script.run()
    }
  }

  /// One line of JSON.
  package var text: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
  }

  package init(text: String) throws {
    self = try JSONDecoder().decode(MachineScript.self, from: Data(text.utf8))
  }

  package init(_ script: PowerLoss) { self = .power(script) }
  package init(_ script: FailingCalls) { self = .failing(script) }

  /// Runs it; if it fails, leaves out steps for as long as it still does, at most `attempts` times, and throws a
  /// `Mismatch` with lines that `whole-child machine run` runs again.
  package func runAndReduce(attempts: Int) throws -> Int {
    var message: String
    do { return try run() } catch { message = "\(error)" }
    var smallest = self
    var left = attempts
    var size = max(1, steps.count / 2)
    while size >= 1, left > 0 {
      var start = 0
      while start < smallest.steps.count, left > 0 {
        var candidate = smallest
        candidate.steps.removeSubrange(start..<min(start + size, candidate.steps.count))
        left -= 1
        do {
          try candidate.run()
          start += size
        } catch { (smallest, message) = (candidate, "\(error)") }
      }
      size /= 2
    }
    throw Mismatch("\(message)\nrun again with whole-child machine run:\n\(try smallest.text)")
  }
}
