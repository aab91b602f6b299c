import BLIP
import Replication
import Storage
import Touchstone

/// Lets peers replicate with a database over transports of the app's own.
///
/// ```swift
/// let listener = MessageEndpointListener(database, .messageStream)
/// listener.accept(connection)          // for each peer that has connected
/// ```
public final class MessageEndpointListener: Sendable {
  /// The database.
  public let database: Database
  /// How the transport carries what it is given.
  public let protocolType: MessageProtocol
  private let connections = Lock<[ObjectIdentifier: BLIPConnection]>([:])

  /// Creates a listener. `protocolType` must be that of the active side.
  public init(_ database: Database, _ protocolType: MessageProtocol) {
    self.database = database
    self.protocolType = protocolType
  }

  /// The number of open connections.
  public var connectionCount: Int { connections.withLock { $0.count } }

  /// Answers a peer that has connected. The library opens the connection and keeps it until it ends. A connection is
  /// accepted once.
  public func accept(_ connection: any MessageEndpointConnection) {
    let key = ObjectIdentifier(connection)
    let transport = EndpointTransport(connection, protocolType, isActive: false)
    let blip = BLIPConnection(transport, name: database.path, memory: .shared)
    let isNew = connections.withLock { connections in
      guard connections[key] == nil else { return false }
      connections[key] = blip
      return true
    }
    guard isNew else { return }
    // The closure keeps the app's connection, so that its identity isn't given to another object before the end.
    blip.onClose { [weak self] _ in
      self?.connections.withLock { _ = $0.removeValue(forKey: key) }
      withExtendedLifetime(connection) {}
    }
    transport.open { [database] error in
      if let error { blip.close(error) } else { BLIPResponder(blip, database).start() }
    }
  }

  /// Ends a connection that was accepted.
  public func close(_ connection: any MessageEndpointConnection) {
    connections.withLock { $0[ObjectIdentifier(connection)] }?.close(.webSocket(1001, "the listener closes"))
  }

  /// Ends all connections.
  public func closeAll() {
    for connection in connections.withLock({ Array($0.values) }) {
      connection.close(.webSocket(1001, "the listener closes"))
    }
  }
}
