import Bytes
import Fleece

/// A live document as JSON, with its current revision. What it lends is valid until the closure that received it returns.
package struct DocumentJSON {
  /// The body in UTF-8, with sorted keys.
  package let body: UnsafeRawBufferPointer
  /// The text of the current revision's ID, which is ASCII.
  package let revisionID: UnsafeRawBufferPointer
  /// The sequence of the document's latest change.
  package let sequence: UInt64
  /// Whether there is more than one live leaf revision.
  package let isConflicted: Bool

  /// What a buffer holds: the body, and the revision's ID behind it.
  struct Layout {
    let bodyCount: Int
    let sequence: UInt64
    let isConflicted: Bool

    func json(in text: UnsafeRawBufferPointer) -> DocumentJSON {
      DocumentJSON(
        body: UnsafeRawBufferPointer(rebasing: text[..<bodyCount]),
        revisionID: UnsafeRawBufferPointer(rebasing: text[bodyCount...]), sequence: sequence,
        isConflicted: isConflicted)
    }
  }
}

extension DocumentRecord {
  /// Writes the body and the revision's ID to an empty buffer. Throws `damaged` if either can't be read.
  func write(to text: inout ByteBuffer, _ sharedKeys: SharedKeys) throws -> DocumentJSON.Layout {
    let revision = try currentRevision()
    try body.withUnsafeBytes { bytes in
      guard let root = FleeceReader.root(of: bytes) else { throw DocumentRecord.damaged }
      try undamaged { () throws(FleeceError) in
        try root.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &text)
      }
    }
    let bodyCount = text.count
    revision.appendText(to: &text)
    return DocumentJSON.Layout(
      bodyCount: bodyCount, sequence: sequence, isConflicted: flags.contains(.conflicted))
  }
}

extension Document {
  /// Writes the body and the revision's ID to an empty buffer.
  func write(to text: inout ByteBuffer) throws -> DocumentJSON.Layout {
    try withRecord { try $0.write(to: &text, sharedKeys) }
  }
}
