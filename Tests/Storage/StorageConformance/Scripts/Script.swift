import Storage

/// A sequence of transactions on one file, with other steps between them. The same seed and number make the
/// same script. Any part of a script is a valid script: an operation on a missing keyspace does nothing.
struct Script: Sendable {
  /// One step of a script.
  enum Step: Sendable {
    case transaction(Part)
    /// Concurrent writers, which may share a commit. Each has its own keyspaces: writer `i` of `n` has those
    /// whose number modulo `n` is `i`.
    case group([Part])
    case beginSnapshot
    /// Compares everything that the oldest snapshot sees, and ends it.
    case endSnapshot
    /// Ends all snapshots, and closes and reopens the file.
    case reopen
    case compact
  }

  /// The operations of one writer.
  struct Part: Sendable {
    var operations: [Numbered<ScriptOperation>]
    /// Whether the body throws at the end.
    var isRolledBack: Bool
  }

  /// An item that can be left out, with its number in the script.
  struct Numbered<Item: Sendable>: Sendable {
    let number: Int
    var item: Item
  }

  var steps: [Numbered<Step>]
  /// The maximum length of values in bytes. Longer ones are truncated.
  var valueLimit = Int.max
  /// The number of names of keyspaces.
  static let nameCount = 6

  /// The numbers of all its steps and operations.
  var numbers: [Int] {
    steps.flatMap { step -> [Int] in
      switch step.item {
      case .transaction(let part): [step.number] + part.operations.map(\.number)
      case .group(let parts): [step.number] + parts.flatMap { $0.operations.map(\.number) }
      default: [step.number]
      }
    }
  }

  /// The script with only the steps and operations of these numbers.
  func keeping(_ numbers: Set<Int>) -> Script {
    func kept(_ part: Part) -> Part {
      var part = part
      part.operations.removeAll { !numbers.contains($0.number) }
      return part
    }
    var script = self
    script.steps = steps.compactMap { step in
      guard numbers.contains(step.number) else { return nil }
      var step = step
      switch step.item {
      case .transaction(let part): step.item = .transaction(kept(part))
      case .group(let parts): step.item = .group(parts.map(kept))
      default: break
      }
      return step
    }
    return script
  }
}

extension Script: CustomStringConvertible {
  /// One line per step and operation.
  var description: String {
    func text(_ part: Part) -> String {
      let operations = part.operations.map { "    \($0.number): \($0.item)" }
      return (operations + [part.isRolledBack ? "    rolled back" : "    committed"]).joined(separator: "\n")
    }
    let lines = steps.map { step in
      switch step.item {
      case .transaction(let part): "  \(step.number): transaction\n\(text(part))"
      case .group(let parts):
        "  \(step.number): at the same time\n" + parts.map(text).joined(separator: "\n    and\n")
      default: "  \(step.number): \(step.item)"
      }
    }
    return lines.joined(separator: "\n")
      + (valueLimit < .max ? "\n  values of \(valueLimit) bytes at most" : "")
  }
}

/// Lists of numbers as text: `3,5-9,12`.
enum NumberList {
  static func text(_ numbers: [Int]) -> String {
    var runs: [ClosedRange<Int>] = []
    for number in numbers.sorted() {
      if let last = runs.last, last.upperBound + 1 == number {
        runs[runs.count - 1] = last.lowerBound...number
      } else {
        runs.append(number...number)
      }
    }
    return runs.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
      .joined(separator: ",")
  }

  static func numbers(_ text: String) -> [Int] {
    text.split(separator: ",").flatMap { run -> [Int] in
      let ends = run.split(separator: "-").compactMap { Int($0) }
      guard let first = ends.first, let last = ends.last, first <= last else { return [] }
      return Array(first...last)
    }
  }
}
