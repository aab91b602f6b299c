// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Storage
import Touchstone
import TouchstoneServer
import TouchstoneSync

/// The threads of replicators and listeners. All share some, which no forked child has, and which can't be started again there.
private enum SyncThreads {
  /// The number of forks before this process began to use them.
  private static let forks = ForkCount.register()

  /// Throws in a child of a process that has used them.
  static func check() throws {
    guard forks == ForkCount.now else {
      throw Misuse(
        "this process was forked from one that had used replicators or listeners, so it can't run any; start it anew",
        .unsupported)
    }
  }
}

/// A replicator that C has.
final class ReplicatorHandle: Sendable {
  let replicator: Replicator
  init(_ replicator: Replicator) { self.replicator = replicator }
  deinit { replicator.stop() }

  /// Waits until it has stopped. Returns false if the time is over first.
  func wait(seconds: Double) -> Bool {
    let stopped = CountingSemaphore()
    let token = replicator.observeStatus { status in
      if status.activity == .stopped { stopped.signal() }
    }
    defer { token.cancel() }
    let limit = ContinuousClock.now + .seconds(min(max(seconds, 0), 1e9))
    // A status that comes before the observer does isn't reported, and one of an earlier run may be.
    while replicator.status.activity != .stopped {
      if seconds < 0 {
        stopped.wait()
      } else {
        let left = (limit - .now) / .seconds(1)
        guard left > 0, stopped.wait(seconds: left) else { return replicator.status.activity == .stopped }
      }
    }
    return true
  }

  var status: JSONValue {
    let bytes = replicator.transferredBytes
    return replicator.status.json.with(sent: bytes.sent, received: bytes.received)
  }
}

extension JSONValue {
  fileprivate func with(sent: UInt64, received: UInt64) -> JSONValue {
    guard case .object(var members) = self else { return self }
    members["sent"] = JSONValue(sent)
    members["received"] = JSONValue(received)
    return .object(members)
  }
}

extension ReplicationError {
  fileprivate var json: JSONValue {
    .object(["domain": .string(domain.rawValue), "code": JSONValue(code), "message": .string(message)])
  }
}

extension ReplicatorStatus {
  fileprivate var json: JSONValue {
    .object([
      "activity": .string("\(activity)"), "completed": JSONValue(progress.completed),
      "total": JSONValue(progress.total), "error": error?.json ?? .null,
    ])
  }
}

extension ReplicatedDocument {
  fileprivate var json: JSONValue {
    .object([
      "id": .string(id), "revision": .string(revisionID), "deleted": .bool(isDeleted), "push": .bool(isPush),
      "conflict": .bool(hadConflict), "error": error?.json ?? .null,
    ])
  }
}

extension ReplicatorConfiguration {
  /// Sets what options say.
  fileprivate mutating func read(_ options: inout Options) throws {
    direction =
      try options.choice("direction", Direction.allCases.map { ("\($0)", $0) }) ?? .pushAndPull
    isContinuous = try options.bool("continuous") ?? false
    documentIDs = try options.strings("documentIDs")
    channels = try options.strings("channels")
    filter = try options.string("filter")
    if let parameters = try options.object("filterParameters") {
      filterParameters = Dictionary(parameters.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }
    pushesConflicts = try options.bool("keepConflicts") ?? false
    resetsCheckpoint = try options.bool("reset") ?? false
    maximumRetries = try options.int("maximumRetries")
    let (user, password) = (try options.string("user"), try options.string("password"))
    if let user { connection.authenticator = .basic(name: user, password: password ?? "") }
    if let token = try options.string("token") { connection.authenticator = .bearer(token: token) }
    for (name, value) in try options.object("headers") ?? [:] {
      guard let text = value.string else { throw Misuse("the header \(name) isn't text", .badRequest) }
      connection.headers.append((name, text))
    }
    if let path = try options.string("pinnedCertificate") {
      connection.serverTrust = .pinned(try AtomicFile.read(path, limit: 1 << 20))
    } else if try options.bool("acceptSelfSigned") ?? false {
      connection.serverTrust = .selfSigned
    }
    connection.createsDatabase = try options.bool("createTarget") ?? false
    if let seconds = try options.double("heartbeat") { connection.heartbeat = seconds }
    try options.end()
  }
}

@c @implementation
public func touchstone_replicator_new(
  _ database: OpaquePointer?, _ target: OpaquePointer?, _ options: UnsafePointer<CChar>?,
  _ options_length: Int,
  _ replicator: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(replicator)
    let database = try Handles.content(database, DatabaseHandle.self).database
    var options = try Options(options, options_length)
    let url = try options.string("url")
    guard (url == nil) != (target == nil) else {
      throw Misuse("a replicator needs the option url or a target, and not both", .badRequest)
    }
    let other =
      try url.map { try ReplicatorTarget.url($0) }
      ?? .database(Handles.content(target, DatabaseHandle.self).database)
    var configuration = ReplicatorConfiguration(database, other)
    try configuration.read(&options)
    hand(ReplicatorHandle(Replicator(configuration)), to: replicator)
  }
}

@c @implementation
public func touchstone_replicator_start(_ replicator: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) {
    let handle = try Handles.content(replicator, ReplicatorHandle.self)
    try SyncThreads.check()
    handle.replicator.start()
  }
}

@c @implementation
public func touchstone_replicator_stop(_ replicator: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(replicator, ReplicatorHandle.self).replicator.stop() }
}

