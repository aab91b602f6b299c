/// A line on the terminal that says how far a long command is: shown after a second, in no pipe.
struct Progress {
  private let label: String
  private let unit: String
  private let isShown: Bool
  private let start = ContinuousClock.now
  private var lastShown: ContinuousClock.Instant?

  /// `unit` is what is counted: `documents`.
  init(_ label: String, unit: String) {
    self.label = label
    self.unit = unit
    isShown = StandardError.isTerminal
  }

  /// Tells how many are done.
  mutating func update(_ count: Int) {
    guard isShown else { return }
    let now = ContinuousClock.now
    guard now - start > .seconds(1), lastShown.map({ now - $0 > .milliseconds(200) }) ?? true else { return }
    lastShown = now
    let seconds =
      Double((now - start).components.seconds) + 1e-18 * Double((now - start).components.attoseconds)
    let rate = TextTable.grouped(Int(Double(count) / seconds))
    StandardError.write("\r\u{1B}[K\(label): \(TextTable.grouped(count)) \(unit), \(rate) a second")
  }

  /// Takes the line away.
  func end() {
    if lastShown != nil { StandardError.write("\r\u{1B}[K") }
  }
}
