import Bytes

/// The rules for document IDs.
package enum DocumentID {
  /// The maximum length of an ID that a user may choose, in bytes of UTF-8.
  package static let maximumBytes = 240
  /// The maximum length of a stored ID, in bytes of UTF-8. Older databases can have longer IDs than users may
  /// choose now.
  package static let maximumStoredBytes = 480

  /// Calls `body` with the UTF-8 of `id`.
  ///
  /// A valid ID has 1 to `maximum` bytes (by default 240), has no control characters and doesn't begin with
  /// `_`, except for the IDs of design documents: `_design/` and a name. Throws `invalidDocumentID` for any other ID.
  ///
  /// The name of a local document may begin with `_`: so does one in 64 of the checkpoints that PouchDB keeps, whose names are base64
  /// with `_` for `+`.
  @inline(__always)
  static func withValidated<Result>(
    _ id: String, maximum: Int = maximumBytes, isLocal: Bool = false,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    var id = id
    return try id.withUTF8 { utf8 in
      if let reason = reasonAgainst(utf8, maximum: maximum, isLocal: isLocal) {
        throw DocumentError(
          .invalidDocumentID, reason, documentID: String(decoding: utf8.prefix(100), as: UTF8.self))
      }
      return try body(UnsafeRawBufferPointer(utf8))
    }
  }

  /// Throws `invalidDocumentID` unless these bytes, which come from outside, are a valid stored ID.
  static func checkStored(_ id: UnsafeRawBufferPointer) throws {
    if let reason = reasonAgainst(stored: id) {
      throw DocumentError(
        .invalidDocumentID, reason, documentID: String(decoding: id.prefix(100), as: UTF8.self))
    }
  }

  /// Returns whether the bytes can be the ID of a stored document: 1 to 480 bytes of UTF-8 without control
  /// characters that don't begin with an underscore, except for `_design/` and a name.
  package static func isStorable(_ id: UnsafeRawBufferPointer) -> Bool { reasonAgainst(stored: id) == nil }

  /// Returns whether the text can be the ID of a stored document.
  static func isStorable(_ id: String) -> Bool {
    var id = id
    return id.withUTF8 { reasonAgainst($0, maximum: maximumStoredBytes) == nil }
  }

  private static func reasonAgainst(stored id: UnsafeRawBufferPointer) -> String? {
    let reason = id.withMemoryRebound(to: UInt8.self) { reasonAgainst($0, maximum: maximumStoredBytes) }
    if let reason { return reason }
    guard id.contains(where: { $0 >= 0x80 }), String(validating: id, as: UTF8.self) == nil else { return nil }
    return "the document ID isn't valid UTF-8"
  }

  /// Returns why these bytes aren't a valid ID, or nil if they are.
  static func reasonAgainst(
    _ utf8: UnsafeBufferPointer<UInt8>, maximum: Int, isLocal: Bool = false
  ) -> String? {
    if utf8.isEmpty { return "a document ID can't be empty" }
    if utf8.count > maximum {
      return "a document ID can have at most \(maximum) bytes of UTF-8, not \(utf8.count)"
    }
    if !isLocal, utf8[0] == UInt8(ascii: "_"), !isOfDesign(utf8) {
      return "a document ID can't begin with an underscore, unless it is '_design/' and a name"
    }
    var hasControls = false
    for byte in utf8 { hasControls = hasControls || byte < 0x20 || byte == 0x7F }
    return hasControls ? "a document ID can't have control characters" : nil
  }

  /// What the IDs of design documents begin with. They hold the definitions of views, filters and validation functions.
  package static let designPrefix = Array("_design/".utf8)

  /// Returns whether these bytes are the ID of a design document.
  package static func isOfDesign(_ id: UnsafeBufferPointer<UInt8>) -> Bool {
    id.count > designPrefix.count && id.starts(with: designPrefix)
  }

  /// Returns a new random ID: a UUID of version 4 in lower case.
  package static func random() -> String {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  static func random(using generator: inout some RandomNumberGenerator) -> String {
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return uuidText(bytes)
  }

  /// Returns 16 bytes as lower-case hexadecimal text in the form 8-4-4-4-12.
  package static func uuidText(_ bytes: [UInt8]) -> String {
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += Hex.text([byte])
    }
    return text
  }
}
