import Touchstone

/// The progress line of a command that rewrites a database. Ctrl-C ends the command; then nothing has
/// changed.
final class ConversionProgressLine {
  private let label: String
  private var line: Progress
  private var phase: ConversionProgress.Phase?

  init(_ label: String) {
    self.label = label
    line = Progress(label, unit: "entries")
    Interrupt.listen()
  }

  /// The progress handler of the operation.
  func update(_ progress: ConversionProgress) throws {
    guard !Interrupt.isRequested else { throw Interrupted("nothing was changed") }
    if progress.phase != phase {
      phase = progress.phase
      line.end()
      let isBytes = progress.phase == .blobs || progress.phase == .unpacking
      line = Progress("\(label), \(progress.phase.rawValue)", unit: isBytes ? "bytes" : "entries")
    }
    line.update(progress.done)
  }

  func end() { line.end() }
}
