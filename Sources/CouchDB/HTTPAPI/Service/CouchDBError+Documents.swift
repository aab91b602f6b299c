import Documents
import Views

extension CouchDBError {
  /// The error of a revision that was made elsewhere and can't be stored here. CouchDB would store it, so there is no error of its own
  /// for that. Replicators go on behind `forbidden`, and end at others.
  init(unstorable error: DocumentError) {
    self =
      switch error.code {
      case .invalidDocumentID, .invalidRevisionID, .invalidHistory, .invalidBody, .missingBlob:
        CouchDBError(403, "forbidden", error.message)
      default: CouchDBError(error)
      }
  }

  /// An error of a document operation as CouchDB would answer it.
  init(_ error: DocumentError) {
    self =
      switch error.code {
      case .conflict: CouchDBError(409, "conflict", "Document update conflict.")
      case .notFound: CouchDBError(404, "not_found", "missing")
      case .invalidDocumentID: CouchDBError(400, "illegal_docid", error.message)
      case .invalidRevisionID, .invalidHistory: CouchDBError(400, "bad_request", "Invalid rev format")
      case .invalidBody: CouchDBError(400, "bad_request", error.message)
      case .reservedProperty: CouchDBError(400, "doc_validation", error.message)
      case .missingBlob: CouchDBError(412, "missing_stub", error.message)
      case .rejected: CouchDBError(403, "forbidden", error.message)
      case .invalidIndex, .unknownIndexKind, .damaged, .unsupportedVersion, .batchFailed, .writeInScan,
        .snapshotEnded:
        CouchDBError(500, "internal_server_error", "\(error)")
      }
  }
}
