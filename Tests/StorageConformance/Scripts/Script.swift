import Storage

/// Transactions on one file, and what happens between them. The same seed and number make the same script, and any part of
/// it is one too: an operation on a keyspace that isn't there does nothing.
struct Script: Sendable {
  /// What happens in turn.
  enum Step: Sendable {
    case transaction(Part)
    /// Writers that come at the same time, so that they may share a commit. Each has keyspaces of its own: those whose
    /// number leaves its own when divided by how many there are.
    case group([Part])
    case beginSnapshot
    /// Looks at all that the oldest snapshot sees, and ends it.
    case endSnapshot
    /// Ends all snapshots, closes the file and opens it again.
    case reopen
    case compact
  }

  /// What one writer does.
  struct Part: Sendable {
    var operations: [Numbered<ScriptOperation>]
    /// Its body throws at the end.
    var isRolledBack: Bool
  }

  /// Something that can be left out, by its number in the script.
  struct Numbered<Item: Sendable>: Sendable {
    let number: Int
    var item: Item
  }

  var steps: [Numbered<Step>]
  /// Values are cut to so many bytes.
  var valueLimit = Int.max
  /// Where the keyspaces' names begin.
  static let nameCount = 6

  /// Every number in it.
  var numbers: [Int] {
    steps.flatMap { step -> [Int] in
      switch step.item {
      case .transaction(let part): [step.number] + part.operations.map(\.number)
      case .group(let parts): [step.number] + parts.flatMap { $0.operations.map(\.number) }
      default: [step.number]
      }
    }
  }

  /// Those of its steps and operations that have one of these numbers.
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
  /// A line a step.
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

/// Numbers as text: `3,5-9,12`.
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
