import Bytes
import Storage

/// The open connections, by descriptor.
final class ConnectionTable: Sendable {
  private struct State {
    var connections: [Int32: ServerConnection] = [:]
    var counts: [ByteString: Int] = [:]
    var whenEmpty: [@Sendable () -> Void] = []

    mutating func remove(_ connection: ServerConnection) {
      connections[connection.descriptor] = nil
      let count = counts[connection.peer.network, default: 0] - 1
      counts[connection.peer.network] = count > 0 ? count : nil
    }
  }

  private let state = Lock(State())

  /// Adds a connection, unless there are too many.
  func add(_ connection: ServerConnection, maximum: Int, perNetwork: Int) -> Bool {
    state.withLock { state in
      // A connection that the library gave up before it began isn't reported. Its descriptor is used again.
      if let old = state.connections[connection.descriptor] { state.remove(old) }
      guard state.connections.count < maximum,
        state.counts[connection.peer.network, default: 0] < perNetwork
      else { return false }
      state.connections[connection.descriptor] = connection
      state.counts[connection.peer.network, default: 0] += 1
      return true
    }
  }

  func remove(_ connection: ServerConnection) {
    let waiting = state.withLock { state -> [@Sendable () -> Void] in
      guard state.connections[connection.descriptor] === connection else { return [] }
      state.remove(connection)
      guard state.connections.isEmpty else { return [] }
      defer { state.whenEmpty = [] }
      return state.whenEmpty
    }
    for call in waiting { call() }
  }

  func connection(_ descriptor: Int32) -> ServerConnection? { state.withLock { $0.connections[descriptor] } }

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
