import TestSupport

/// A `touchstone` that runs on a terminal of its own, and what it shows there.
final class PseudoTerminal {
  private let master: Int32
  private let process: SpawnedProcess
  private var bytes: [UInt8] = []
  /// The bytes without the codes that move the cursor.
  private var shown: [UInt8] = []
  /// Where the next `wait(for:)` begins to look in `shown`.
  private var seen = 0
  private enum Code {
    case none, begun, inside
  }
  private var code = Code.none

  /// Starts the tool, or another program, with its standard streams on a new terminal of 80 columns.
  init(_ tool: Tool, program: String = Tool.executable, _ arguments: String...) throws {
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    // TIOCSPTLCK unlocks the other side, and TIOCGPTPEER opens it. Swift doesn't import them.
    var isLocked: Int32 = 0
    guard master >= 0, ioctl(master, 0x4004_5431, &isLocked) == 0 else {
      throw Tool.Failure(description: "there is no pseudo-terminal: \(errno)")
    }
    let terminal = ioctl(master, 0x5441, O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard terminal >= 0 else {
      throw Tool.Failure(description: "the pseudo-terminal can't be opened: \(errno)")
    }
    defer { close(terminal) }
    var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(terminal, UInt(TIOCSWINSZ), &size)
    // `setsid` makes the terminal the one that Ctrl-C comes from. `env` goes to the directory.
    var launch = ProgramLaunch(
      "/usr/bin/setsid", ["-c", "/usr/bin/env", "-C", tool.directory, program] + arguments)
    launch.environment = launch.environment.filter {
      !$0.key.hasPrefix("TOUCHSTONE_") && $0.key != "NO_COLOR"
    }
    launch.environment.merge(["TERM": "xterm", "XDG_STATE_HOME": tool.path("state")]) { $1 }
    launch.environment.merge(tool.environment) { $1 }
    launch.input = .descriptor(terminal)
    launch.output = .descriptor(terminal)
    launch.errors = .descriptor(terminal)
    process = try SpawnedProcess(launch)
  }

  deinit { close(master) }

  /// Presses keys. `\u{3}` is Ctrl-C, `\u{4}` Ctrl-D, `\t` Tab and `\n` Enter.
  func type(_ keys: String) {
    let keys = Array(keys.utf8)
    _ = keys.withUnsafeBytes { Glibc.write(master, $0.baseAddress, $0.count) }
  }

  /// What was shown, with all codes.
  var raw: String { String(decoding: bytes, as: UTF8.self) }

  /// What was shown, without the codes that move the cursor.
  var text: String { String(decoding: shown, as: UTF8.self) }

  private func add(_ byte: UInt8) {
    switch code {
    case .none:
      if byte == 0x1B { code = .begun } else if byte != UInt8(ascii: "\r"), byte != 7 { shown.append(byte) }
    case .begun: code = byte == UInt8(ascii: "[") ? .inside : .none
    case .inside: if (0x40...0x7E).contains(byte) { code = .none }
    }
  }

  /// Waits until the terminal shows a text after the last one that was waited for. At most a minute of silence.
  func wait(for wanted: String) throws {
    let wanted = Array(wanted.utf8)
    var start = seen
    while true {
      while start + wanted.count <= shown.count {
        if shown[start] == wanted[0], shown[start..<(start + wanted.count)].elementsEqual(wanted) {
          seen = start + wanted.count
          return
        }
        start += 1
      }
      guard try read() else {
        let wanted = String(decoding: wanted, as: UTF8.self)
        throw Tool.Failure(description: "it ended without showing '\(wanted)': \(text.suffix(2_000))")
      }
    }
  }

  /// Waits for its end, and returns the status.
  func end() throws -> Int32 {
    while try read() {}
    while process.ending == nil { usleep(1_000) }
    return process.ending?.shellStatus ?? -1
  }

  /// Reads what it shows next. Returns false when it has ended.
  private func read() throws -> Bool {
    var entry = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 60_000) != 0 else {
      process.kill(SIGKILL)
      throw Tool.Failure(description: "waited for a minute; the terminal shows: \(text.suffix(2_000))")
    }
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = Glibc.read(master, &buffer, buffer.count)
    guard count > 0 else { return false }
    bytes += buffer[..<count]
    for byte in buffer[..<count] { add(byte) }
    return true
  }
}
