import CBLite2
import Documents
import Encryption
import Fleece
import Query
import Storage
import Scripts
import Upgrade
import Views

/// What all errors of this library tell, whichever part they come from.
///
/// ```swift
/// do { try notes.save(&note, onConflict: .fail) } catch let error as any TouchstoneError {
///   if error.kind == .conflict { merge(note) } else { show(error.description) }
/// }
/// ```
///
/// Each type has a finer `code` besides. Errors of Swift itself pass through unchanged: `CancellationError`,
/// `DecodingError`, `EncodingError`, and what a closure of the caller throws.
public protocol TouchstoneError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure.
  var kind: ErrorKind { get }
  /// Whether the same call may succeed later although the caller changes nothing: another writer, reader or
  /// process was in the way.
  var canRetry: Bool { get }
  /// What the error is about, if that is known.
  var subject: ErrorSubject? { get }
}

extension TouchstoneError {
  /// True for `busy` and `timeout`.
  public var canRetry: Bool { kind == .busy || kind == .timeout }
}

/// The kinds of failures that a caller treats alike. Their names and numbers are those of HTTP and of Couchbase
/// Lite 1.x, where there is one.
public enum ErrorKind: Int, Sendable, CaseIterable {
  /// An argument, a body, a name or a query is wrong. The same call fails again.
  case badRequest = 400
  /// The key is wrong, or a key is needed.
  case unauthorized = 401
  /// The operation isn't allowed: the database is open for reading only, the system denies access, or a
  /// validation function rejects the revision.
  case forbidden = 403
  /// There is no such database, document, revision, blob or index.
  case notFound = 404
  /// The operation took longer than its time limit.
  case timeout = 408
  /// The document was changed by another writer.
  case conflict = 409
  /// A file or database with this name exists already.
  case duplicate = 412
  /// A value, a result or a transaction exceeds a limit.
  case tooLarge = 413
  /// The operation was cancelled.
  case cancelled = 499
  /// Stored data can't be read.
  case corrupt = 500
  /// This release, this engine or this database can't do it.
  case unsupported = 501
  /// Another writer, reader or process is in the way.
  case busy = 503
  /// The disk is full, or the file has reached its maximum size.
  case diskFull = 507
  /// The operating system or a library failed.
  case ioError = 590
  /// The database, the transaction or the snapshot is closed, or a call was made where it can't be: a mistake
  /// in the program.
  case misuse = 591

  /// The number that an HTTP server answers for this kind, from 400 to 599.
  public var httpStatus: Int {
    switch self {
    case .cancelled: 408
    case .ioError, .misuse: 500
    default: rawValue
    }
  }
}

/// What an error is about.
public enum ErrorSubject: Sendable, Hashable {
  /// The path of a file or directory.
  case path(String)
  /// The ID of a document.
  case document(String)
  /// A place in the text of a query.
  case place(QueryLocation)
  /// A place in JSON, Fleece or a property path: the offset of a byte, from 0.
  case offset(Int)
}

extension DatabaseError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .invalidName, .invalidLocation, .noParentDirectory, .unknownEngine, .notEncrypted, .alreadyEncrypted,
      .otherOptions,
      .invalidSource:
      .badRequest
    case .wrongKey, .keyRequired: .unauthorized
    case .readOnly: .forbidden
    case .notFound: .notFound
    case .alreadyExists: .duplicate
    case .notADatabase, .damaged: .corrupt
    case .unsupportedVersion, .incompleteSource: .unsupported
    case .inUse: .busy
    case .closed: .misuse
    }
  }
  /// The path.
  public var subject: ErrorSubject? { path.map { .path($0) } }
}

extension DatabaseFolder.CloseError: TouchstoneError {
  /// The kind of the first failure.
  public var kind: ErrorKind { (failures.first?.error as? any TouchstoneError)?.kind ?? .ioError }
  /// The path of the first database, if its failure names it.
  public var subject: ErrorSubject? { (failures.first?.error as? any TouchstoneError)?.subject }
}

extension DocumentError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .invalidDocumentID, .invalidRevisionID, .invalidHistory, .invalidBody, .reservedProperty,
      .invalidIndex:
      .badRequest
    case .notFound, .missingBlob: .notFound
    case .conflict: .conflict
    case .damaged: .corrupt
    case .unsupportedVersion, .unknownIndexKind: .unsupported
    case .rejected: .forbidden
    case .batchFailed, .writeInScan, .snapshotEnded: .misuse
    }
  }
  /// The document.
  public var subject: ErrorSubject? { documentID.map { .document($0) } }
}

