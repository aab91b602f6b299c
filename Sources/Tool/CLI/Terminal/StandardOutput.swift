import BenchmarkKit
import Datasets

#if canImport(Glibc)
  import Glibc
#endif

/// Standard output for results, or a file in its place. It is buffered; `flush()` writes it. On a terminal, control characters in
/// it are escaped.
final class StandardOutput {
  private var buffer: [UInt8] = []
  private static let bufferBytes = 64 << 10
  private let descriptor: Int32
  /// The name in errors.
  private let name: String
  private let isTerminal: Bool
  /// How headings are written.
  let style: Style

  init() {
    descriptor = STDOUT_FILENO
    name = "standard output"
    isTerminal = Self.isTerminal
    style = .output
    buffer.reserveCapacity(Self.bufferBytes + 4_096)
  }

  /// Makes the file at `path`, or empties it.
  init(path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else {
      throw DatasetError(.ioError, "can't be written: \(String(cString: strerror(errno)))", path: path)
    }
    name = path
    isTerminal = isatty(descriptor) == 1
    style = .plain
  }

  deinit { if descriptor != STDOUT_FILENO { close(descriptor) } }

  /// Whether standard output is a terminal.
  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Adds `text` and a newline.
  func line(_ text: some StringProtocol) throws {
    buffer.append(contentsOf: text.utf8)
    buffer.append(UInt8(ascii: "\n"))
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  func lines(_ texts: [String]) throws {
    for text in texts { try line(text) }
  }

  /// Adds `text`.
  func write(_ text: some StringProtocol) throws {
    buffer.append(contentsOf: text.utf8)
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  /// Adds bytes.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  func flush() throws {
    if isTerminal { buffer = TerminalText.escaped(buffer) }
    var written = 0
    defer { buffer.removeAll(keepingCapacity: true) }
    while written < buffer.count {
      let count = buffer.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        throw DatasetError(
          .ioError, "can't be written: \(String(cString: strerror(errno)))", path: name)
      }
      written += count
    }
  }
}

/// Standard error, for messages.
enum StandardError {
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Writes a message. It may quote what comes from documents, so control characters are escaped.
  static func line(_ text: String) {
    write(String(decoding: TerminalText.escaped(Array(text.utf8)), as: UTF8.self) + "\n")
  }

  static func write(_ text: String) {
    let bytes = Array(text.utf8)
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(STDERR_FILENO, $0.baseAddress.map { $0 + written }, $0.count - written)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return }
      written += count
    }
  }
}
