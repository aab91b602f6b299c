import Touchstone

/// The progress line of a command that has several phases. Ctrl-C ends the command; then nothing has changed.
final class PhaseProgressLine {
  private let label: String
  private var line: Progress
  private var phase: String?

  init(_ label: String) {
    self.label = label
    line = Progress(label, unit: "entries")
    Interrupt.listen()
  }

  /// The progress handler of a command that rewrites a database.
  func update(_ progress: ConversionProgress) throws {
    guard !Interrupt.isRequested else { throw Interrupted("nothing was changed") }
    let isBytes = progress.phase == .blobs || progress.phase == .unpacking
    show(progress.phase.rawValue, progress.done, unit: isBytes ? "bytes" : "entries")
  }

  /// The progress handler of an upgrade.
  func update(_ progress: UpgradeProgress) throws {
    guard !Interrupt.isRequested else { throw Interrupted("nothing was made") }
    show(progress.phase.rawValue, progress.done, unit: "documents")
  }

  private func show(_ phase: String, _ count: Int, unit: String) {
    if phase != self.phase {
      self.phase = phase
      line.end()
      line = Progress("\(label), \(phase)", unit: unit)
    }
    line.update(count)
  }

  func end() { line.end() }
}
