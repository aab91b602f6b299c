import BLIP
import Replication
import Transport

/// Connects to a database over BLIP, through a transport that a closure opens.
package struct BLIPConnector: PeerConnector {
  /// A transport that stands, and the version of the protocol that both sides agreed on, if it is known.
  package struct Opened: Sendable {
    package let transport: any MessageTransport
    package let subprotocol: String?

    package init(_ transport: any MessageTransport, subprotocol: String? = nil) {
      self.transport = transport
      self.subprotocol = subprotocol
    }
  }

  package let remoteID: String
  package let name: String
  private let limits: BLIPLimits
  private let open: @Sendable (ConnectionOptions, @escaping Completion<Opened>) -> Void

  package init(
    remoteID: String, name: String, limits: BLIPLimits = BLIPLimits(),
    _ open: @escaping @Sendable (ConnectionOptions, @escaping Completion<Opened>) -> Void
  ) {
    self.remoteID = remoteID
    self.name = name
    self.limits = limits
    self.open = open
  }

  package func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    let (name, limits) = (name, limits)
    open(options) { opened in
      done(
        opened.map { opened in
          BLIPPeer(
            BLIPConnection(opened.transport, limits: limits, name: name), subprotocol: opened.subprotocol)
        })
    }
  }
}
