import Foundation
import Simulation
import SystemCalls

/// What is asked of the process that uses a machine: of the database, or of its files.
package enum MachineRequest: Codable, Equatable, Sendable {
  case operation(DatabaseOperation)
  case open
  case close
  /// The database is closed.
  case convert(engine: String)
  /// Another key for the open, encrypted database.
  case changeKey(Int)
  /// The closed database is replaced with a prebuilt one.
  case replace(source: String, engine: String)

  /// Whether it changes what a database shows.
  var writes: Bool {
    switch self {
    case .operation(let operation): operation.writes && operation != .compact
    case .replace: true
    case .open, .close, .convert, .changeKey: false
    }
  }

  /// Whether the database has to be open for it; nil if it changes that.
  var needsOpen: Bool? {
    switch self {
    case .operation, .changeKey: true
    case .convert, .replace: false
    case .open, .close: nil
    }
  }
}

/// A system call that is to fail.
package struct FailingCall: Codable, Equatable, Sendable {
  package var kind: CallKind
  /// So many calls of the kind come before it.
  package var after: Int
  package var error: Int32
  /// The first half of a write is written.
  package var isHalf = false
}

/// The kinds of calls of `FailingCalls.h`.
package enum CallKind: String, Codable, CaseIterable, Sendable {
  case open, read, write, size, sync, map, name, lock, close

  var number: Int32 {
    let number =
      switch self {
      case .open: CALL_OPEN
      case .read: CALL_READ
      case .write: CALL_WRITE
      case .size: CALL_SIZE
      case .sync: CALL_SYNC
      case .map: CALL_MAP
      case .name: CALL_NAME
      case .lock: CALL_LOCK
      case .close: CALL_CLOSE
      }
    return Int32(number.rawValue)
  }

  /// What the system may say.
  var errors: [Int32] {
    switch self {
    case .open: [EIO, ENOSPC, EMFILE, ENOMEM, EINTR]
    case .read: [EIO, EINTR, ENOMEM]
    case .write, .size: [EIO, ENOSPC, EINTR]
    case .sync: [EIO, ENOSPC, EINTR]
    case .map: [ENOMEM, EMFILE]
    case .name: [EIO, ENOSPC, ENOMEM]
    case .lock: [EINTR, EIO, ENOMEM]
    case .close: [EIO, EINTR]
    }
  }
}

/// A step of a script, which makes sense whatever steps before it are left out.
package enum MachineStep: Codable, Equatable, Sendable {
  /// Of these, a machine has those that one process can do.
  case step(Step)
  case changeKey(Int)
  /// The database is replaced with one of the prebuilt ones.
  case replace(Int)
  /// A call fails during the step.
  indirect case failing(FailingCall, MachineStep)
}
