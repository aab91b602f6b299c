import Bytes
import HTTP

/// Writes multipart bodies as CouchDB does.
enum MultipartAnswer {
  /// A new boundary: 32 hexadecimal digits.
  static func boundary() -> String { DocumentUUID.make() }

  /// Appends a document with the attachments that follow it: the body of a multipart/related. `json` is the document.
  static func append(
    _ json: AnswerPieces, _ following: [StoredAttachment], _ boundary: String, to pieces: inout AnswerPieces
  ) {
    pieces.append("--\(boundary)\r\nContent-Type: application/json\r\n\r\n")
    pieces.append(json)
    for attachment in following {
      pieces.append(
        "\r\n--\(boundary)\r\nContent-Disposition: attachment; filename=\"\(fileName(attachment.name))\"")
      pieces.append(
        "\r\nContent-Type: \(attachment.headerType)\r\nContent-Length: \(attachment.storedLength)")
      if attachment.isCompressed { pieces.append("\r\nContent-Encoding: gzip") }
      pieces.append("\r\n\r\n")
      pieces.append(.stored(attachment))
    }
    pieces.append("\r\n--\(boundary)--")
  }

  /// A name between quotes: what would end it, or the header, is escaped or replaced.
  private static func fileName(_ name: String) -> String {
    var bytes: [UInt8] = []
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0..<0x20, 0x7F: bytes.append(UInt8(ascii: "_"))
      default: bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
