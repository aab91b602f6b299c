import Foundation

/// How many seconds each suite took when they were last measured: `Tests/weights.txt`. They decide only which
/// suites begin first, and which share a process.
///
/// One line a suite, sorted: its seconds, a tab, its name (`Module.Suite`, or `strict:Module.Suite` for strict engines).
struct Weights {
  /// The seconds of a suite that was never measured.
  static let ofUnknown = 1.0

  private(set) var seconds: [String: Double] = [:]

  init() {}

  /// Reads the file. A missing file has no weights; a line that isn't understood throws.
  init(file: String) throws {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return }
    for (index, line) in text.split(separator: "\n").enumerated() where !line.hasPrefix("#") {
      let fields = line.split(separator: "\t")
      guard fields.count == 2, let weight = Double(fields[0]), weight >= 0 else {
        throw RunnerError("\(file):\(index + 1): not a weight: \(line)")
      }
      seconds[String(fields[1])] = weight
    }
  }

  subscript(suite: String) -> Double {
    get { seconds[suite] ?? Self.ofUnknown }
    set { seconds[suite] = newValue }
  }

  func write(to file: String) throws {
    var text = "# Seconds of each suite, tab, its name. `make test-weights` writes this file.\n"
    for (suite, weight) in seconds.sorted(by: { $0.key < $1.key }) {
      text += String(format: "%.1f\t%@\n", weight, suite as NSString)
    }
    try text.write(toFile: file, atomically: true, encoding: .utf8)
  }
}
