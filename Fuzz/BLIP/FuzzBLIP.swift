// libFuzzer's target for BLIP: whatever a peer sends, a session throws or goes on, and holds its limits. What a session
// sends, another one takes.
//
//   input   := choices:byte  step*
//   step    := length:byte  kind:byte  bytes     a kind of 0…159: a frame of these bytes, to which a right checksum is
//                                               added when the kind is even, to compressed data if bit 1 is set; the
//                                               rest: something that this side does

import BLIP
import CZlib
import FuzzDriver

/// The compressed data of one direction, read beside the session.
private final class Inflated {
  private var stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

  init() {
    stream.initialize(to: z_stream())
    _ = inflateInit2_(stream, -15, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  func inflate(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var input = [UInt8](bytes) + [0, 0, 0xFF, 0xFF]
    var output = [UInt8](repeating: 0, count: 60_000)
    return input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.pointee.next_in = input.baseAddress
        stream.pointee.avail_in = CUnsignedInt(input.count)
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = CUnsignedInt(output.count)
        _ = CZlib.inflate(stream, Z_SYNC_FLUSH)
        return [UInt8](output[..<(output.count - Int(stream.pointee.avail_out))])
      }
    }
  }
}

/// What a session under test has to do with its peer.
private struct Run {
  var limits = BLIPLimits()
  let session: BLIPSession
  /// Reads what the session sends.
  let peer: BLIPSession
  /// The checksum of what was sent to the session so far, and the compressed data in it.
  var checksum: UInt = 0
  let inflated = Inflated()
  var incoming: [(IncomingMessage, bytes: Int, wireBytes: Int)] = []
  var open: [(number: UInt64, countedBytes: Int, isNoReply: Bool)] = []

  init(_ choices: UInt8) {
    limits.messageBytes = 100_000
    limits.bufferedBytes = 200_000
    limits.framePlainBytes = 50_000
    limits.openRequests = 50
    limits.queuedReplyBytes = 30_000
    limits.requestsInFlight = 20
    session = BLIPSession(limits: limits)
    peer = BLIPSession()
    for index in 0..<choices & 15 { ask(index, count: index == 14 ? 150_000 : Int(index) * 10) }
  }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    checksum = crc32_z(checksum, start.assumingMemoryBound(to: UInt8.self), bytes.count)
  }

  func ask(_ kind: UInt8, count: Int) {
    var request = BLIPRequest("p", ["a": "b"], body: .bytes([UInt8](repeating: kind, count: count)))
    request.isUrgent = kind & 1 != 0
    request.isCompressed = kind & 2 != 0
    request.isNoReply = kind & 12 == 12
    do { session.send(try OutgoingMessage(request)) } catch { preconditionFailure("\(error)") }
  }

  /// Writes all that can be sent, and checks that the peer takes it.
  func send() throws {
    var count = 0
    while let frame = try session.nextFrame() {
      precondition(frame.count <= 16_384, "a frame of \(frame.count) bytes")
      count += 1
      precondition(count < 100_000, "frames without an end")
      do { _ = try peer.receive(frame) } catch {
        // The peer has asked for nothing, and so takes no replies.
        guard error.code == .unexpectedReply || error.code == .tooManyRequests || error.code == .tooManyBytes
        else {
          preconditionFailure("what was sent isn't accepted: \(error)")
        }
      }
    }
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, _ kind: UInt8) throws {
    var frame = [UInt8](bytes)
    // Numbers and flags of one byte.
    if kind & 1 == 0, frame.count >= 2, frame[1] & 7 < 3 {
      let payload = UnsafeRawBufferPointer(rebasing: bytes[2...])
      if kind & 2 == 0 {
        frame[1] &= ~8
        add(payload)
      } else {
        frame[1] |= 8
        inflated.inflate(payload).withUnsafeBytes { add($0) }
      }
      for shift: UInt in [24, 16, 8, 0] { frame.append(UInt8(truncatingIfNeeded: checksum >> shift)) }
    }
    switch try session.receive(frame) {
    case .message(let message, let countedBytes, nil):
      _ = message.properties.entries
      _ = message.error
      open.append((message.number, countedBytes, message.isNoReply))
    case .began(let message):
      if bytes.count & 1 == 0 { incoming.append((message, session.stream(message).count, 0)) }
    case .chunk(let message, let bytes, let wireBytes): incoming.append((message, bytes.count, wireBytes))
    case .message, nil: break
    }
    precondition(session.bufferedBytes >= 0 && session.bufferedBytes <= limits.bufferedBytes, "bytes")
    precondition(session.openRequests >= 0 && session.openRequests <= limits.openRequests, "open requests")
  }

  mutating func act(_ kind: UInt8, _ bytes: UnsafeRawBufferPointer) throws {
    switch kind % 5 {
    case 0: ask(kind, count: bytes.count == 255 ? 200_000 : bytes.count)
    case 1:
      guard !open.isEmpty else { return }
      let request = open.removeFirst()
      if request.isNoReply { return session.release(countedBytes: request.countedBytes) }
      let reply = BLIPReply(["x": "y"], body: .bytes([UInt8](repeating: kind, count: bytes.count * 100)))
      try session.reply(
        OutgoingMessage(
          reply, to: request.number, isUrgent: kind & 1 == 0, requestBytes: request.countedBytes))
    case 2:
      guard !incoming.isEmpty else { return }
      let (message, bytes, wireBytes) = incoming.removeFirst()
      session.consume(message, bytes: bytes, wireBytes: wireBytes)
    default: try send()
    }
  }
}

@main enum FuzzBLIP: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    guard let choices = input.first else { return }
    var run = Run(choices)
    var offset = 1
    do {
      if choices & 16 != 0 { try run.send() }
      while offset + 2 <= input.count {
        let end = min(input.count, offset + 2 + Int(input[offset]))
        let bytes = UnsafeRawBufferPointer(rebasing: input[offset + 2..<end])
        let kind = input[offset + 1]
        if kind < 160 { try run.receive(bytes, kind) } else { try run.act(kind, bytes) }
        offset = end
      }
      try run.send()
    } catch {
      precondition(error is BLIPError, "an error of another type: \(error)")
    }
  }
}
