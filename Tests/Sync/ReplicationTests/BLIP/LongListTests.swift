// Lists of changes that have more than one frame.

import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite("Lists of changes with long IDs") struct LongListTests {
  private let databases = TestDatabases()

  private func database(_ engine: EngineName, _ count: Int, idBytes: Int, prefix: String = "d") throws
    -> Database
  {
    let database = try databases.open(engine)
    let padding = String(repeating: "x", count: idBytes)
    try database.inBatch {
      for number in 0..<count { try database.save("\(prefix)\(number)\(padding)", ["n": JSONValue(number)]) }
    }
    return database
  }

  @Test("everything is pulled, and a checkpoint doesn't pass what hasn't come", arguments: someEngines)
  func pulled(_ engine: EngineName) throws {
    for (count, idBytes) in [(200, 40), (150, 120), (199, 200), (450, 150), (201, 230)] {
      let server = try database(engine, count, idBytes: idBytes)
      let client = try database(engine, 1, idBytes: 1, prefix: "own")
      var configuration = ReplicatorConfiguration(client, ReplicatorTarget(pipeConnector(server)))
      configuration.direction = .pull
      let outcome = try run(configuration)
      expect(outcome.status.error == nil && outcome.pulled.count == count, "\(count) of \(idBytes)")
      // Another list behind a checkpoint.
      try server.inBatch {
        for number in 0..<100 {
          try server.save("e\(number)" + String(repeating: "y", count: idBytes), ["n": JSONValue(number)])
        }
      }
      try expect(run(configuration).pulled.count, equals: 100)
      try expect(run(configuration).documents.isEmpty)
    }
  }

  @Test("what says that all were offered doesn't overtake a list, also from other servers") func overtaking()
    throws
  {
    let ids = (0..<100).map { "d\($0)" + String(repeating: "x", count: 500) }
    let list =
      "[" + ids.enumerated().map { "[\($0 + 1),\"\($1.prefix(200))\",\"1-aa\"]" }.joined(separator: ",") + "]"
    let server = ScriptedServer([
      "subChanges": { server, request in
        request.reply()
        var changes = BLIPRequest(
          "changes", request.message.properties["collection"].map { ["collection": $0] } ?? [:],
          body: .bytes(Array(list.utf8)))
        server.send(changes) { _ in
          for (number, id) in ids.enumerated() {
            var properties: BLIPProperties = [
              "id": String(id.prefix(200)), "rev": "1-aa", "sequence": "\(number + 1)",
            ]
            if let collection = request.message.properties["collection"] {
              properties.append("collection", collection)
            }
            server.rev(properties, "{}")
          }
        }
        changes.body = .bytes(Array("[]".utf8))
        changes.isNoReply = true
        changes.isUrgent = true
        server.send(changes)
      }
    ])
    let outcome = try replicate(try databases.open(.lmdb), server) { $0.direction = .pull }
    expect(outcome.status.error == nil && outcome.pulled.count == 100)
  }
}
