import Documents
import Fleece
import Storage
import Touchstone
import Views

/// Reads attachments for answers that have their data in JSON. Used by one thread at a time.
final class AttachmentContents: Sendable {
  /// The most bytes of the attachments of one slice of an answer, decoded. More are read on their own.
  static let maximumBytes = 128 << 20

  private let database: Database
  private let used = Lock(0)

  init(_ database: Database) { self.database = database }

  /// A slice begins.
  func begin() { used.withLock { $0 = 0 } }

  /// Reads the bytes of an attachment, decoded. Throws 413 if the slice has too many.
  var reader: CouchDBDocumentWriter.Contents {
    { [self] value in
      guard let attachment = Attachment(value) else {
        throw CouchDBError(500, "internal_server_error", "an attachment can't be read")
      }
      let left = Self.maximumBytes - used.withLock { $0 }
      var bytes: [UInt8]
      do { bytes = try database.contents(of: attachment.blob, limit: UInt64(left)) } catch let error
        as StorageError where error.code == .valueTooLarge
      { throw Self.tooLarge }
      if attachment.encoding == "gzip" { bytes = try Self.gunzip(bytes, limit: left) }
      used.withLock { $0 += bytes.count }
      return bytes
    }
  }

  private static let tooLarge = CouchDBError(
    413, "attachment_too_large", "the attachments are too large for JSON; ask for them one by one")

  private static func gunzip(_ bytes: [UInt8], limit: Int) throws -> [UInt8] {
    let decoder = try GzipDecoder()
    var decoded: [UInt8] = []
    do {
      try bytes.withUnsafeBytes { bytes in
        try decoder.decode(bytes) { piece in
          guard piece.count <= limit - decoded.count else { throw tooLarge }
          decoded.append(contentsOf: piece)
        }
      }
      guard decoder.isAtEnd else { throw GzipDecoder.Malformed() }
    } catch is GzipDecoder.Malformed {
      throw CouchDBError(500, "internal_server_error", "an attachment isn't compressed as it says")
    }
    return decoded
  }
}