@c @implementation
public func touchstone_replicator_wait(
  _ replicator: OpaquePointer?, _ seconds: Double, _ error: ErrorPlace?
) -> Int32 {
  Int32(
    truncatingIfNeeded: number(error) {
      try Handles.content(replicator, ReplicatorHandle.self).wait(seconds: seconds) ? 1 : 0
    })
}

@c @implementation
public func touchstone_replicator_status(
  _ replicator: OpaquePointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try hand(try Handles.content(replicator, ReplicatorHandle.self).status, to: json, length)
  }
}

@c @implementation
public func touchstone_replicator_observe(
  _ replicator: OpaquePointer?,
  _ callback: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int) -> Void)?,
  _ context: UnsafeMutableRawPointer?, _ observer: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(observer)
    let handle = try Handles.content(replicator, ReplicatorHandle.self)
    guard let callback else { throw Misuse("the callback is NULL", .badRequest) }
    let gate = CallbackGate(context)
    let replicator = handle.replicator
    let statuses = replicator.observeStatus { [weak replicator] status in
      let bytes = replicator?.transferredBytes ?? (sent: 0, received: 0)
      gate.call(callback, status.json.with(sent: bytes.sent, received: bytes.received))
    }
    let documents = replicator.observeDocuments { documents in
      gate.call(callback, .object(["documents": .array(documents.map(\.json))]))
    }
    hand(
      ObserverHandle(gate) {
        statuses.cancel()
        documents.cancel()
      }, to: observer)
  }
}

@c @implementation
public func touchstone_replicator_free(_ replicator: OpaquePointer?) { Handles.free(replicator) }

// MARK: Listening

/// A listener that C has.
final class ListenerHandle: Sendable {
  private struct State {
    var configuration: SyncListenerConfiguration
    var listener: SyncListener?
  }
  private let state: Lock<State>

  init(_ configuration: SyncListenerConfiguration) { state = Lock(State(configuration: configuration)) }

  deinit { stop() }

  func add(_ name: String, _ database: Database) {
    state.withLock { $0.configuration.databases[name] = database }
  }

  func start() throws {
    try state.withLock { state in
      guard state.listener == nil else { throw Misuse("the listener runs already", .badRequest) }
      let listener = SyncListener(state.configuration)
      try listener.start()
      state.listener = listener
    }
  }

  func stop() {
    let listener = state.withLock { $0.listener.take() }
    listener?.stop()
  }

  var description: JSONValue {
    guard let listener = state.withLock({ $0.listener }) else { return .null }
    return .object([
      "port": listener.port.map { JSONValue($0) } ?? .null, "url": listener.url.map { .string($0) } ?? .null,
      "httpURL": listener.httpURL.map { .string($0) } ?? .null,
      "urls": .array(listener.urls.map { .string($0) }),
      "fingerprint": listener.certificateFingerprint.map { .string($0) } ?? .null,
    ])
  }
}

extension SyncListenerConfiguration {
  /// Sets what options say.
  fileprivate mutating func read(_ options: inout Options) throws {
    if let address = try options.string("address") { self.address = address }
    port = try options.int("port") ?? 0
    servesHTTP = try options.bool("http") ?? false
    isReadOnly = try options.bool("readOnly") ?? false
    refusesConflicts = try options.bool("refuseConflicts") ?? false
    allowsAnyoneFromOutside = try options.bool("openToAll") ?? false
    if let users = try options.object("users") {
      let passwords = try Dictionary(
        users.map { name, value in
          guard let password = value.string else {
            throw Misuse("the password of \(name) isn't text", .badRequest)
          }
          return (ByteString(name), ByteString(password))
        }, uniquingKeysWith: { $1 })
      authenticator = .basic { name, password in
        passwords[ByteString(name)].map { Self.areSame($0, ByteString(password)) } ?? false
      }
    }
    if let path = try options.string("userFile") { authenticator = .userFile(path) }
    let (certificate, key) = (try options.string("certificate"), try options.string("key"))
    if let certificate, let key { tls = .files(certificate: certificate, key: key) }
    guard (certificate == nil) == (key == nil) else {
      throw Misuse("the options certificate and key belong together", .badRequest)
    }
    if let directory = try options.string("selfSigned") { tls = .selfSigned(directory: directory) }
    try options.end()
  }

  /// Compares in a time that doesn't tell how many bytes agree.
  private static func areSame(_ left: ByteString, _ right: ByteString) -> Bool {
    guard left.bytes.count == right.bytes.count else { return false }
    return zip(left.bytes, right.bytes).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

@c @implementation
public func touchstone_listener_new(
  _ options: UnsafePointer<CChar>?, _ options_length: Int, _ listener: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    try check(listener)
    var options = try Options(options, options_length)
    var configuration = SyncListenerConfiguration()
    try configuration.read(&options)
    hand(ListenerHandle(configuration), to: listener)
  }
}

@c @implementation
public func touchstone_listener_add(
  _ listener: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ name_length: Int, _ database: OpaquePointer?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(listener, ListenerHandle.self)
    let name = try string(name, name_length, "the name of the database")
    handle.add(name, try Handles.content(database, DatabaseHandle.self).database)
  }
}

@c @implementation
public func touchstone_listener_start(_ listener: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) {
    let handle = try Handles.content(listener, ListenerHandle.self)
    try SyncThreads.check()
    try handle.start()
  }
}

@c @implementation
public func touchstone_listener_stop(_ listener: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(listener, ListenerHandle.self).stop() }
}

@c @implementation
public func touchstone_listener_describe(
  _ listener: OpaquePointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) { try hand(try Handles.content(listener, ListenerHandle.self).description, to: json, length) }
}

@c @implementation
public func touchstone_listener_free(_ listener: OpaquePointer?) { Handles.free(listener) }
