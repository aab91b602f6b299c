import Replication
import ReplicationNetwork
import Touchstone

/// How a transport of the app's own carries what it is given.
public enum MessageProtocol: Sendable, Hashable, CaseIterable {
  /// Messages arrive whole, as they were sent.
  case messageStream
  /// Bytes arrive in order, in pieces of any size. The library marks where messages begin, with WebSocket frames.
  case byteStream
}

/// Why a transport of the app's own failed.
public struct MessagingError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The failure in words.
  public let description: String
  /// Whether another connection may help. Then the replicator makes one after some time.
  public let isRecoverable: Bool

  /// Creates an error.
  public init(_ description: String, isRecoverable: Bool) {
    self.description = description
    self.isRecoverable = isRecoverable
  }
}

/// A connection over a transport of the app's own: Bluetooth, a message queue, a pipe.
///
/// The app implements it, on both sides. The library calls it on background threads, one call at a time: `open`
/// once, then `send` with the next piece after the completion of the one before, and `close` once at the end. Completions may be
/// called on any thread.
public protocol MessageEndpointConnection: AnyObject, Sendable {
  /// Opens the connection. What the peer sends is given to `connection`, which the app keeps until the end.
  func open(_ connection: ReplicatorConnection, _ completion: @escaping @Sendable (MessagingError?) -> Void)
  /// Sends a message or, over a byte stream, a piece of bytes. `completion` says that it was taken: the next one isn't
  /// sent before.
  func send(_ message: [UInt8], _ completion: @escaping @Sendable (MessagingError?) -> Void)
  /// Closes the connection. The error says why, nil if nothing is wrong.
  func close(_ error: (any Error)?, _ completion: @escaping @Sendable () -> Void)
}

/// Where the app leaves what the peer of a connection has sent.
public final class ReplicatorConnection: Sendable {
  /// The most bytes that wait. An app that gives more loses the connection.
  public static let maximumWaitingBytes = 64 << 20

  private let transport: EndpointTransport

  init(_ transport: EndpointTransport) { self.transport = transport }

  /// Takes a message or, over a byte stream, a piece of bytes, in the order in which they were sent. `taken` is called
  /// when the replicator has taken it: an app that waits for that makes its peer wait.
  public func receive(_ message: [UInt8], taken: (@Sendable () -> Void)? = nil) {
    transport.received(message, taken)
  }

  /// Says that the connection has ended, with the error if it was one. The library then calls `close` of the app's
  /// connection.
  public func close(_ error: MessagingError? = nil) { transport.ended(error) }
}

/// A database on the other side of a transport of the app's own.
public struct MessageEndpoint: Sendable {
  /// Identifies the peer in checkpoints: the same for the same database.
  public let uid: String
  /// How the transport carries what it is given.
  public let protocolType: MessageProtocol
  let connect: @Sendable () throws -> any MessageEndpointConnection

  /// Creates an endpoint. `connect` makes a connection for each try of the replicator.
  public init(
    uid: String, _ protocolType: MessageProtocol,
    connect: @escaping @Sendable () throws -> any MessageEndpointConnection
  ) {
    self.uid = uid
    self.protocolType = protocolType
    self.connect = connect
  }
}

extension ReplicatorTarget {
  /// A database on the other side of a transport of the app's own.
  public static func messageEndpoint(_ endpoint: MessageEndpoint) -> ReplicatorTarget {
    ReplicatorTarget(
      BLIPConnector(remoteID: "x-msg-endpt:///" + endpoint.uid, name: endpoint.uid) { _, done in
        do {
          let transport = EndpointTransport(
            try endpoint.connect(), endpoint.protocolType, isActive: true)
          transport.open { error in
            if let error {
              done(.failure(ReplicationError(end: error)))
            } else {
              done(.success(BLIPConnector.Opened(transport)))
            }
          }
        } catch { done(.failure(ReplicationError(error))) }
      })
  }
}
