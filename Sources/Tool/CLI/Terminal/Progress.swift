/// A progress line for long commands. It appears after a second, and only on a terminal.
struct Progress {
  private let label: String
  private let unit: String
  private let isShown: Bool
  private let start = ContinuousClock.now
  private var lastShown: ContinuousClock.Instant?

  /// `unit` is the unit of the count: `documents`.
  init(_ label: String, unit: String) {
    self.label = label
    self.unit = unit
    isShown = StandardError.isTerminal
  }

  /// Updates the count.
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

  /// Clears the line.
  func end() {
    if lastShown != nil { StandardError.write("\r\u{1B}[K") }
  }
}