extension StorageError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .notEncrypted, .invalidKey, .outOfOrder, .invalidArgument, .shapeMismatch: .badRequest
    case .wrongKey, .keyRequired: .unauthorized
    case .readOnly, .permissionDenied: .forbidden
    case .notFound, .noSuchKeyspace: .notFound
    case .alreadyExists: .duplicate
    case .transactionTooLarge, .valueTooLarge, .tooManyKeyspaces: .tooLarge
    case .notADatabase, .damaged: .corrupt
    case .unsupportedVersion, .unsupported: .unsupported
    case .tooManyReaders, .inUse, .busy, .conflict, .snapshotExpired: .busy
    case .diskFull, .mapFull: .diskFull
    case .ioError, .engineFailure: .ioError
    case .nestedWrite, .bytesAreLent, .notOnEntry, .closed: .misuse
    }
  }
  /// The path.
  public var subject: ErrorSubject? { path.map { .path($0) } }
}

extension QueryError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .syntax, .tooDeep, .tooLarge, .unknownFunction, .argumentCount, .unknownName, .duplicateName,
      .invalidUse,
      .unsetParameter, .index, .collation, .evaluation:
      .badRequest
    case .unsupported: .unsupported
    case .cancelled: .cancelled
    case .timedOut: .timeout
    case .memoryLimit, .diskLimit, .rowLimit: .tooLarge
    case .memoryBusy: .busy
    case .snapshotEnded: .misuse
    }
  }
  /// The place in the query.
  public var subject: ErrorSubject? { location.map { .place($0) } }
}

extension ViewError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .invalidArgument, .invalidDesign, .invalidEmission, .reduceFailed, .scriptFailed, .filterFailed,
      .validationFailed:
      .badRequest
    case .notFound: .notFound
    case .tooManyRows, .tooManyViews: .tooLarge
    case .damaged: .corrupt
    case .unsupportedVersion: .unsupported
    case .busy: .busy
    }
  }
  /// The document.
  public var subject: ErrorSubject? { documentID.map { .document($0) } }
}

extension ValidationRefusal: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind { code == .forbidden ? .forbidden : .unauthorized }
  /// The document.
  public var subject: ErrorSubject? { .document(documentID) }
}

extension ViewReduceError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .notANumber, .invalidValue, .failed, .doesNotShrink, .overflow: .badRequest
    case .tooLarge: .tooLarge
    case .damaged: .corrupt
    }
  }
  /// The document.
  public var subject: ErrorSubject? { documentID.map { .document($0) } }
}

extension ScriptError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .compilation, .invalidDefinition, .exception: .badRequest
    case .missing: .notFound
    case .stopped: .timeout
    case .unknownLanguage: .unsupported
    case .unavailable: .ioError
    }
  }
  /// The document.
  public var subject: ErrorSubject? { documentID.map { .document($0) } }
}

extension EncryptionError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .wrongKey: .unauthorized
    case .invalidKey: .badRequest
    case .damaged: .corrupt
    case .unsupportedVersion: .unsupported
    case .libraryFailure: .ioError
    }
  }
  /// The path.
  public var subject: ErrorSubject? { path.map { .path($0) } }
}

extension FleeceError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch self {
    case .invalidJSON, .notFinite, .invalidPath: .badRequest
    case .tooDeep, .tooLarge: .tooLarge
    case .invalidFleece, .unknownSharedKey, .invalidSharedKeys: .corrupt
    case .outOfMemory: .ioError
    }
  }
  /// The place in the text or the bytes.
  public var subject: ErrorSubject? {
    switch self {
    case .invalidJSON(_, let offset): offset.map { .offset($0) }
    case .invalidFleece(_, let offset), .invalidPath(_, _, let offset): .offset(offset)
    case .tooDeep, .notFinite, .tooLarge, .unknownSharedKey, .invalidSharedKeys, .outOfMemory: nil
    }
  }
}

extension UpgradeError: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .notFound: .notFound
    case .keyRequired, .wrongKey: .unauthorized
    case .notOld, .notEncrypted, .refused: .badRequest
    case .laterVersion, .unknownCipher, .forestDB: .unsupported
    case .foreign, .truncated, .damaged, .differs: .corrupt
    case .inUse, .changed: .busy
    }
  }
  /// The path.
  public var subject: ErrorSubject? { .path(path) }
}

extension CBLite2Error: TouchstoneError {
  /// The kind of failure.
  public var kind: ErrorKind {
    switch code {
    case .notFound, .noSuchCollection: .notFound
    case .notADatabase, .damaged: .corrupt
    case .encrypted, .olderVersion, .newerVersion: .unsupported
    case .inUse: .busy
    case .alreadyExists: .duplicate
    case .ioError: .ioError
    }
  }
  /// The path.
  public var subject: ErrorSubject? { .path(path) }
}
