import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("A document is purged here and made anew, over HTTP") struct HTTPMadeAnewTests {
  private let databases = TestDatabases()

  @Test("it becomes a branch beside the other side's, on both sides", arguments: enginePairs)
  func branch(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = (try databases.open(here), try databases.open(there))
    let server = try TestServer(["db": b])
    for number in 0..<3 { try b.update("d", creating: true) { $0["old"] = .int(Int64(number)) } }
    try replicate(a, server)
    try a.purge("d")
    try a.save("d", ["new": 1])
    try expect(replicate(a, server).failed, equals: [:])
    try expectEqual(a, b)
    try expect(a.conflicts(of: "d").count, equals: 2)
    try replicate(a, server)
    try expect(replicate(a, server).documents, equals: [])
  }

  @Test("the content of the first revision, made again, doesn't hide what was changed there later")
  func sameContent() throws {
    for pushesFirst in [false, true] {
      let (a, b) = (try databases.open(.sqlite), try databases.open(.lmdb))
      let server = try TestServer(["db": b])
      try b.save("d", ["n": 1])
      try b.update("d") { $0["n"] = 2 }
      try b.save("gone", ["n": 1])
      try b.delete("gone")
      try replicate(a, server)
      for id in ["d", "gone"] {
        try a.purge(id)
        try a.save(id, ["n": 1])
      }
      if pushesFirst { _ = try replicate(a, server) { $0.direction = .push } }
      let outcome = try replicate(a, server)
      expect(outcome.failed == [:] && outcome.status.error == nil)
      try expectEqual(a, b)
      try expect(a.document("d")?["n"].int == 2 && a.document("gone") == nil)
      try expect(replicate(a, server).documents, equals: [])
    }
  }

  @Test("a document that comes back from elsewhere gets its other branches too")
  func fromElsewhere() throws {
    let (a, b, c) = (try databases.open(.sqlite), try databases.open(.lmdb), try databases.open(.lmdb))
    let server = try TestServer(["b": b, "c": c])
    for (database, suffixes) in [(b, ["x", "y"]), (c, ["x"])] {
      for suffix in suffixes {
        try database.apply(
          PulledRevision(id: "d", history: ["1-a\(suffix)"], isDeleted: false, body: ["n": .string(suffix)]))
      }
    }
    try replicate(a, server, "b")
    try a.purge("d")
    try replicate(a, server, "c")
    try expect(a.conflicts(of: "d").isEmpty)
    try replicate(a, server, "b")
    try expectEqual(a, b)
  }
}
