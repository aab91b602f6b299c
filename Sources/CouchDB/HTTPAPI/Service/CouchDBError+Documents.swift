import Documents
import Logs
import Storage
import Touchstone
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
      case .invalidBody, .invalidIndex: CouchDBError(400, "bad_request", error.message)
      case .reservedProperty: CouchDBError(400, "doc_validation", error.message)
      case .missingBlob: CouchDBError(412, "missing_stub", error.message)
      case .rejected: CouchDBError(403, "forbidden", error.message)
      case .unknownIndexKind, .damaged, .unsupportedVersion, .batchFailed, .writeInScan,
        .snapshotEnded:
        CouchDBError(500, "internal_server_error", "\(error)")
      }
  }

  /// The error of something that failed here. Clients don't get to see where the files are.
  init(failure error: any Error) {
    let message =
      (error as? StorageError)?.message ?? (error as? DatabaseError)?.message ?? LogText.of(error)
    switch (error as? any TouchstoneError)?.kind {
    // Such as a database that another process has open, or that is being converted.
    case .busy: self.init(503, "service_unavailable", message)
    case .diskFull: self.init(507, "insufficient_storage", "the disk is full: " + message)
    default: self.init(500, "internal_server_error", message)
    }
  }
}
