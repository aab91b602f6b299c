import Documents
import Views

extension CouchDBError {
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
