import Glibc
import Storage

/// The lock of the processes that have a database open: an advisory lock of the server, which the session of a connection holds. The
/// server gives it up when the session ends, and so with the process. Servers without settings of PostgreSQL have none, and then
/// everybody gets it.
///
/// After a lost connection the lock is taken again with the next call.
final class SessionLock: Sendable {
  private let settings: PostgresSettings
  private let key: Int64
  private let state = Lock(State())

  private struct State {
    var connection: Connection?
    var isShared = false
    var isAlone = false
    var isClosed = false
  }

  /// - Parameter purpose: what is locked, a word.
  init(_ settings: PostgresSettings, for purpose: String) {
    self.settings = settings
    key = Self.key(of: settings.location.schema, for: purpose)
  }

  /// A number of the schema's name: FNV-1a of 64 bits. Other programs may use advisory locks too.
  static func key(of schema: String, for purpose: String) -> Int64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in Array("touchstone \(purpose) ".utf8) + Array(schema.utf8) {
      hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    return Int64(bitPattern: hash)
  }

  func share(seconds: Double) throws -> Bool {
    try state.withLock { state in
      let connection = try connected(&state)
      guard !state.isShared else { return true }
      state.isShared = try take("pg_try_advisory_lock_shared", connection, seconds: seconds) { false }
      return state.isShared
    }
  }

  func takeAlone(seconds: Double, unless isDone: () throws -> Bool) throws -> Bool {
    try state.withLock { state in
      let connection = try connected(&state)
      guard !state.isAlone else { return true }
      state.isAlone = try take("pg_try_advisory_lock", connection, seconds: seconds, isDone)
      return state.isAlone
    }
  }

  /// Whether the connection that took the lock alone is still there.
  func isStillAlone() throws -> Bool {
    try state.withLock { state in
      _ = try connected(&state)
      return state.isAlone
    }
  }

  func giveUpAlone() {
    state.withLock { state in
      guard state.isAlone else { return }
      state.isAlone = false
      guard let connection = state.connection, connection.hasSettings else { return }
      do { _ = try connection.exchange([.text("SELECT pg_advisory_unlock(\(key))")]) } catch {
        // Its end gives up the lock.
        connection.close()
      }
    }
  }

  func close() {
    state.withLock { state in
      // The session would end a moment after this call has returned.
      if let connection = state.connection, connection.hasSettings, !connection.isClosed,
        state.isShared || state.isAlone
      {
        _ = try? connection.exchange([.text("SELECT pg_advisory_unlock_all()")])
      }
      state.connection?.close()
      state = State(isClosed: true)
    }
  }

  /// The connection that holds the lock. A lost one is replaced, and takes the shared lock again if nobody has taken it alone.
  private func connected(_ state: inout State) throws -> Connection {
    if state.isClosed {
      throw StorageError(.closed, "the database is closed", path: settings.location.shown)
    }
    if let connection = state.connection, !connection.isClosed {
      do {
        _ = try connection.exchange([.text("SELECT 1")])
        return connection
      } catch let error as PostgresError where error.isPassing { connection.close() }
    }
    let connection = try PostgresEngine.connect(settings)
    state.connection = connection
    state.isAlone = false
    if state.isShared {
      state.isShared = try take("pg_try_advisory_lock_shared", connection, seconds: 0) { false }
    }
    return connection
  }

  private func take(
    _ function: String, _ connection: Connection, seconds: Double, _ isDone: () throws -> Bool
  ) throws -> Bool {
    guard connection.hasSettings else { return true }
    var waited = 0.0
    while true {
      let answer = try connection.exchange([.text("SELECT \(function)(\(key))::integer")])[0]
      if answer.integer(0, 0) == 1 { return true }
      guard try waited < seconds && !isDone() else { return false }
      usleep(20_000)
      waited += 0.02
    }
  }
}
