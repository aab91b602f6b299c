import Documents
import Fleece
import HTTP
import Storage
import Touchstone
import Views

/// Reads attachments for answers that have their data in JSON.
struct AttachmentContents: Sendable {
  /// The most bytes of one attachment, decoded. Larger ones are read on their own.
  static let maximumBytes = 128 << 20

  private let database: Database

  init(_ database: Database) { self.database = database }

  /// Reads the bytes of an attachment, decoded.
  var reader: CouchDBDocumentWriter.Contents {
    { [database] value in
      guard let attachment = Attachment(value) else {
        throw CouchDBError(500, "internal_server_error", "an attachment can't be read")
      }
      let bytes = try database.contents(of: attachment.blob, limit: UInt64(Self.maximumBytes))
      guard attachment.encoding == "gzip" else { return bytes }
      return try Self.gunzip(bytes)
    }
  }

  private static func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
    guard let body = GunzippedBody(HeldBody(bytes)) else {
      throw CouchDBError(
        500, "internal_server_error", "there isn't enough memory to decompress an attachment")
    }
    do { return try body.collect(limit: maximumBytes) } catch .tooLong {
      throw CouchDBError(413, "attachment_too_large", "an attachment is too large for JSON")
    } catch { throw CouchDBError(500, "internal_server_error", "an attachment isn't compressed as it says") }
  }
}

/// Bytes in memory as a body.
private struct HeldBody: HTTPBodySource {
  private let rest: Lock<[UInt8]?>
  let length: Int?

  init(_ bytes: [UInt8]) {
    rest = Lock(bytes)
    length = bytes.count
  }

  func read() throws(HTTPBodyError) -> [UInt8]? {
    rest.withLock { rest in
      defer { rest = nil }
      return rest
    }
  }

  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    completion(Result { () throws(HTTPBodyError) in try read() })
  }
}
