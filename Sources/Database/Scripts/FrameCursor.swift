/// Reads a payload from the front, never past its end. Throws `FrameFault`. What it lends is valid as long as the
/// bytes.
struct FrameCursor {
  private let bytes: UnsafeRawBufferPointer
  private(set) var offset: Int

  init(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) {
    self.bytes = bytes
    self.offset = offset
  }

  var isAtEnd: Bool { offset == bytes.count }

  mutating func u8() throws -> UInt8 {
    guard offset < bytes.count else { throw FrameFault() }
    defer { offset += 1 }
    return bytes[offset]
  }

  mutating func u16() throws -> UInt16 { UInt16(littleEndian: try load(UInt16.self)) }

  mutating func u32() throws -> UInt32 { UInt32(littleEndian: try load(UInt32.self)) }

  mutating func text() throws -> UnsafeRawBufferPointer {
    let count = Int(try u32())
    guard count <= bytes.count - offset else { throw FrameFault() }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  mutating func string() throws -> String { String(decoding: try text(), as: UTF8.self) }

  private mutating func load<Integer: FixedWidthInteger & BitwiseCopyable>(_ type: Integer.Type) throws
    -> Integer
  {
    let size = MemoryLayout<Integer>.size
    guard size <= bytes.count - offset else { throw FrameFault() }
    defer { offset += size }
    return bytes.loadUnaligned(fromByteOffset: offset, as: Integer.self)
  }
}

/// What the program sent isn't what the protocol says.
struct FrameFault: Error {}

/// An answer of the program: a frame without its length.
struct AnswerFrame {
  enum Kind: UInt8 {
    case hello = 0x80
    case opened, rows, mapped, value, selected, verdict, failed, working, closed

    /// Whether it is the last answer to its request.
    var isLast: Bool { self != .hello && self != .rows && self != .working }
  }

  let kind: Kind
  let ticket: UInt32
  /// The whole frame behind its length.
  let bytes: [UInt8]

  /// Where the payload begins.
  static let headerBytes = 5

  func withPayload<Result>(_ body: (inout FrameCursor) throws -> Result) throws -> Result {
    try bytes.withUnsafeBytes {
      var cursor = FrameCursor($0, at: AnswerFrame.headerBytes)
      let result = try body(&cursor)
      guard cursor.isAtEnd else { throw FrameFault() }
      return result
    }
  }
}
