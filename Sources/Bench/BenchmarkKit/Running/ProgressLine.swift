#if canImport(Glibc)
  import Glibc
#endif

/// A line on standard error that is overwritten with each update. It is shown only on a terminal, not in a
/// pipe or a file.
package final class ProgressLine {
  private let isTerminal: Bool
  private var lastUpdate: UInt64 = 0

  /// Makes a line. It shows nothing if standard error isn't a terminal.
  package init() { isTerminal = isatty(STDERR_FILENO) == 1 }

  /// Shows `text`, at most ten times a second. `text` is evaluated only if it is shown.
  package func show(_ text: @autoclosure () -> String) {
    guard isTerminal else { return }
    let now = Clock.nanoseconds()
    guard now - lastUpdate > 100_000_000 else { return }
    lastUpdate = now
    put("\r\u{1B}[K" + text().prefix(width()))
  }

  /// Clears the line.
  package func clear() {
    guard isTerminal, lastUpdate > 0 else { return }
    lastUpdate = 0
    put("\r\u{1B}[K")
  }

  private func put(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
  }

  private func width() -> Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 1 else { return 79 }
    return Int(size.ws_col) - 1
  }
}
