import System

#if canImport(Glibc)
  import Glibc
#endif

/// Bold and coloured text on a terminal. It is plain elsewhere, on a terminal that can't, and with the variable NO_COLOR
/// (<https://no-color.org>).
struct Style {
  private let isOn: Bool

  /// The style of standard output.
  static let output = Style(isTerminal: StandardOutput.isTerminal)
  /// The style of standard error.
  static let errors = Style(isTerminal: StandardError.isTerminal)

  /// That of a file.
  static let plain = Style(isTerminal: false)

  private init(isTerminal: Bool) {
    isOn =
      isTerminal && EnvironmentVariable.value("NO_COLOR") == nil
      && EnvironmentVariable.value("TERM").map { $0 != "dumb" } ?? false
  }

  func bold(_ text: String) -> String { marked(text, "1") }
  func error(_ text: String) -> String { marked(text, "1;31") }

  private func marked(_ text: String, _ code: String) -> String {
    isOn ? "\u{1B}[\(code)m\(text)\u{1B}[m" : text
  }
}
