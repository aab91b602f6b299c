import Blobs

/// Parts of the property `_attachments` as JSON text.
enum AttachmentText {
  /// A JSON string.
  static func quoted(_ text: String) -> [UInt8] {
    var result: [UInt8] = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
      case 0..<0x20:
        let digits = String(byte, radix: 16)
        result += Array("\\u00\(digits.count == 1 ? "0" : "")\(digits)".utf8)
      default: result.append(byte)
      }
    }
    return result + [UInt8(ascii: "\"")]
  }

  /// The text of a digest's 20 bytes; of another number, what is no digest.
  static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
    BlobDigest(bytes)?.text ?? "sha1-"
  }
}
