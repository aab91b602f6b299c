import Bytes
import Fleece
import Storage

// A local document as it is stored in the keyspace `local`, under its name.
//
//   record := version:u8=1  revision:varint  body     body: canonical JSON of an object, to the end

/// A document that stays in this database. It has no revision tree and isn't part of changes, queries or
/// syncs. Syncs keep their checkpoints in local documents.
public struct LocalDocument: Sendable, Hashable {
  /// The document's name: 1 to 240 bytes without control characters. It may begin with an underscore.
  public let id: String
  /// How often the document was saved since it was created, from 1. It is the number in `1-local`.
  public let generation: UInt64
  /// The body, an object.
  public let body: JSONValue

  /// The revision ID in the form of Couchbase Lite 1.x: `1-local`.
  public var revisionID: String { "\(generation)-local" }

  init(id: String, generation: UInt64, body: JSONValue) {
    self.id = id
    self.generation = generation
    self.body = body
  }

  static let version: UInt8 = 1

  init(id: String, _ bytes: RawSpan) throws {
    var reader = ByteReader(bytes)
    guard let version = reader.byte() else { throw LocalDocument.damaged(id) }
    guard version == LocalDocument.version else {
      throw DocumentError(
        .unsupportedVersion, "the local document has format \(version), which this release doesn't support",
        documentID: id)
    }
    guard let generation = reader.varint(), generation > 0,
      let body = try? reader.rest.withUnsafeBytes({ try JSONValue(json: $0) }),
      case .object = body
    else { throw LocalDocument.damaged(id) }
    self.init(id: id, generation: generation, body: body)
  }

  private static func damaged(_ id: String) -> DocumentError {
    DocumentError(.damaged, "the local document can't be read", documentID: id)
  }
}
