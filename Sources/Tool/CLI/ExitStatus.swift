import Datasets
import Query
import Touchstone
import TouchstoneServer
import TouchstoneSync
import Views

/// The exit status of the process.
enum ExitStatus: Int32 {
  case done = 0
  /// The answer is no: a missing document, a conflict, a check that found faults.
  case no = 1
  /// Wrong usage or bad input.
  case usage = 2
  /// The database couldn't be opened, failed, or is damaged.
  case database = 3
  /// A gate couldn't see: nothing was judged, or samples vary too much.
  case inconclusive = 4
  /// Ctrl-C, by the convention of shells.
  case interrupted = 130

  /// The exit status for an error.
  init(_ error: any Error) {
    switch error {
    case is Refusal: self = .no
    case is Inconclusive: self = .inconclusive
    case is Interrupted: self = .interrupted
    case let error as ScriptFailure: self = error.status
    case let error as SeveralFailed: self = error.status
    case is UsageError, is DatasetError: self = .usage
    case let error as QueryError: self = error.code == .cancelled ? .interrupted : .usage
    case let error as CouchDBError: self = Self.of(error)
    case let error as ViewError:
      switch error.code {
      case .notFound: self = .no
      case .invalidArgument, .invalidDesign, .invalidEmission, .tooManyRows, .tooManyViews, .reduceFailed,
        .scriptFailed, .filterFailed, .validationFailed:
        self = .usage
      default: self = .database
      }
    case let error as EncryptionError: self = error.code == .invalidKey ? .usage : .database
    case let error as ReplicationError:
      // The other side can't be reached, or refuses.
      self =
        error.domain == .network && error.code == ReplicationError.NetworkCode.invalidURL.rawValue
        ? .usage : .database
    case let error as SyncListenerError:
      self = [.badRequest, .forbidden].contains(error.kind) ? .usage : .database
    case let error as DocumentError:
      switch error.code {
      case .conflict, .notFound: self = .no
      case .damaged, .unsupportedVersion, .batchFailed: self = .database
      default: self = .usage
      }
    case let error as CBLite2Error:
      self = [.alreadyExists, .noSuchCollection].contains(error.code) ? .usage : .database
    case let error as UpgradeError:
      switch error.code {
      case .refused, .differs: self = .no
      case .notFound, .damaged, .truncated, .inUse, .changed, .keyRequired, .wrongKey: self = .database
      default: self = .usage
      }
    case let error as DatabaseError:
      switch error.code {
      case .alreadyExists, .invalidName, .invalidLocation, .noParentDirectory, .unknownEngine, .notEncrypted,
        .alreadyEncrypted:
        self = .usage
      default: self = .database
      }
    default: self = .database
    }
  }
}

extension ExitStatus {
  /// Functions of design documents that fail are input, and not the database.
  private static func of(_ error: CouchDBError) -> ExitStatus {
    if error.status == 404 { return .no }
    let ofFunctions = [
      "os_process_error", "compilation_error", "unknown_query_language", "insufficient_storage",
    ]
    return error.status < 500 || ofFunctions.contains(error.error) ? .usage : .database
  }
}

/// A negative answer and its reason.
struct Refusal: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A gate that couldn't see, and why.
struct Inconclusive: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Ctrl-C was pressed. The description says what had been done by then.
struct Interrupted: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = "stopped: " + description }
}
