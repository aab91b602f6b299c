#if canImport(Glibc)
  import Glibc
#endif

/// A passphrase typed on the terminal.
enum Passphrase {
  /// Asks for a passphrase without echo. Nil if there is no terminal.
  ///
  /// Throws `Interrupted` for Ctrl-C. It is read as a character, so that the echo is always restored.
  static func ask(_ question: String) throws -> String? {
    guard isatty(STDIN_FILENO) == 1 else { return nil }
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    var before = termios()
    guard tcgetattr(terminal, &before) == 0 else { return nil }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer { tcsetattr(terminal, TCSAFLUSH, &before) }
    StandardError.write(question + ": ")
    defer { StandardError.write("\n") }

    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while read(terminal, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      guard byte != 3 else { throw Interrupted("no key was given") }
      bytes.append(byte)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw UsageError("the key that was typed isn't UTF-8")
    }
    return text
  }
}
