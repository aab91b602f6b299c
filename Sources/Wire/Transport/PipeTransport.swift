import System

/// One end of a transport in memory. Its other end is in the same process.
///
/// Each direction holds about `capacity` bytes. A sender that has filled it waits until the receiver asks for more.
package final class PipeTransport: MessageTransport {
  private let pipe: Pipe
  /// The direction that this end sends to; it receives from the other.
  private let side: Int

  private init(_ pipe: Pipe, side: Int) {
    self.pipe = pipe
    self.side = side
  }

  /// Makes two ends that are connected.
  package static func pair(capacity: Int = 1 << 20) -> (PipeTransport, PipeTransport) {
    let pipe = Pipe(capacity: capacity)
    return (PipeTransport(pipe, side: 0), PipeTransport(pipe, side: 1))
  }

  package func receive(_ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void) {
    pipe.receive(1 - side, completion)
  }

  package func send(_ messages: [[UInt8]], _ completion: @escaping @Sendable (TransportClose?) -> Void) {
    pipe.send(messages, side, completion)
  }

  package func close(_ close: TransportClose) { pipe.close(close, side) }
}

/// Both directions of a pipe. No completion is called while the lock is held.
private final class Pipe: Sendable {
  private struct Direction {
    var messages: [[UInt8]] = []
    var bytes = 0
    var receiver: (@Sendable (Result<[[UInt8]], TransportClose>) -> Void)?
    var sender: (@Sendable (TransportClose?) -> Void)?
    /// Set when either end has closed. The receiver gets it after the messages.
    var close: TransportClose?

    mutating func takeMessages() -> [[UInt8]] {
      bytes = 0
      defer { messages = [] }
      return messages
    }
  }

  private let capacity: Int
  private let directions = Lock([Direction(), Direction()])

  init(capacity: Int) { self.capacity = max(1, capacity) }

  func receive(_ index: Int, _ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void) {
    typealias Waiting = (
      sender: (@Sendable (TransportClose?) -> Void)?, result: Result<[[UInt8]], TransportClose>
    )
    let ready = directions.withLock { directions -> Waiting? in
      if !directions[index].messages.isEmpty {
        let sender = directions[index].sender.take()
        return (sender, .success(directions[index].takeMessages()))
      }
      if let close = directions[index].close { return (nil, .failure(close)) }
      precondition(directions[index].receiver == nil, "two calls of receive wait at a time")
      directions[index].receiver = completion
      return nil
    }
    guard let ready else { return }
    completion(ready.result)
    ready.sender?(nil)
  }

  func send(_ messages: [[UInt8]], _ index: Int, _ completion: @escaping @Sendable (TransportClose?) -> Void)
  {
    enum Outcome {
      case deliver(@Sendable (Result<[[UInt8]], TransportClose>) -> Void)
      case goOn
      case closed(TransportClose)
      case wait
    }
    let outcome = directions.withLock { directions -> Outcome in
      if let close = directions[index].close { return .closed(close) }
      if messages.isEmpty { return .goOn }
      if let receiver = directions[index].receiver.take() { return .deliver(receiver) }
      directions[index].messages += messages
      directions[index].bytes += messages.reduce(0) { $0 + $1.count }
      guard directions[index].bytes >= capacity else { return .goOn }
      precondition(directions[index].sender == nil, "two calls of send wait at a time")
      directions[index].sender = completion
      return .wait
    }
    switch outcome {
    case .deliver(let receiver):
      receiver(.success(messages))
      completion(nil)
    case .goOn: completion(nil)
    case .closed(let close): completion(close)
    case .wait: break
    }
  }

  func close(_ close: TransportClose, _ index: Int) {
    var calls: [() -> Void] = []
    directions.withLock { directions in
      guard directions[index].close == nil else { return }
      for (number, _) in directions.enumerated() {
        directions[number].close = close
        // What the other end has sent, this end doesn't want.
        if number != index { _ = directions[number].takeMessages() }
        if let receiver = directions[number].receiver.take() { calls.append { receiver(.failure(close)) } }
        if let sender = directions[number].sender.take() { calls.append { sender(close) } }
      }
    }
    for call in calls { call() }
  }
}
