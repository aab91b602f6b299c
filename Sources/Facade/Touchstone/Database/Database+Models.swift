import Documents

// Models: types of the app that are stored as documents.

extension Database {
  /// Saves the model as a new revision of its document, and records the ID and the revision in `model`.
  ///
  /// Throws what `save(_:onConflict:)` of a `MutableDocument` throws, and `EncodingError`. If the transaction is
  /// rolled back, `model` is based on its earlier revision again. It keeps the ID.
  @discardableResult
  public func save<Model: DocumentModel>(
    _ model: inout Model, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try save(&model, basedOn: model.revisionID, control)
  }

  /// Saves the model, and lets `conflictHandler` decide if the document has changed since the model was read.
  /// Returns nil if it gives up.
  ///
  /// It works as `save(_:conflictHandler:)` of a `MutableDocument`. The handler receives the stored document as
  /// a model, nil if it was deleted or purged.
  @discardableResult
  public func save<Model: DocumentModel>(
    _ model: inout Model, conflictHandler: (inout Model, Model?) throws -> Bool
  ) throws -> SavedRevision? {
    var base = model.revisionID
    while true {
      do { return try save(&model, basedOn: base, .fail) } catch let error as DocumentError
        where error.code == .conflict
      {
        guard let id = model.id else { throw error }
        let stored = try get(Model.self, id)
        guard try conflictHandler(&model, stored) else { return nil }
        base = stored?.revisionID
      }
    }
  }

  private func save<Model: DocumentModel>(
    _ model: inout Model, basedOn revision: RevisionID?, _ control: ConcurrencyControl
  ) throws -> SavedRevision {
    let store = try writable
    var identified = model
    let id = model.id ?? DocumentID.random()
    identified.id = id
    let saved = try store.save(id, .value(identified.body()), basedOn: revision, onConflict: control)
    model.id = id
    store.note(saved, in: &model.revision)
    return saved
  }

  /// Returns the live document with that ID as a model, or nil. Throws `DecodingError` if it doesn't fit.
  public func get<Model: DocumentModel>(_ type: Model.Type = Model.self, _ id: String) throws -> Model? {
    try store.document(id).map { try Model($0) }
  }

  /// Reads a model, applies `change`, and saves it. Returns the saved model. If another write came first, this is
  /// repeated with the new revision. `change` may run several times; see `update(_:attempts:creating:_:)`.
  ///
  /// Throws `notFound` if there is no live document.
  @discardableResult
  public func update<Model: DocumentModel>(
    _ type: Model.Type = Model.self, _ id: String, attempts: Int = 10, _ change: (inout Model) throws -> Void
  ) throws -> Model {
    func read() throws -> Model {
      guard let model = try get(type, id) else {
        throw DocumentError(.notFound, "there is no such document, so it can't be updated", documentID: id)
      }
      return model
    }
    return try update(id, attempts: attempts, read: read, change) { model in
      // The change can't move the model to another document.
      model.id = id
      try save(&model, onConflict: .fail)
      return model
    }
  }

  /// Deletes the model's document. Throws `notFound` if the model was never saved.
  ///
  /// If the document has been changed since, the last write wins, or `conflict` is thrown, as `control` says.
  /// Returns nil if the last write wins and the document has been deleted or purged since.
  @discardableResult
  public func delete<Model: DocumentModel>(
    _ model: inout Model, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    let store = try writable
    guard let id = model.id, let revision = model.revisionID else {
      throw DocumentError(
        .notFound, "the model was never saved, so its document can't be deleted", documentID: model.id)
    }
    let saved = try delete(read: id, revision, keeping: [:], control)
    if let saved { store.note(saved, in: &model.revision) }
    return saved
  }

  /// Returns the selected documents as models, such as those with a prefix of the ID. Throws `DecodingError` if
  /// one doesn't fit.
  public func all<Model: DocumentModel>(
    _ type: Model.Type = Model.self, _ documents: AllDocuments = AllDocuments()
  ) throws -> [Model] {
    try self.documents(documents).map { try Model($0) }
  }

  /// Returns the live leaf revisions of a conflicted document as models, the current one first. Empty if there is
  /// no conflict.
  ///
  /// Each model is based on its own revision. `resolveConflict(of:keeping:merged:)` resolves the conflict.
  public func conflicts<Model: DocumentModel>(_ type: Model.Type = Model.self, of id: String) throws
    -> [Model]
  {
    try conflicts(of: id).compactMap { try Model(id: id, $0) }
  }
}
