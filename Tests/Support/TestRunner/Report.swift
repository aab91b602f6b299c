import ChildProcesses
import Foundation

/// What came of all parts: printed as they end, and at the end.
struct Report {
  private(set) var passed = 0
  private(set) var failed = 0
  private(set) var skipped: [String: Int] = [:]
  /// The seconds of each suite that had a process of its own, without the start of the process.
  private(set) var weights = Weights()
  private var endedParts = 0
  private var tests: [(name: String, seconds: Double)] = []
  private var suites: [(name: String, seconds: Double)] = []
  private var processorTimes: [(name: String, seconds: Double)] = []
  /// For each part that failed: its log, and what to say of it.
  private var failures: [(log: String, lines: [String])] = []

  var hasFailed: Bool { !failures.isEmpty }

  /// Takes a part that has ended, and prints a line, or what failed.
  mutating func add(_ running: RunningPart, _ ending: SpawnedProcess.Ending, of parts: Int) {
    endedParts += 1
    let log = running.said
    let prefix = running.part.run.prefix
    let failedTests = log.ended.count { $0.hasFailed }
    passed += log.ended.count - failedTests
    failed += failedTests
    for (reason, count) in log.skipped { skipped[reason, default: 0] += count }
    tests += log.ended.map { (prefix + $0.name, $0.seconds) }
    let name = prefix + running.part.suites.joined(separator: ", ")
    suites.append((name, running.seconds))
    processorTimes.append((name, running.processorSeconds))
    if running.part.suites.count == 1 {
      weights[name] = log.ended.reduce(0) { $0 + $1.seconds }
    }

    var lines: [String] = []
    if let hung = running.hung {
      lines.append("hung, and was killed: \(hung)")
      failed += 1
    } else if !log.isComplete || ending != .exited(failedTests > 0 ? 1 : 0) {
      lines.append("\(ending); \(log.running.map { "in \($0)" } ?? "between two tests")")
      failed += 1
    }
    lines += log.failures.map(String.init)
    let time = String(format: "%6.1f s", running.seconds)
    print("[\(endedParts)/\(parts)] \(time)  \(lines.isEmpty ? "" : "FAILED: ")\(name) (\(log.ended.count))")
    guard !lines.isEmpty else { return }
    failures.append((running.log, lines))
    for line in lines.prefix(40) { print("    " + line.prefix(500)) }
  }

  /// Prints the slowest tests and suites, why tests were skipped, what failed, and last the count.
  func end(seconds: Double) {
    func printSlowest(_ what: String, _ entries: [(name: String, seconds: Double)]) {
      print("The slowest \(what):")
      for (name, seconds) in entries.sorted(by: { $0.seconds > $1.seconds }).prefix(20) {
        print(String(format: "%8.1f s  ", seconds) + name.prefix(160))
      }
    }
    printSlowest("tests", tests)
    printSlowest("suites", suites)
    printSlowest("suites in processor time", processorTimes)
    for (reason, count) in skipped.sorted(by: { $0.value > $1.value }) {
      print("\(count) skipped: \(reason)")
    }
    for (log, lines) in failures {
      print("FAILED; the whole log is \(log)")
      for line in lines.prefix(40) { print("  " + line.prefix(500)) }
    }
    let processor = processorTimes.reduce(0) { $0 + $1.seconds }
    print(String(format: "Tests took %.0f seconds, and %.0f of processor time.", seconds, processor))
    print("\(passed) passed, \(failed) failed, \(skipped.values.reduce(0, +)) skipped")
  }
}
