import CLineEditor
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// What a source of lines gives.
enum ShellLine: Equatable {
  case line(String)
  case end
  /// Ctrl-C was pressed, or the process shall end.
  case interrupted
}

/// Where the lines of the shell come from.
protocol LineSource: AnyObject {
  /// The name in messages, nil for a person at a terminal.
  var name: String? { get }
  /// Waits for the next line. It has no newline.
  func next(_ prompt: String) throws -> ShellLine
  /// Keeps a statement for the arrow keys.
  func remember(_ statement: String)
}

extension LineSource {
  func remember(_ statement: String) {}
}

/// The lines of a file, or of standard input when it isn't a terminal.
final class InputLines: LineSource {
  let name: String?
  private let descriptor: Int32
  private let signals: ShellSignals
  private var buffer: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  private var number = 0
  /// A longer line isn't a statement.
  private static let maximumLineBytes = 16 << 20

  /// Opens the file at `path`; `-` is standard input.
  init(_ path: String, _ signals: ShellSignals) throws {
    self.signals = signals
    guard path != "-" else {
      name = "standard input"
      descriptor = STDIN_FILENO
      return
    }
    name = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw UsageError("can't open \(path): \(String(cString: strerror(errno)))")
    }
  }

  deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

  func next(_ prompt: String) throws -> ShellLine {
    while true {
      if let newline = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = newline + 1 }
        return .line(try text(buffer[start..<newline]))
      }
      if isAtEnd {
        guard start < buffer.count else { return .end }
        defer { start = buffer.count }
        return .line(try text(buffer[start...]))
      }
      guard buffer.count - start < Self.maximumLineBytes else {
        throw UsageError("\(name ?? ""):\(number + 1): the line is longer than 16 MiB")
      }
      guard try fill() else { return .interrupted }
    }
  }

  private func text(_ line: ArraySlice<UInt8>) throws -> String {
    number += 1
    var line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    // What editors of Windows put before UTF-8.
    if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
    guard let text = String(validating: line, as: UTF8.self) else {
      throw UsageError("\(name ?? ""):\(number): the line isn't UTF-8")
    }
    return text
  }

  /// Reads more. Returns false when a signal came first.
  private func fill() throws -> Bool {
    var files = [
      pollfd(fd: signals.wake, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      guard !signals.isInterrupted else { return false }
      guard poll(&files, 2, -1) >= 0 else {
        if errno == EINTR { continue }
        throw failure()
      }
      if files[1].revents != 0 { break }
      // A change of the window's size.
      var byte: UInt8 = 0
      _ = read(signals.wake, &byte, 1)
    }
    buffer.removeSubrange(..<start)
    start = 0
    let capacity = 64 << 10
    let more = try [UInt8](unsafeUninitializedCapacity: capacity) { bytes, count in
      var result = read(descriptor, bytes.baseAddress, capacity)
      while result < 0 && errno == EINTR { result = read(descriptor, bytes.baseAddress, capacity) }
      guard result >= 0 else { throw failure() }
      count = result
    }
    isAtEnd = more.isEmpty
    buffer += more
    return true
  }

  private func failure() -> UsageError {
    UsageError("can't read \(name ?? ""): \(String(cString: strerror(errno)))")
  }
}

/// Lines that a person types, edited with libedit.
final class EditedLines: LineSource {
  var name: String? { nil }
  private let editor: OpaquePointer
  private let signals: ShellSignals
  private let history: ShellHistory?
  /// The lines after the first one, of an entry of the history that has several.
  private var rest: [String] = []

  /// Nil if the terminal can't be used.
  init?(_ signals: ShellSignals, history: ShellHistory?, completion: ShellCompletion) {
    self.signals = signals
    self.history = history
    // The editor calls back only while it reads a line for this object.
    guard
      let editor = line_editor_create(
        signals.wake, completeLine, Unmanaged.passUnretained(completion).toOpaque())
    else { return nil }
    self.editor = editor
    for entry in history?.entries ?? [] { line_editor_remember(editor, entry) }
  }

  deinit { line_editor_free(editor) }

  func next(_ prompt: String) throws -> ShellLine {
    guard rest.isEmpty else { return .line(rest.removeFirst()) }
    var text: UnsafePointer<CChar>?
    signals.forget()
    guard !signals.isEnding else { return .interrupted }
    switch line_editor_read(editor, prompt, &text) {
    case LineEditorLine:
      rest = (text.map { String(cString: $0) } ?? "").split(separator: "\n", omittingEmptySubsequences: false)
        .map(String.init)
      return .line(rest.removeFirst())
    case LineEditorWoken: return .interrupted
    default: return .end
    }
  }

  func remember(_ statement: String) {
    line_editor_remember(editor, statement)
    history?.add(statement)
  }
}

/// Called by the editor for the key Tab.
private func completeLine(
  _ editor: OpaquePointer?, _ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<CChar>?,
  _ length: Int32
) -> Int32 {
  guard let editor, let context, let text else { return 0 }
  let completion = Unmanaged<ShellCompletion>.fromOpaque(context).takeUnretainedValue()
  let bytes = UnsafeRawBufferPointer(start: text, count: Int(length))
  let found = completion.complete(String(decoding: bytes, as: UTF8.self))
  if !found.insertion.isEmpty { line_editor_insert(editor, found.insertion) }
  guard !found.choices.isEmpty else { return 0 }
  let lines = ShellCompletion.columns(found.choices, width: Int(line_editor_width(editor)))
  line_editor_print(editor, "\n" + lines.map { $0 + "\n" }.joined())
  return 1
}
