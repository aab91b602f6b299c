import Network
import ReplicationNetwork
import TestSupport
import Testing
import Touchstone
import TouchstoneSync
import Transport
import WebSocket

@testable import Replication
@testable import ReplicationBLIP

@Suite("URLs of databases") struct URLTests {
  @Test(
    "the remote ID is the URL with port and endpoint, as Couchbase Lite has it",
    arguments: [
      ("ws://example.com:4984/db", "ws://example.com:4984/db/_blipsync"),
      ("ws://example.com/db", "ws://example.com:80/db/_blipsync"),
      ("wss://Example.com/db/", "wss://example.com:443/db/_blipsync"),
      ("wss://example.com/a/db?x=1", "wss://example.com:443/a/db/_blipsync"),
      ("ws://[::1]:4984/db", "ws://[::1]:4984/db/_blipsync"),
      ("ws://h:1/db/_blipsync", "ws://h:1/db/_blipsync"),
    ])
  func remoteID(_ url: String, _ id: String) throws {
    try expect(ReplicatorTarget.url(url).connector.remoteID, equals: id)
  }

  @Test(
    "other URLs are refused",
    arguments: ["", "db", "ftp://h/db", "ws://", "ws://h:0/db", "ws://user:pw@h/db"])
  func refused(_ url: String) {
    #expect { try ReplicatorTarget.url(url) } throws: { error in
      (error as? ReplicationError)?.domain == .network
        && (error as? ReplicationError)?.code == ReplicationError.NetworkCode.invalidURL.rawValue
    }
  }

  @Test("the codes of the network are those of the client") func codes() {
    expect(
      ReplicationError.NetworkCode.allCases.map(\.rawValue), equals: NetworkCode.allCases.map(\.rawValue))
    for code in NetworkCode.allCases {
      let close = TransportClose(domain: .network, code: code.rawValue, reason: "", isTransient: false)
      expect(ReplicationError(end: close).isTransient, equals: (code == .dnsFailure || code == .timeout))
    }
  }
}
