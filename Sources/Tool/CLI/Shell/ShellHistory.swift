import FoundationEssentials
import Storage
import System

#if canImport(Glibc)
  import Glibc
#endif

/// The statements that were typed in earlier shells: a file with one statement a line, where a newline is `\n` and a
/// backslash is `\\`. Only its owner can read it. Shells that run at the same time append to it in turn.
final class ShellHistory {
  private let path: String
  /// The statements, the oldest first.
  private(set) var entries: [String]

  private static let maximumEntries = 1_000
  private static let maximumBytes = 4 << 20

  /// Reads the history. Nil if there is no directory for it.
  init?() {
    guard let directory = Self.directory else { return nil }
    path = directory + "/history"
    // A history that is damaged or too long begins anew.
    let bytes = (try? AtomicFile.read(path, limit: Self.maximumBytes)) ?? []
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    entries = lines.suffix(Self.maximumEntries).map { Self.unescaped($0) }
    if lines.count > 2 * Self.maximumEntries || access(path, F_OK) == 0 && bytes.isEmpty { rewrite() }
  }

  /// $XDG_STATE_HOME/touchstone, or ~/.local/state/touchstone.
  private static var directory: String? {
    if let state = EnvironmentVariable.value("XDG_STATE_HOME"), state.hasPrefix("/") {
      return state + "/touchstone"
    }
    return EnvironmentVariable.value("HOME").map { $0 + "/.local/state/touchstone" }
  }

  /// Adds a statement. A history that can't be written is no reason to stop.
  func add(_ statement: String) {
    guard entries.last != statement else { return }
    entries.append(statement)
    let directory = URL(filePath: path).deletingLastPathComponent().path
    try? FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { return }
    defer { close(file) }
    // It may have been made by something else.
    fchmod(file, 0o600)
    let line = Array((Self.escaped(statement) + "\n").utf8)
    // One call, so that lines of two shells don't mix.
    _ = line.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
  }

  private func rewrite() {
    try? AtomicFile.write(entries.map { Self.escaped($0) + "\n" }.joined().utf8, to: path)
  }

  static func escaped(_ text: String) -> String {
    String(text.flatMap { $0 == "\\" ? "\\\\" : $0.isNewline ? "\\n" : String($0) })
  }

  static func unescaped(_ text: some StringProtocol) -> String {
    var result = ""
    var isEscaped = false
    for character in text {
      if isEscaped {
        result.append(character == "n" ? "\n" : character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else {
        result.append(character)
      }
    }
    return result
  }
}
