import Bytes

/// Documents that are handed to scripts together. Batches of 64 to 256 KiB are the fastest.
///
/// One thread at a time may use a batch.
package final class ScriptBatch {
  /// The size of a full batch, in bytes.
  package static let fullBytes = 128 << 10

  // For each document: length:u32, JSON.
  private var payload = ByteBuffer()
  private var starts: [Int] = []
  private var identifiers: [UInt8] = []
  private var identifierEnds: [Int] = []

  /// Creates an empty batch.
  package init() {}

  /// The number of documents.
  package var count: Int { starts.count }

  /// Whether it is large enough to be handed over.
  package var isFull: Bool { payload.count >= ScriptBatch.fullBytes }

  /// Appends a document.
  package func append(id: RawSpan, json: RawSpan) {
    append(id: id) { $0.append(json) }
  }

  /// Appends a document.
  package func append(id: String, json: some Collection<UInt8>) {
    var id = id
    id.withUTF8 { bytes in
      append(id: UnsafeRawBufferPointer(bytes).bytes) { buffer in for byte in json { buffer.append(byte) } }
    }
  }

  /// Appends a document whose JSON `write` appends to the buffer. Nothing is appended when it throws.
  package func append(id: RawSpan, _ write: (inout ByteBuffer) throws -> Void) rethrows {
    let start = payload.count
    payload.append(littleEndian: UInt32(0))
    do { try write(&payload) } catch {
      payload.truncate(to: start)
      throw error
    }
    let length = UInt32(clamping: payload.count - start - 4)
    UnsafeMutableRawPointer(payload.base + start).storeBytes(of: length.littleEndian, as: UInt32.self)
    starts.append(start)
    id.withUnsafeBytes { identifiers.append(contentsOf: $0) }
    identifierEnds.append(identifiers.count)
  }

  /// Removes all documents.
  package func removeAll() {
    payload.removeAll(keepingAtMost: 4 << 20)
    starts.removeAll(keepingCapacity: true)
    identifiers.removeAll(keepingCapacity: true)
    identifierEnds.removeAll(keepingCapacity: true)
  }

  /// The ID of a document.
  package func id(_ index: Int) -> String {
    let start = index == 0 ? 0 : identifierEnds[index - 1]
    return String(decoding: identifiers[start..<identifierEnds[index]], as: UTF8.self)
  }

  /// Lends the JSON of a document.
  package func withJSON<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try withPayload(index..<index + 1) { try body(UnsafeRawBufferPointer(rebasing: $0.dropFirst(4))) }
  }

  /// Lends the documents of a range as requests have them.
  func withPayload<Result>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    guard !range.isEmpty else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    let end = range.upperBound < starts.count ? starts[range.upperBound] : payload.count
    return try body(UnsafeRawBufferPointer(rebasing: payload.bytes[starts[range.lowerBound]..<end]))
  }
}
