import Fleece

/// An encoded body, in the buffers of its writer's encoder. Valid until the writer encodes another body: a
/// later access stops the program, because it would read that other body.
package struct EncodedBody {
  private let encoder: BodyEncoder
  /// The value of `encodings` when the body was encoded.
  private let number: UInt64
  /// Whether the body comes from another database.
  let isForeign: Bool
  /// Whether the body may refer to blobs or has attachments.
  let mayNameBlobs: Bool
  /// Whether the body is written even if a blob that it refers to isn't stored.
  var mayMissBlobs = false
  /// Whether the body may have any top-level name that begins with an underscore, as one of another database may.
  var keepsReservedNames = false
  /// Whether the body makes its revision a tombstone.
  var isDeletion = false
  /// Whether attachments keep the `revpos` that the body says.
  var keepsGenerations = false
  /// Whether entries of `_attachments` that name no blob stay as they are: from another database, which may know what they are.
  var keepsUnknownAttachments = false
  /// The value that was encoded, if it may know the content of its blobs.
  var value: JSONValue?

  /// The last body of `encoder`.
  init(_ encoder: BodyEncoder, isForeign: Bool, mayNameBlobs: Bool, mayMissBlobs: Bool = false) {
    self.encoder = encoder
    number = encoder.encodings
    self.isForeign = isForeign
    self.mayNameBlobs = mayNameBlobs
    self.mayMissBlobs = mayMissBlobs
  }

  private var current: BodyEncoder {
    precondition(encoder.encodings == number, "the body was used after another one was encoded")
    return encoder
  }

  var fleece: UnsafeRawBufferPointer { current.fleece }
  /// The canonical text, for computing a revision ID. Requires that it was encoded, too.
  var canonicalJSON: UnsafeRawBufferPointer { current.canonicalJSON }
  /// The number of shared keys that a reader needs.
  var sharedKeyCount: Int { current.sharedKeyCount }

  /// The body's object. Valid until the writer encodes another body.
  package var root: UnsafeValue? { FleeceReader.root(of: fleece) }

  /// Whether the body has attachments or other top-level names that begin with an underscore.
  package var hasReservedNames: Bool { current.underscoredName != nil }
}
