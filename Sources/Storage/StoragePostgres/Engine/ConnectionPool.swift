import Glibc
import Storage

/// The connections of an engine that aren't used at the moment, and what opens others.
final class ConnectionPool: Sendable {
  let settings: PostgresSettings
  private let preparesStatements: Bool
  private let idle = Lock<[Connection]>([])

  /// - Parameter preparesStatements: whether the tables are there.
  init(_ settings: PostgresSettings, preparesStatements: Bool = true) {
    self.settings = settings
    self.preparesStatements = preparesStatements
  }

  /// Runs `body` with a connection, which `body` keeps or gives back. When a connection turns out to be lost, `body` runs again
  /// with another one, until the server has been away for too long. So `body` must do nothing that can't be done twice.
  func withConnection<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    let deadline = Deadline(seconds: settings.reconnectSeconds)
    var pause: UInt32 = 5_000
    while true {
      // A connection that waited may have been lost meanwhile. That says nothing of the server.
      if let connection = idle.withLock({ $0.popLast() }) {
        do { return try body(connection) } catch let error as PostgresError where error.isPassing {
          connection.close()
          // The others are of the same server, and each could take the time that an answer may take.
          closeAll()
          continue
        }
      }
      do { return try body(try open()) } catch let error as PostgresError where error.isPassing {
        guard !deadline.isOver else { throw error }
      }
      usleep(pause)
      pause = min(500_000, pause * 2)
    }
  }

  /// Connects, and prepares the statements.
  func open() throws -> Connection {
    let connection = try Connection(settings)
    guard preparesStatements else { return connection }
    do { try connection.prepare() } catch {
      connection.close()
      throw error
    }
    return connection
  }

  /// Keeps a connection for the next use, or closes it.
  func giveBack(_ connection: Connection) {
    guard !connection.isClosed else { return }
    let isKept = idle.withLock { idle in
      guard idle.count < PostgresSettings.idleConnections else { return false }
      idle.append(connection)
      return true
    }
    if !isKept { connection.close() }
  }

  /// Closes the connections that aren't used.
  func closeAll() {
    let connections = idle.withLock { idle in
      defer { idle = [] }
      return idle
    }
    for connection in connections { connection.close() }
  }
}
