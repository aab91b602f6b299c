import Documents
import Fleece
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Attachments of CouchDB") struct HTTPAttachmentTests {
  private let databases = TestDatabases()

  private func attachment(_ name: String, _ bytes: [UInt8], revpos: UInt64 = 1) -> CouchModel.Attachment {
    .init(
      name: name, contentType: "image/png", revpos: revpos, bytes: bytes, length: bytes.count,
      isCompressed: false)
  }

  @Test("many documents with several attachments each are pulled", arguments: enginePairs.map(\.0))
  func many(_ engine: EngineName) throws {
    let couch = try CouchServer()
    for number in 0..<300 {
      let attachments = (0..<4).map { attachment("a\($0)/ü", [UInt8(number & 255), UInt8($0)]) }
      couch.model.add(
        "doc\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: attachments))
    }
    let local = try databases.open(engine)
    let outcome = try couch.replicate(local, .pull)
    #expect(outcome.pulled.count == 300 && outcome.status.error == nil)
    expectSame(couch.model.contents, try modelContents(local), "\(engine)")
    #expect(try local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test("what a stored ancestor has isn't fetched again, but for other bytes of the same length") func known()
    throws
  {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    func add(_ history: [String], _ attachments: [CouchModel.Attachment]) throws -> [String] {
      couch.model.add("doc", .init(history: history, isDeleted: false, body: [:], attachments: attachments))
      couch.server.forget()
      #expect(try couch.replicate(local, .pull).status.error == nil)
      expectSame(couch.model.contents, try modelContents(local), history[0])
      return couch.server.log.filter { $0.hasPrefix("GET /db/doc/") }.map { String($0.dropFirst(12)) }
    }
    #expect(try add(["1-a"], [attachment("x", [1, 2, 3]), attachment("y", [4])]).sorted() == ["x", "y"])
    #expect(try add(["2-b", "1-a"], [attachment("x", [1, 2, 3]), attachment("y", [4])]) == [])
    #expect(
      try add(["3-c", "2-b", "1-a"], [attachment("x", [1, 2, 3]), attachment("y", [5], revpos: 3)]) == ["y"])
    // A merge took the attachment of another branch.
    #expect(
      try add(["4-d", "3-c", "2-b", "1-a"], [attachment("x", [3, 2, 1]), attachment("y", [5], revpos: 3)])
        == ["x"])
    #expect(couch.model.complaints == [])
  }
}
