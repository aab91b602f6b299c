import Fleece
import Storage

extension DocumentSnapshot {
  /// Calls `body` with a row for each selected document, in order, until it returns false.
  ///
  /// With `AllDocuments.keys` there is a row for each key, also for an unknown, a deleted and an invalid one.
  /// `skip` and `limit` count rows. A document that can't be read has a row with its error.
  public func enumerateRows(
    _ documents: AllDocuments = AllDocuments(), _ body: (AllDocumentsRow) throws -> Bool
  ) throws {
    guard documents.limit > 0 else { return }
    let (transaction, context) = try open()
    let sharedKeys = try sharedKeys
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    var left = documents.limit
    var skip = max(0, documents.skip)
    /// Whether the next row is skipped.
    func skips() throws -> Bool {
      try cancellation?.check()
      guard skip > 0 else { return false }
      skip -= 1
      return true
    }
    func deliver(_ row: AllDocumentsRow) throws -> Bool {
      left -= 1
      return try body(row) && left > 0
    }
    if let keys = documents.keys {
      for key in documents.isDescending ? keys.reversed() : keys where try !skips() {
        var row = AllDocumentsRow(key: key)
        do {
          if let document = try store.document(key, includeDeleted: true, in: transaction, context) {
            try fill(&row, with: document, documents.mode, transaction, context)
          }
        } catch let error as DocumentError where error.concernsOneDocument {
          row.error = error
        }
        guard try deliver(row) else { return }
      }
      return
    }
    try walk(documents, transaction, context) { key, value in
      var row: AllDocumentsRow
      do {
        let view = try DocumentView(
          idBytes: key, record: value, sharedKeys: sharedKeys, blobs: store.blobSource)
        if documents.mode == .onlyConflicts, !view.isConflicted { return true }
        guard try !skips() else { return true }
        row = AllDocumentsRow(key: view.id)
        try fill(&row, with: view.document(), documents.mode, transaction, context)
      } catch let error as DocumentError where error.concernsOneDocument {
        row = AllDocumentsRow(key: String(copying: key))
        row.error = error
      }
      return try deliver(row)
    }
  }

  /// Returns the rows of the selected documents (`enumerateRows(_:_:)`).
  public func rows(_ documents: AllDocuments = AllDocuments()) throws -> [AllDocumentsRow] {
    var rows: [AllDocumentsRow] = []
    try enumerateRows(documents) { row in
      rows.append(row)
      return true
    }
    return rows
  }

  private func fill(
    _ row: inout AllDocumentsRow, with document: Document, _ mode: AllDocuments.Mode,
    _ transaction: any ReadTransaction, _ context: DocumentStore.Context
  ) throws {
    row.documentID = document.id
    row.revisionID = document.revisionID
    row.isDeleted = document.isDeleted
    switch mode {
    case .live: if !document.isDeleted { row.document = document }
    case .includingDeleted: row.document = document
    case .showConflicts, .onlyConflicts:
      if !document.isDeleted, mode == .showConflicts || document.isConflicted { row.document = document }
      if document.isConflicted {
        let history = try DocumentStore.History(document, store, transaction, context)
        row.conflictingRevisions = try history.leaves(includeDeleted: false)
      }
    }
  }
}

extension DocumentError {
  /// Whether the error says that one ID is invalid or one document is damaged.
  fileprivate var concernsOneDocument: Bool { code == .invalidDocumentID || code == .damaged }
}
