import Bytes
import Fleece
import Storage

extension DocumentStore {
  static let localKeyspace = "local"

  /// Returns the local document, or nil.
  package func localDocument(_ id: String) throws -> LocalDocument? {
    try DocumentID.withValidated(id, isLocal: true) { key in
      try reading { transaction, _ in
        guard let keyspace = try transaction.keyspace(named: DocumentStore.localKeyspace) else { return nil }
        return try transaction.withValue(at: key.bytes, in: keyspace) { try LocalDocument(id: id, $0) }
      }
    }
  }

  /// Returns the IDs of all local documents, in order.
  package func localDocumentIDs() throws -> [String] {
    try reading { transaction, _ in
      guard let keyspace = try transaction.keyspace(named: DocumentStore.localKeyspace) else { return [] }
      var ids: [String] = []
      try transaction.scan(keyspace, .all, order: .ascending, fetch: .keys) { key, _ in
        ids.append(String(copying: key))
        return true
      }
      return ids
    }
  }

  /// Saves a local document.
  @discardableResult
  package func saveLocalDocument(
    _ id: String, _ body: JSONValue, basedOn generation: UInt64? = nil,
    onConflict control: ConcurrencyControl = .fail
  ) throws -> LocalDocument {
    try saveLocalDocument(id, body, basedOn: generation, control, generation: nil)
  }

  /// Saves a local document with a generation that comes from elsewhere, 1 or more, regardless of the stored generation.
  package func saveLocalDocument(_ id: String, _ body: JSONValue, generation: UInt64) throws {
    _ = try saveLocalDocument(id, body, basedOn: nil, .lastWriteWins, generation: generation)
  }

  private func saveLocalDocument(
    _ id: String, _ body: JSONValue, basedOn base: UInt64?, _ control: ConcurrencyControl, generation: UInt64?
  ) throws -> LocalDocument {
    guard case .object = body else {
      throw DocumentError(.invalidBody, "the body of the local document isn't a JSON object", documentID: id)
    }
    let json: String
    do { json = try body.canonicalJSON() } catch {
      throw DocumentError(.invalidBody, error.description, documentID: id)
    }
    return try changeLocalDocument(id, base, control) { stored, key, transaction, keyspace in
      let saved = LocalDocument(id: id, generation: generation ?? (stored?.generation ?? 0) + 1, body: body)
      var record = ByteBuffer(capacity: json.utf8.count + 16)
      record.append(LocalDocument.version)
      record.append(varint: saved.generation)
      var json = json
      json.withUTF8 { record.append(UnsafeRawBufferPointer($0)) }
      try transaction.put(key.bytes, record.bytes.bytes, in: keyspace)
      return saved
    }
  }

  /// Removes a local document.
  package func deleteLocalDocument(
    _ id: String, basedOn generation: UInt64? = nil, onConflict control: ConcurrencyControl = .fail
  ) throws {
    try changeLocalDocument(id, generation, control) { stored, key, transaction, keyspace in
      guard stored != nil else {
        throw DocumentError(.notFound, "there is no such local document", documentID: id)
      }
      try transaction.delete(key.bytes, in: keyspace)
    }
  }

  private func changeLocalDocument<Result>(
    _ id: String, _ generation: UInt64?, _ control: ConcurrencyControl,
    _ change: (LocalDocument?, UnsafeRawBufferPointer, any WriteTransaction, Keyspace) throws -> Result
  ) throws -> Result {
    try DocumentID.withValidated(id, isLocal: true) { key in
      try writing { writer in
        try writer.checkWritable()
        let transaction = try writer.transaction
        let keyspace =
          try transaction.keyspace(named: DocumentStore.localKeyspace)
          ?? transaction.createKeyspace(DocumentStore.localKeyspace, shape: .entries)
        let stored = try transaction.withValue(at: key.bytes, in: keyspace) { try LocalDocument(id: id, $0) }
        guard control == .lastWriteWins || stored?.generation == generation else {
          throw DocumentError(
            .conflict,
            "the current revision of the local document is \(stored?.revisionID ?? "none"), but the change is based on "
              + (generation.map { "\($0)-local" } ?? "none"), documentID: id)
        }
        return try change(stored, key, transaction, keyspace)
      }
    }
  }
}
