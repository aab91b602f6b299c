import Bytes
import Documents
import Fleece
import Storage
import Touchstone
import Views

/// What became of a document that a client sent.
typealias SaveResult = Result<String, CouchDBError>

extension DatabaseCall {
  /// Saves documents in one transaction, and returns the new revision of each, or why it was refused. Their attachments are in the form
  /// in which they are stored. `claims` are the new blobs of each, which are discarded if it isn't saved.
  ///
  /// Throws what refuses them all; then nothing is saved.
  func save(
    _ documents: [IncomingDocument], _ text: [UInt8], isForeign: Bool, claims: inout [NewAttachments]
  ) throws -> [SaveResult] {
    var documents = documents
    let isOfUsers = name.hasSameBytes(as: UserDocument.database)
    let isReplicator = name.hasSameBytes(as: ReplicatorDocument.database)
    var results: [SaveResult?] = Array(repeating: nil, count: documents.count)
    do {
      let user = try database.hasDesignValidations ? validationUser() : nil
      var wanted: [Int] = []
      wanted.reserveCapacity(documents.count)
      for index in Self.ordered(documents) {
        if IncomingID.isLocal(documents[index].id ?? "") { continue }
        if let decided = documents[index].decided {
          results[index] = decided
          continue
        }
        do {
          if isReplicator { try checkReplication(&documents[index], text, isForeign: isForeign) }
          if isOfUsers { try checkUser(&documents[index], text) }
          let document = documents[index]
          let history =
            isForeign
            ? try document.foreignHistory().compactMap { RevisionID($0) }
            : document.revision.map { [$0.id].compactMap { $0 } } ?? []
          if !isForeign, document.revision?.id == nil, document.revision != nil {
            throw CouchDBError.updateConflict
          }
          try check(document, text, history: history, isForeign: isForeign, by: user)
          wanted.append(index)
        } catch  where CouchDBError.isOfDocument(error) {
          results[index] = .failure(CouchDBError(refused: error))
        }
      }
      let saved =
        try isForeign ? apply(wanted.map { documents[$0] }, text) : edit(wanted.map { documents[$0] }, text)
      if isOfUsers { service.users.forget() }
      for (index, result) in zip(wanted, saved) { results[index] = result }
      for (index, document) in documents.enumerated() where IncomingID.isLocal(document.id ?? "") {
        do { results[index] = .success(try saveLocal(document, text)) } catch
          where CouchDBError.isOfDocument(error)
        { results[index] = .failure(CouchDBError(refused: error)) }
      }
    } catch {
      for index in claims.indices { claims[index].discard() }
      throw error
    }
    for (index, result) in results.enumerated() where claims.indices.contains(index) {
      if case .failure? = result { claims[index].discard() }
      if documents[index].decided != nil { claims[index].discard() }
    }
    return results.map { $0 ?? .failure(.missing) }
  }

  /// The numbers of documents in the order in which they are saved: by their IDs, as CouchDB does, which is also the order of the
  /// trees that they go into.
  static func ordered(_ documents: [IncomingDocument]) -> [Int] {
    func precedes(_ left: Int, _ right: Int) -> Bool {
      (documents[left].id ?? "").precedesInBytes(documents[right].id ?? "")
    }
    let numbers = Array(documents.indices)
    if numbers.dropFirst().allSatisfy({ !precedes($0, $0 - 1) }) { return numbers }
    return numbers.sorted { precedes($0, $1) || (!precedes($1, $0) && $0 < $1) }
  }

  private func edit(_ documents: [IncomingDocument], _ text: [UInt8]) throws -> [SaveResult] {
    guard !documents.isEmpty else { return [] }
    let edits = documents.map {
      DocumentEdit(
        id: $0.id ?? "", base: $0.revision?.id, isDeleted: $0.isDeleted, keepsGenerations: $0.keepsGenerations
      )
    }
    do {
      let saved = try database.replicatingChanges { store in
        try store.save(edits) { documents[$0].appendBody(text, to: &$1) }
      }
      return saved.map { result in
        switch result {
        case .success(let revision): .success(revision.description)
        case .failure(let error): .failure(CouchDBError(refused: error))
        }
      }
    } catch let error as DocumentError where error.code == .invalidBody {
      throw try unreadable(error, documents, text)
    }
  }

  /// How many revisions are applied before it is looked whether the client still waits.
  private static let revisionsAtOnce = 64

  private func apply(_ documents: [IncomingDocument], _ text: [UInt8]) throws -> [SaveResult] {
    guard !documents.isEmpty else { return [] }
    let revisions = try documents.map {
      SyncRevision(
        id: $0.id ?? "", history: try $0.foreignHistory(), isDeleted: $0.isDeleted, body: .json($0.body(text))
      )
    }
    let outcomes = try database.replicatingChanges { store in
      try store.inBatch {
        var outcomes: [SyncOutcome] = []
        outcomes.reserveCapacity(revisions.count)
        while outcomes.count < revisions.count {
          try checkWanted()
          let next = revisions[outcomes.count...].prefix(Self.revisionsAtOnce)
          outcomes += try store.apply(Array(next), .allow)
        }
        for (document, outcome) in zip(documents, outcomes) {
          guard case .refused(let error as DocumentError) = outcome, error.code == .invalidBody else {
            continue
          }
          // What isn't JSON refuses the request. What can't be stored here, such as deep nesting, refuses its document alone: a
          // replicator goes on with the others.
          guard try isJSON(document, text) else { throw JSONScanner.invalid }
        }
        return outcomes
      }
    }
    return zip(revisions, outcomes).map { revision, outcome in
      switch outcome {
      case .added, .known, .conflict: .success(revision.revision)
      case .refused(let error as DocumentError): .failure(CouchDBError(unstorable: error))
      case .refused(let error): .failure(CouchDBError(refused: error))
      }
    }
  }

  /// The answer to a body that can't be stored: that it isn't JSON, or what else is wrong.
  private func unreadable(_ error: DocumentError, _ documents: [IncomingDocument], _ text: [UInt8]) throws
    -> CouchDBError
  {
    for document in documents where try !isJSON(document, text) { return JSONScanner.invalid }
    return CouchDBError(error)
  }

  private func isJSON(_ document: IncomingDocument, _ text: [UInt8]) throws -> Bool {
    let body = document.body(text)
    return try body.withUnsafeBytes { bytes in
      try holding(JSONValue.memory(of: bytes)) {
        do { _ = try JSONValue(json: bytes) } catch FleeceError.invalidJSON { return false } catch {}
        return true
      }
    }
  }
}
