import Bytes
import CFileSystem
import ChildProcesses
import Glibc
import Logs
import System

/// The program `touchstone-scripts`, running, and the socket to it. One thread at a time may use it.
final class ScriptChild {
  /// The program ended, was killed because it said nothing, or doesn't follow the protocol.
  struct Lost: Error {
    let reason: String
    /// Whether a script took too much memory.
    var isOutOfMemory = false
  }

  static let maximumLength = 128 << 20
  private static let magic: UInt32 = 0x534A_5354
  private static let version: UInt16 = 3

  let process: SpawnedProcess
  private let socket: OwnedDescriptor
  private let silence: Double
  private var incoming = ByteBuffer()
  private var consumed = 0

  /// Starts the program. Throws `ScriptError.unavailable`.
  init(program: String, limits: ScriptLimits) throws {
    var launch = ProgramLaunch(
      program,
      [
        "--memory", String(limits.memoryBytes), "--seconds", String(limits.callSeconds), "--grace",
        String(ScriptLimits.graceSeconds),
      ], environment: [:])
    // The terminal's Ctrl-C isn't for it.
    launch.hasOwnGroup = true
    do {
      let (ours, theirs) = try OwnedDescriptor.sockets()
      (launch.input, launch.output) = (.descriptor(theirs.number), .descriptor(theirs.number))
      process = try withExtendedLifetime(theirs) { () throws(SpawnedProcess.Failure) in
        try SpawnedProcess(launch)
      }
      socket = ours
    } catch { throw ScriptError(.unavailable, "\(error)") }
    silence = limits.silenceSeconds
    do {
      let hello = try nextFrame(within: 30)
      let isKnown = try hello.withPayload { cursor in
        let magic = try cursor.u32()
        let version = try cursor.u16()
        guard hello.kind == .hello, magic == ScriptChild.magic, version == ScriptChild.version else {
          return false
        }
        if try cursor.u8() == 0 { ScriptChild.warnOfMissingFilter() }
        _ = try cursor.text()
        return true
      }
      guard isKnown else { throw Lost(reason: "it speaks another version of the protocol") }
    } catch {
      stop()
      let reason = (error as? Lost)?.reason ?? "it doesn't follow the protocol"
      throw ScriptError(.unavailable, "\(program) doesn't run: \(reason)")
    }
  }

  private static let hasWarned = Lock(false)

  /// Says once that scripts run without the filter of system calls.
  private static func warnOfMissingFilter() {
    let isFirst = hasWarned.withLock { hasWarned in
      defer { hasWarned = true }
      return !hasWarned
    }
    guard isFirst else { return }
    Log.write(
      .warning, .index, nil,
      "scripts: the kernel sets no filter of system calls (seccomp); limits of memory, files and processes remain"
    )
  }

  /// Ends the program and waits for its end, which takes no time.
  func stop() {
    process.kill()
    process.wait()
  }

  /// Sends a request. Takes in what the program says meanwhile, since it may wait for that. Throws `Lost`.
  func send(type: UInt8, ticket: UInt32, head: [UInt8], payload: UnsafeRawBufferPointer) throws {
    var frame = ByteBuffer(capacity: 16 + head.count)
    frame.append(littleEndian: UInt32(AnswerFrame.headerBytes + head.count + payload.count))
    frame.append(type)
    frame.append(littleEndian: ticket)
    head.withUnsafeBytes { frame.append($0) }
    try write(frame.bytes)
    try write(payload)
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws {
    var sent = 0
    while sent < bytes.count {
      let count = Glibc.send(
        socket.number, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
        Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      if count >= 0 {
        sent += count
      } else if errno == EAGAIN || errno == EWOULDBLOCK {
        if try wait(for: Int16(POLLIN | POLLOUT), within: silence) & Int16(POLLIN) != 0 { try receive() }
      } else if errno != EINTR {
        throw Lost(reason: "it ended")
      }
    }
  }

  /// Waits for the next frame. Throws `Lost`.
  func nextFrame() throws -> AnswerFrame { try nextFrame(within: silence) }

  private func nextFrame(within seconds: Double) throws -> AnswerFrame {
    while true {
      if let frame = try takeFrame() { return frame }
      _ = try wait(for: Int16(POLLIN), within: seconds)
      try receive()
    }
  }

  /// Waits until the socket is ready. Throws `Lost` when that takes too long.
  private func wait(for events: Int16, within seconds: Double) throws -> Int16 {
    let end = ScriptChild.now() + seconds
    while true {
      var entry = pollfd(fd: socket.number, events: events, revents: 0)
      let left = end - ScriptChild.now()
      guard left > 0 else { throw Lost(reason: "it didn't answer for \(seconds) seconds") }
      if poll(&entry, 1, Int32(min(left * 1000, 1e6).rounded(.up))) > 0 { return entry.revents }
    }
  }

  private static func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private func receive() throws {
    if consumed > 0 && consumed == incoming.count {
      incoming.removeAll(keepingAtMost: 1 << 20)
      consumed = 0
    }
    incoming.reserve(256 << 10)
    let count = recv(
      socket.number, incoming.base + incoming.count, incoming.capacity - incoming.count, Int32(MSG_DONTWAIT))
    if count > 0 {
      incoming.count += count
    } else if count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      throw Lost(reason: "it ended")
    }
  }

  private func takeFrame() throws -> AnswerFrame? {
    let bytes = UnsafeRawBufferPointer(rebasing: incoming.bytes[consumed...])
    guard bytes.count >= 4 else { return nil }
    let length = Int(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
    guard length >= AnswerFrame.headerBytes, length <= ScriptChild.maximumLength else {
      throw Lost(reason: "it sent a frame of \(length) bytes")
    }
    guard bytes.count >= 4 + length else { return nil }
    guard let kind = AnswerFrame.Kind(rawValue: bytes[4]) else {
      throw Lost(reason: "it sent a frame of type \(bytes[4])")
    }
    let ticket = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 5, as: UInt32.self))
    let frame = AnswerFrame(kind: kind, ticket: ticket, bytes: Array(bytes[4..<4 + length]))
    consumed += 4 + length
    if consumed > 1 << 20 {
      // What follows is moved to the front, so that a buffer doesn't grow with all that was ever received.
      let rest = incoming.count - consumed
      memmove(incoming.base, incoming.base + consumed, rest)
      incoming.count = rest
      consumed = 0
    }
    return frame
  }
}
