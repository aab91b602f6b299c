import Bytes
import System

/// The open connections, and which of them the library serves through which descriptor.
final class ConnectionTable: Sendable {
  private struct State {
    var connections: [ObjectIdentifier: ServerConnection] = [:]
    var served: [Int32: ServerConnection] = [:]
    var counts: [ByteString: Int] = [:]
    var whenEmpty: [@Sendable () -> Void] = []

    mutating func remove(_ connection: ServerConnection) {
      guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
      stopServing(connection)
      let count = counts[connection.peer.network, default: 0] - 1
      counts[connection.peer.network] = count > 0 ? count : nil
    }

    mutating func stopServing(_ connection: ServerConnection) {
      let descriptor = connection.served
      if served[descriptor] === connection { served[descriptor] = nil }
    }

    /// A connection that the library gave up before it began isn't reported. Its descriptor is used again.
    mutating func forgetOld(_ descriptor: Int32) {
      if let old = served[descriptor] { remove(old) }
    }
  }

  private let state = Lock(State())

  /// Adds a connection, unless there are too many. `descriptor` is new: whatever had it before is gone.
  func add(_ connection: ServerConnection, socket descriptor: Int32, maximum: Int, perNetwork: Int) -> Bool {
    state.withLock { state in
      state.forgetOld(descriptor)
      guard state.connections.count < maximum,
        state.counts[connection.peer.network, default: 0] < perNetwork
      else { return false }
      state.connections[ObjectIdentifier(connection)] = connection
      state.counts[connection.peer.network, default: 0] += 1
      return true
    }
  }

  /// Lets the library's callbacks find a connection by the descriptor that it is about to get.
  func serve(_ connection: ServerConnection) {
    state.withLock { state in
      state.forgetOld(connection.served)
      state.served[connection.served] = connection
    }
  }

  /// The library doesn't have the descriptor any more. The connection stays.
  func stopServing(_ connection: ServerConnection) { state.withLock { $0.stopServing(connection) } }

  func remove(_ connection: ServerConnection) {
    let waiting = state.withLock { state -> [@Sendable () -> Void] in
      state.remove(connection)
      guard state.connections.isEmpty else { return [] }
      defer { state.whenEmpty = [] }
      return state.whenEmpty
    }
    for call in waiting { call() }
  }

  /// The connection that the library serves through a descriptor.
  func connection(_ descriptor: Int32) -> ServerConnection? { state.withLock { $0.served[descriptor] } }

  var all: [ServerConnection] { state.withLock { Array($0.connections.values) } }
  var count: Int { state.withLock { $0.connections.count } }

  /// Waits until there is no connection, at most that long. Returns whether there is none.
  func waitUntilEmpty(seconds: Double) -> Bool {
    let semaphore = CountingSemaphore()
    let isEmpty = state.withLock { state in
      if state.connections.isEmpty { return true }
      state.whenEmpty.append { semaphore.signal() }
      return false
    }
    return isEmpty || semaphore.wait(seconds: max(0, seconds))
  }
}
