import Bytes

#if canImport(Glibc)
  import Glibc
#endif

/// UTF-8 bytes that are owned by a document, an arena or a program. The owner decides how long they are
/// valid.
struct TextSlice: BitwiseCopyable {
  let start: UnsafePointer<UInt8>
  let count: Int

  @inline(__always)
  init(start: UnsafePointer<UInt8>, count: Int) {
    self.start = start
    self.count = count
  }

  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? TextSlice.nowhere
    count = bytes.count
  }

  /// An address for empty text.
  nonisolated(unsafe) static let nowhere: UnsafePointer<UInt8> = {
    let byte = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
  }()

  static var empty: TextSlice { TextSlice(start: nowhere, count: 0) }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
  var utf8: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: count) }

  /// The text as a string. Invalid UTF-8 is replaced.
  var string: String { String(decoding: utf8, as: UTF8.self) }

  /// The order by unsigned bytes, then by length: below, at or above 0.
  @inline(__always)
  func compare(_ other: TextSlice) -> Int { compareBytes(bytes, other.bytes) }

  @inline(__always)
  func equals(_ other: TextSlice) -> Bool {
    count == other.count
      && (count == 0 || start[0] == other.start[0] && memcmp(start, other.start, count) == 0)
  }

  /// A part of the text, by byte offsets.
  @inline(__always)
  func slice(_ from: Int, _ to: Int) -> TextSlice { TextSlice(start: start + from, count: to &- from) }
}
