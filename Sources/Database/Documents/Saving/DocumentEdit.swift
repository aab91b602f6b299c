import Storage

/// A change as clients of CouchDB make it: it replaces the revision that the client has seen.
package struct DocumentEdit: Sendable {
  /// The document's ID, up to 480 bytes.
  package var id: String
  /// The revision that it replaces, a leaf. Nil if the client has seen none: then there may be no live document.
  package var base: RevisionID?
  /// Whether the new revision is a tombstone.
  package var isDeleted: Bool
  /// Whether the generations of attachments, `revpos`, stay those of the body: of a copy they are those of its source.
  package var keepsGenerations = false

  /// Creates a change. See the properties.
  package init(id: String, base: RevisionID?, isDeleted: Bool = false, keepsGenerations: Bool = false) {
    self.id = id
    self.base = base
    self.isDeleted = isDeleted
    self.keepsGenerations = keepsGenerations
  }
}

extension DocumentStore {
  /// Saves changes in one transaction, and returns what became of each: the ID of the new revision, or why it was refused. `body`
  /// appends the JSON object of the change with a number to a text. It may be called again when the transaction is repeated.
  ///
  /// A document that was never here may have any base, which becomes the parent of its first revision, and it may be deleted.
  /// A change that is refused changes nothing, and the others are saved. A body that isn't a JSON object, `invalidBody`, and what
  /// fails the transaction are thrown; then nothing has changed.
  package func save(_ edits: [DocumentEdit], body: (Int, inout [UInt8]) -> Void) throws
    -> [Result<RevisionID, any Error>]
  {
    try writing { writer in
      var results: [Result<RevisionID, any Error>] = []
      results.reserveCapacity(edits.count)
      var text: [UInt8] = []
      for (index, edit) in edits.enumerated() {
        text.removeAll(keepingCapacity: true)
        body(index, &text)
        do {
          let saved = try writer.joined { writer in
            try DocumentID.withValidated(edit.id, maximum: DocumentID.maximumStoredBytes) { key in
              var body = try text.withUnsafeBytes { try writer.encode(json: $0, of: key) }
              body.keepsGenerations = edit.keepsGenerations
              let precondition = Precondition.edit(of: edit.base)
              return try writer.save(key, body, deleted: edit.isDeleted, precondition)
                .revisionID(digestBytes: precondition.digestBytes)
            }
          }
          results.append(.success(saved))
        } catch let error as DocumentError where error.code != .invalidBody && error.code != .batchFailed {
          // What fails the transaction fails it at its end too.
          results.append(.failure(error))
        }
      }
      return results
    }
  }
}
