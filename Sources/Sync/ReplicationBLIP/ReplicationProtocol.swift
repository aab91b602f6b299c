// The messages of replication, by their profiles. docs/sync.md has their properties and bodies.

import BLIP
import Replication
import ReplicationNetwork

/// The kinds of requests.
enum Profile {
  static let getCheckpoint = "getCheckpoint"
  static let setCheckpoint = "setCheckpoint"
  static let getCollections = "getCollections"
  static let subChanges = "subChanges"
  static let changes = "changes"
  static let proposeChanges = "proposeChanges"
  static let rev = "rev"
  static let norev = "norev"
  static let getAttachment = "getAttachment"
  static let proveAttachment = "proveAttachment"
}

/// Versions of the protocol, as they are named in the upgrade to WebSocket. Messages don't depend on which is agreed on.
package enum ReplicationProtocol {
  /// What a client offers, the best first.
  package static let offered = ["BLIP_3+CBMobile_3", "BLIP_3+CBMobile_2"]
  /// The one before collections: peers that choose it know none.
  static let withoutCollections = "BLIP_3+CBMobile_2"
  /// The longest ID in a list of changes that Couchbase Lite takes, in bytes. A longer one makes it refuse the whole list.
  static let longestID = 255
  /// The name of the only collection that is replicated.
  static let defaultCollection = "_default"

  /// The version that a server agrees on; nil if the client offers none of these.
  package static func choose(from offers: [String]) -> String? { offered.first { offers.contains($0) } }
}

extension ReplicationError {
  /// The error that a peer answered.
  init(_ reply: BLIPErrorReply) {
    let domain: Domain =
      switch reply.domain {
      case "HTTP": .http
      case "LiteCore": .liteCore
      case "POSIX": .posix
      case "WebSocket": .webSocket
      case "Network": .network
      default: .blip
      }
    let text = String(reply.text.prefix(1_000))
    self.init(
      domain, reply.code,
      text.isEmpty ? "the peer answers with the error \(reply.domain) \(reply.code)" : text)
  }

  /// Why there was no reply.
  init(noReply error: any Error) {
    guard let error = error as? BLIPError else {
      self.init(error)
      return
    }
    if let close = error.close {
      self.init(end: close, error.code == .closed ? nil : error.message)
    } else {
      self.init(.webSocket, 1011, error.message)
    }
  }

  /// What a peer is told.
  var reply: BLIPErrorReply {
    switch domain {
    case .http: BLIPErrorReply(domain: "HTTP", code: code, text: message)
    case .blip: BLIPErrorReply(domain: BLIPErrorReply.blipDomain, code: code, text: message)
    case .liteCore: BLIPErrorReply(domain: "LiteCore", code: code, text: message)
    // What is wrong with a document is wrong for good. Other failures of this side may pass.
    case .touchstone: BLIPErrorReply(domain: "HTTP", code: isRefusal ? code : 503, text: message)
    case .webSocket, .posix, .network: BLIPErrorReply(domain: "HTTP", code: 503, text: message)
    }
  }
}
