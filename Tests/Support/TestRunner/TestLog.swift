/// What Swift Testing said of one process's tests, line by line.
///
/// The tests of a process run one after another, so that the seconds in its log are those of the test alone.
struct TestLog {
  /// A test that has ended.
  struct Ended {
    let name: String
    let seconds: Double
    let hasFailed: Bool
  }

  /// The tests that have ended, in order; of a test with several cases the whole.
  private(set) var ended: [Ended] = []
  /// The test that has begun last and hasn't ended.
  private(set) var running: String?
  /// Why tests were skipped, with how many.
  private(set) var skipped: [String: Int] = [:]
  /// The lines that say what failed, and how.
  private(set) var failures: [Substring] = []
  /// Whether the process came to the end of its tests.
  private(set) var isComplete = false

  init(_ text: Substring) {
    var belongsToFailure = false
    for line in text.split(separator: "\n") {
      if let mark = line.first, "◇✔✘➜↳".contains(mark) {
        belongsToFailure = mark == "✘" || belongsToFailure && mark == "↳"
        take(line.dropFirst(2), mark)
      }
      // What a failure says may go over several lines.
      if belongsToFailure { failures.append(line) }
    }
  }

  private mutating func take(_ line: Substring, _ mark: Character) {
    if line.hasPrefix("Test run ") {
      isComplete = mark != "◇"
    } else if line.hasPrefix("Test case ") || line.hasPrefix("Suite ") && mark != "➜" {
      return
    } else if mark == "◇" {
      if let name = name(in: line, before: " started.") { running = name }
    } else if mark == "➜" {
      let reason = line.split(separator: " skipped", maxSplits: 1).dropFirst().first ?? ""
      let text = String(reason.drop { ": ".contains($0) })
      // Without a reason, the line ends with a full stop.
      skipped[text.isEmpty || text == "." ? "without a reason" : text, default: 0] += 1
    } else if let test = end(of: line) {
      ended.append(test)
      running = nil
    }
  }

  /// “Test NAME [with N test cases] passed|failed after S seconds…”
  private func end(of line: Substring) -> Ended? {
    for (word, hasFailed) in [(" passed after ", false), (" failed after ", true)] {
      guard let range = line.ranges(of: word).last, var name = name(in: line, before: word) else {
        continue
      }
      guard let seconds = Double(line[range.upperBound...].prefix { $0.isNumber || $0 == "." }) else {
        continue
      }
      if let cases = name.firstRange(of: /\ with [0-9]+ test cases?$/) {
        name.removeSubrange(cases)
      }
      return Ended(name: name, seconds: seconds, hasFailed: hasFailed)
    }
    return nil
  }

  private func name(in line: Substring, before word: String) -> String? {
    guard line.hasPrefix("Test "), let range = line.ranges(of: word).last else { return nil }
    return String(line[line.index(line.startIndex, offsetBy: 5)..<range.lowerBound])
  }
}
