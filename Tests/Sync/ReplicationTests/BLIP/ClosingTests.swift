// A database that is closed while clients begin to replicate with it.

import BLIP
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

@Suite("Closing a served database") struct ClosingTests {
  @Test("a close waits for what a client's requests read, and never fails for it", arguments: someEngines)
  func requestsThatBegin(_ engine: EngineName) throws {
    for round in 0..<60 {
      try withTemporaryDirectory { directory in
        let database = try Database.open("test", in: directory, options: try options(engine))
        var document = MutableDocument(id: "a", ["n": 1])
        try database.save(&document)
        let (left, right) = PipeTransport.pair()
        let responder = BLIPResponder(BLIPConnection(right, name: "server"), database)
        responder.start()
        let client = BLIPConnection(left, name: "client")
        client.start()
        let begun = Awaited<Bool>()
        client.send(BLIPRequest("getCheckpoint", ["client": "c"])) { _ in begun.set(true) }
        client.send(BLIPRequest("subChanges", ["continuous": "true"])) { _ in }
        let changes = "[[1,\"b\",\"1-\(String(repeating: "a", count: 32))\"]]"
        client.send(BLIPRequest("changes", body: .bytes(Array(changes.utf8)))) { _ in }
        _ = try begun.get()
        // Another moment in each round.
        for _ in 0..<round * 500 { _ = Date.now }
        try database.close()
        client.close()
      }
    }
  }
}
