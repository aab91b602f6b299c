import Bytes
import CWslay

/// wslay's reader and writer of frames, with memory instead of a socket at the other side.
///
/// wslay calls back for bytes. `wire` is what its callbacks see; it has an address of its own for that.
final class FrameCodec {
  struct Wire {
    /// What hasn't been read yet. Valid during a call of `read`.
    var input: UnsafeRawBufferPointer?
    /// Where frames go. Valid during a call of `write`.
    var output: UnsafeMutablePointer<ByteBuffer>?
    var masks = MaskKeys()
  }

  /// One piece of a frame's payload, unmasked.
  struct Piece {
    var opcode: UInt8
    var isFinal: Bool
    var reserved: UInt8
    var isMasked: Bool
    /// Bytes of the whole frame's payload.
    var frameBytes: UInt64
    /// Valid until the next call.
    var bytes: UnsafeRawBufferPointer
  }

  enum Outcome {
    case piece(Piece)
    case needsMore
    case malformed
  }

  private let context: wslay_frame_context_ptr?
  private let wire: UnsafeMutablePointer<Wire>

  init() {
    wire = .allocate(capacity: 1)
    wire.initialize(to: Wire())
    var callbacks = wslay_frame_callbacks(
      send_callback: { bytes, count, _, wire in FrameCodec.takeOutput(bytes, count, wire) },
      recv_callback: { target, count, _, wire in FrameCodec.giveInput(target, count, wire) },
      genmask_callback: { target, count, wire in FrameCodec.giveMask(target, count, wire) })
    var context: wslay_frame_context_ptr?
    wslay_frame_context_init(&context, &callbacks, wire)
    self.context = context
  }

  deinit {
    if let context { wslay_frame_context_free(context) }
    wire.deinitialize(count: 1)
    wire.deallocate()
  }

  // MARK: Reading

  /// Calls `body`, in which `next` reads from `bytes`. They have to be read until more are needed.
  func withInput<Failure: Error>(_ bytes: UnsafeRawBufferPointer, _ body: () throws(Failure) -> Void)
    throws(Failure)
  {
    wire.pointee.input = bytes
    defer { wire.pointee.input = nil }
    try body()
  }

  /// The next piece of a payload. An empty payload is a piece too.
  func next() -> Outcome {
    // Without memory for a context nothing can be read.
    guard let context else { return .malformed }
    var frame = wslay_frame_iocb()
    let count = wslay_frame_recv(context, &frame)
    guard count >= 0 else { return count == WSLAY_ERR_WANT_READ.rawValue ? .needsMore : .malformed }
    return .piece(
      Piece(
        opcode: frame.opcode, isFinal: frame.fin != 0, reserved: frame.rsv, isMasked: frame.mask != 0,
        frameBytes: frame.payload_length, bytes: UnsafeRawBufferPointer(start: frame.data, count: count)))
  }

  private static func giveInput(
    _ target: UnsafeMutablePointer<UInt8>?, _ count: Int, _ wire: UnsafeMutableRawPointer?
  ) -> Int {
    guard let target, let wire = wire?.assumingMemoryBound(to: Wire.self), let input = wire.pointee.input,
      let start = input.baseAddress
    else { return -1 }
    let taken = min(count, input.count)
    // Less than one byte means to wslay that reading has failed, which for it is the same as none yet.
    guard taken > 0 else { return -1 }
    UnsafeMutableRawPointer(target).copyMemory(from: start, byteCount: taken)
    wire.pointee.input = UnsafeRawBufferPointer(rebasing: input[taken...])
    return taken
  }

  // MARK: Writing

  /// Appends a frame that is a message of its own.
  func write(
    opcode: UInt8, isMasked: Bool, _ payload: UnsafeRawBufferPointer, to output: inout ByteBuffer
  ) {
    output.reserve(payload.count + 14)
    withUnsafeMutablePointer(to: &output) { output in
      wire.pointee.output = output
      defer { wire.pointee.output = nil }
      var frame = wslay_frame_iocb()
      frame.fin = 1
      frame.opcode = opcode
      frame.payload_length = UInt64(payload.count)
      frame.mask = isMasked ? 1 : 0
      frame.data = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
      frame.data_length = payload.count
      let count = context.map { wslay_frame_send($0, &frame) }
      precondition(count == payload.count, "no memory or no random numbers for a frame")
    }
  }

  private static func takeOutput(
    _ bytes: UnsafePointer<UInt8>?, _ count: Int, _ wire: UnsafeMutableRawPointer?
  ) -> Int {
    guard let output = wire?.assumingMemoryBound(to: Wire.self).pointee.output else { return -1 }
    output.pointee.append(UnsafeRawBufferPointer(start: bytes, count: count))
    return count
  }

  private static func giveMask(
    _ target: UnsafeMutablePointer<UInt8>?, _ count: Int, _ wire: UnsafeMutableRawPointer?
  ) -> CInt {
    guard let target, let wire = wire?.assumingMemoryBound(to: Wire.self) else { return -1 }
    return wire.pointee.masks.fill(target, count) ? 0 : -1
  }
}
