// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// What an observer of C calls.
typealias TextCallback = @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int) -> Void

/// Calls back into C, one call at a time, until it is ended.
///
/// Who ends it waits for the call that runs, unless that call ends it itself.
final class CallbackGate: @unchecked Sendable {
  // The mutex is recursive, so that a callback can end its own observer.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var isEnded = false
  let context: UnsafeMutableRawPointer?

  init(_ context: UnsafeMutableRawPointer?) {
    self.context = context
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_RECURSIVE))
    let result = pthread_mutex_init(mutex, &attributes)
    precondition(result == 0, "pthread_mutex_init: \(result)")
    pthread_mutexattr_destroy(&attributes)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  func call(_ body: (UnsafeMutableRawPointer?) -> Void) {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if !isEnded { body(context) }
  }

  /// Calls with the JSON of a value.
  func call(_ callback: TextCallback, _ value: JSONValue) {
    // Such values have no numbers that JSON lacks.
    let json = Array((try? value.canonicalJSON()).map { $0.utf8CString } ?? [0])
    call { context in json.withUnsafeBufferPointer { callback(context, $0.baseAddress, json.count - 1) } }
  }

  func end() {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    isEnded = true
  }
}

/// An observer that C has. Freeing it ends its callbacks.
final class ObserverHandle: Sendable {
  private let gate: CallbackGate
  /// Tells what is observed that nobody listens any more.
  private let cancel: @Sendable () -> Void

  init(_ gate: CallbackGate, _ cancel: @escaping @Sendable () -> Void) {
    self.gate = gate
    self.cancel = cancel
  }

  deinit {
    cancel()
    gate.end()
  }
}

extension DatabaseChange {
  fileprivate var json: JSONValue {
    .object([
      "changes": .array(changes.map(\.json)), "missedSince": missedSince.map { JSONValue($0) } ?? .null,
    ])
  }
}

extension DocumentChange {
  fileprivate var json: JSONValue {
    .object([
      "kind": .string(kind.rawValue), "id": .string(documentID),
      "revision": revisionID.map { .string($0.description) } ?? .null, "sequence": JSONValue(sequence),
      "deleted": .bool(isDeleted), "conflicted": .bool(isConflicted), "fromSync": .bool(isFromSync),
    ])
  }
}

@c @implementation
public func touchstone_observe(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int,
  _ callback: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int) -> Void)?,
  _ context: UnsafeMutableRawPointer?, _ observer: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(observer)
    let database = try Handles.content(database, DatabaseHandle.self).database
    guard let callback else { throw Misuse("the callback is NULL", .badRequest) }
    let gate = CallbackGate(context)
    let token: ObservationToken
    if id == nil {
      token = try database.observe { gate.call(callback, $0.json) }
    } else {
      let id = try string(id, id_length, "the ID of the document")
      token = try database.observe(id) {
        gate.call(callback, .object(["changes": .array([$0.json]), "missedSince": .null]))
      }
    }
    hand(ObserverHandle(gate) { token.cancel() }, to: observer)
  }
}

@c @implementation
public func touchstone_observe_query(
  _ query: OpaquePointer?, _ parameters: UnsafePointer<CChar>?, _ parameters_length: Int,
  _ callback: (
    @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<touchstone_error>?) -> Void
  )?,
  _ context: UnsafeMutableRawPointer?, _ observer: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(observer)
    let handle = try Handles.content(query, QueryHandle.self)
    guard let callback else { throw Misuse("the callback is NULL", .badRequest) }
    let values = try TouchstoneC.parameters(parameters, parameters_length)
    let gate = CallbackGate(context)
    let live = try handle.database.database.observe(handle.query, parameters: values) { outcome in
      gate.call { context in
        switch outcome {
        case .success(let results): callback(context, Handles.make(RowsHandle(results)), nil)
        case .failure(let failure):
          let error = ErrorValue(failure).allocated()
          callback(context, nil, error)
          free(error)
        }
      }
    }
    hand(ObserverHandle(gate) { live.cancel() }, to: observer)
  }
}

@c @implementation
public func touchstone_notice_changes(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(database, DatabaseHandle.self).perform { try $0.noticeChanges() } }
}

@c @implementation
public func touchstone_observer_free(_ observer: OpaquePointer?) { Handles.free(observer) }
