import Foundation

/// Which suites run, each in which process.
///
/// A suite that takes long has a process of its own. Small suites share one, since a process takes a
/// quarter of a second to start.
struct Plan {
  /// A process to run.
  struct Part {
    let run: TestRun
    /// The names of its suites: `Module.Suite`, or `Module` for tests outside suites.
    var suites: [String]
    /// The tests of these suites.
    var tests: [String]
    /// The seconds that it is expected to take.
    var weight: Double
  }

  /// The processes, those that take longest first.
  let parts: [Part]
  let testCount: Int

  /// Splits the tests of `runs`, each listed as `Module.Suite/test()`. Suites share a process until they take
  /// `secondsOfPart` together; with 0 each has its own.
  init(_ runs: [(run: TestRun, tests: [String])], weights: Weights, secondsOfPart: Double) {
    var parts: [Part] = []
    for (run, tests) in runs {
      var open: Part?
      let suites = Dictionary(grouping: tests, by: Self.suite).sorted { $0.key < $1.key }
      for (suite, tests) in suites {
        let weight = weights[run.prefix + suite]
        if let part = open, part.weight + weight <= secondsOfPart {
          open = Part(
            run: run, suites: part.suites + [suite], tests: part.tests + tests,
            weight: part.weight + weight)
        } else {
          if let open { parts.append(open) }
          open = Part(run: run, suites: [suite], tests: tests, weight: weight)
        }
      }
      if let open { parts.append(open) }
    }
    self.parts = parts.sorted { $0.weight > $1.weight }
    testCount = runs.reduce(0) { $0 + $1.tests.count }
  }

  /// The suite of a listed test: what stands before the slash, or the module of a test outside suites.
  static func suite(_ test: String) -> String {
    if let slash = test.firstIndex(of: "/") { return String(test[..<slash]) }
    return String(test.prefix { $0 != "." })
  }
}

extension Plan.Part {
  /// What Swift Testing selects these tests by.
  var filter: String {
    let patterns = tests.map { NSRegularExpression.escapedPattern(for: $0) }
    return "^(" + patterns.joined(separator: "|") + ")"
  }
}
