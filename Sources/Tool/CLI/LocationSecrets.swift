import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Keeps passwords of locations out of the list of processes and out of messages.
///
/// Others may read the arguments of a process while it runs, from `/proc/PID/cmdline`. That is the memory that the arguments were put
/// into, so they are overwritten there first of all. Before that the password can be seen for a moment: it belongs into a file of
/// passwords or of services.
enum LocationSecrets {
  /// The locations of the arguments that have secrets, and how they are shown.
  nonisolated(unsafe) private static var shown: [(secret: String, shown: String)] = []

  /// Overwrites the passwords in the arguments of this process. Called once, before there is another thread.
  static func hide() {
    shown = CommandLine.arguments.dropFirst().compactMap { argument in
      // `--option=postgres://…`
      let text = argument.split(separator: "=", maxSplits: 1).last.map(String.init) ?? argument
      for secret in DatabaseLocation.isOnServer(argument) ? [argument] : [text] {
        let shown = LocationText.withoutSecrets(secret)
        if shown != secret { return (secret, shown) }
      }
      return nil
    }
    guard !shown.isEmpty, let (start, end) = arguments() else { return }
    var position = start
    while position < end {
      let length = strlen(position.assumingMemoryBound(to: CChar.self))
      let text = String(decoding: UnsafeRawBufferPointer(start: position, count: length), as: UTF8.self)
      let hidden = without(text)
      if hidden != text {
        memset(position, 0, length)
        Array(hidden.utf8).withUnsafeBytes {
          position.copyMemory(from: $0.baseAddress!, byteCount: min(length, $0.count))
        }
      }
      position += length + 1
    }
  }

  /// A text without the secrets of the arguments.
  static func without(_ text: String) -> String {
    shown.reduce(text) { text, pair in
      text.contains(pair.secret)
        ? text.split(separator: pair.secret, omittingEmptySubsequences: false).joined(separator: pair.shown)
        : text
    }
  }

  /// Where the arguments of this process are, as the system says: fields 48 and 49 of `/proc/self/stat`.
  private static func arguments() -> (start: UnsafeMutableRawPointer, end: UnsafeMutableRawPointer)? {
    guard let bytes = try? AtomicFile.read("/proc/self/stat", limit: 4_096),
      let name = bytes.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    // The second field is in parentheses, and may have spaces.
    let fields = bytes[(name + 1)...].split(separator: UInt8(ascii: " ")).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard fields.count > 46, let first = UInt(fields[45]), let last = UInt(fields[46]), first < last,
      let start = UnsafeMutableRawPointer(bitPattern: first),
      let end = UnsafeMutableRawPointer(bitPattern: last)
    else { return nil }
    return (start, end)
  }
}
