import Foundation
import TestSupport
import Testing
import Touchstone

/// What a database takes from elsewhere, but not from its users, can be changed and exported here.
@Suite("What arrived from elsewhere") struct ArrivedTests {
  private let databases = TestDatabases()

  @Test("a document with a long ID can be changed, but not made", arguments: someEngines)
  func longID(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let id = String(repeating: "k", count: 480)
    try expect(documentCode { try database.save(id, ["n": 1]) }, equals: .invalidDocumentID)
    try database.apply(PulledRevision(id: id, history: ["1-ab"], body: ["n": 1]))
    try database.save(id, ["n": 2])
    try database.save(id, .json(Array(#"{"n":3}"#.utf8)))
    try database.update(id) { $0["n"] = 4 }
    try expect(database.document(id)?["n"].int, equals: 4)
    try database.delete(id)
    try database.save(id, ["n": 5])
    try database.purge(id)
    try expect(documentCode { try database.save(id, ["n": 6]) }, equals: .invalidDocumentID)
    let longer = String(repeating: "k", count: 481)
    try expect(documentCode { try database.save(longer, [:]) }, equals: .invalidDocumentID)
  }

  @Test("reserved names of the stored revision can be kept, but not added", arguments: someEngines)
  func reservedNames(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.apply(
      PulledRevision(id: "d", history: ["1-ab"], body: ["_kept": 1, "_other": [2], "n": 1]))
    try database.update("d") { $0["n"] = 2 }
    try expect(database.document("d")?["_kept"].int, equals: 1)
    try expect(
      documentCode { try database.update("d") { $0["_new"] = 1 } }, equals: .reservedProperty)
    try database.save("d", ["_other": 3, "n": 3])
    try expect(documentCode { try database.save("d", ["_kept": 1]) }, equals: .reservedProperty)
    // The names of another branch are of another revision.
    try database.apply(PulledRevision(id: "d", history: ["1-cd"], body: ["_branch": 1]))
    try expect(documentCode { try database.save("d", ["_branch": 1]) }, equals: .reservedProperty)
  }

  @Test("a document whose blob was lost can be changed", arguments: someEngines)
  func lostBlob(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let lost = try database.makeBlob(Array("lost".utf8))
    var document = MutableDocument(id: "d")
    document["n"] = 1
    document["blob"] = lost.jsonValue
    document.setAttachment("a.txt", lost)
    try database.save(&document)
    for name in try FileManager.default.contentsOfDirectory(atPath: database.path + "/Attachments") {
      try FileManager.default.removeItem(atPath: database.path + "/Attachments/" + name)
    }
    try expect(database.contains(lost), equals: false)

    try database.update("d") { $0["n"] = 2 }
    try expect(database.document("d")?["n"].int, equals: 2)
    let other: JSONValue = ["@type": "blob", "digest": "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "length": 1]
    try expect(
      documentCode { try database.update("d") { $0["blob"] = other } }, equals: .missingBlob)
    // In another document it is as missing as any other blob.
    let reference: JSONValue = [
      "@type": "blob", "digest": .string(lost.digest.description), "length": 4,
    ]
    try expect(documentCode { try database.save("e", .value(["blob": reference])) }, equals: .missingBlob)
  }
}
