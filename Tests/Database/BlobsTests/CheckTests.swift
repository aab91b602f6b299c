import TestSupport

@testable import Blobs
@testable import Documents
@testable import Touchstone

/// Damage that is planted, and what a check says of it.
@Suite("Check") struct CheckTests {
  /// Documents of all sorts: live, replaced, conflicting, deleted, with blobs and attachments.
  private func fill(_ database: Database) throws {
    for number in 0..<5 {
      try database.save("doc\(number)", ["n": .int(Int64(number)), "list": [1, 2.5, "three"]])
    }
    try database.save("doc0", ["n": 7])
    try database.apply(PulledRevision(id: "doc1", history: ["1-0a"], body: ["pulled": true]))
    try database.delete("doc4", keeping: ["why": "gone"])
    try database.setExpiration(of: "doc3", after: 100_000)
    try database.save("blob", ["b": try database.makeBlob(Array("a blob".utf8)).jsonValue])
    var document = MutableDocument(id: "attached")
    document.setAttachment("a.txt", try database.makeBlob(Array("attached".utf8)))
    try database.save(&document)
  }

  /// A way to damage a database.
  struct Damage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// What some fault's line has to contain.
    let expected: String
    let needsDeep: Bool
    let plant: @Sendable (Planter) throws -> Void

    init(
      _ name: String, _ expected: String, needsDeep: Bool = false,
      _ plant: @escaping @Sendable (Planter) throws -> Void
    ) {
      (testDescription, self.expected, self.needsDeep, self.plant) = (name, expected, needsDeep, plant)
    }
  }

  /// Changes what is stored behind the documents' back.
  struct Planter {
    let transaction: any WriteTransaction
    let blobs: BlobStore

    func keyspace(_ name: String) throws -> Keyspace {
      guard let keyspace = try transaction.keyspace(named: name) else {
        throw DocumentError(.damaged, "there is no keyspace \(name)")
      }
      return keyspace
    }
    func get(_ key: [UInt8], _ name: String) throws -> [UInt8] {
      try transaction.bytes(key, in: try keyspace(name)) ?? []
    }
    func get(_ id: String, _ name: String = "docs") throws -> [UInt8] { try get(Array(id.utf8), name) }
    func put(_ key: [UInt8], _ value: [UInt8], _ name: String) throws {
      try transaction.put(key, value, in: try keyspace(name))
    }
    func put(_ id: String, _ value: [UInt8], _ name: String = "docs") throws {
      try put(Array(id.utf8), value, name)
    }
    func delete(_ key: [UInt8], _ name: String) throws {
      let keyspace = try keyspace(name)
      _ = try key.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
    }
    func sequence(_ number: UInt64) -> [UInt8] {
      (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
    func sequence(of id: String) throws -> UInt64 {
      let stored = try get(id)
      return try DocumentRecord(stored.span.bytes).sequence
    }
    /// The first key of a keyspace.
    func first(_ name: String) throws -> [UInt8] {
      try transaction.entries(of: keyspace(name)).first?.key ?? []
    }
    func change(_ id: String, _ body: (inout [UInt8]) -> Void) throws {
      var record = try get(id)
      body(&record)
      try put(id, record)
    }
    func blobFile(_ text: String) throws -> String {
      let hash = try SHA1Stream()
      try Array(text.utf8).withUnsafeBytes { try hash.update($0) }
      return try blobs.path(of: try hash.finish())
    }
    func rewrite(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
      var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
      body(&bytes)
      unlink(path)
      try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
  }

  static let damages: [Damage] = [
    Damage("a record is cut", "document 'doc0': ") { try $0.put("doc0", [1, 0]) },
    Damage("a record is of a later version", "document 'doc0': ") { try $0.change("doc0") { $0[0] = 9 } },
    Damage("a tree can't be read", "document 'doc2': a revision tree can't be read") {
      try $0.change("doc2") { $0[5] = 0 }
    },
    Damage("a body's end is cut off", "document 'doc2': its body can't be read") {
      try $0.change("doc2") { $0.removeLast(1) }
    },
    Damage("a body is flipped inside", "document 'doc2': its body can't be read", needsDeep: true) {
      try $0.change("doc2") { bytes in
        let text = Array("three".utf8)
        if let at = bytes.indices.first(where: { bytes[$0...].starts(with: text) }) { bytes[at] = 0xFF }
      }
    },
    Damage(
      "a live document lies among the deleted", "document 'doc2': it is live, but stored among the tombstones"
    ) {
      let record = try $0.get("doc2")
      try $0.delete(Array("doc2".utf8), "docs")
      try $0.put("doc2", record, "deleted")
    },
    Damage(
      "a deleted one lies among the live",
      "document 'doc4': it is deleted, but stored among the live documents"
    ) {
      let record = try $0.get("doc4", "deleted")
      try $0.delete(Array("doc4".utf8), "deleted")
      try $0.put("doc4", record)
    },
    Damage("the flags say deleted", "document 'doc2': its current revision is live") {
      try $0.change("doc2") { $0[1] |= 1 }
    },
    Damage("the flags say conflicted", "document 'doc2': it isn't conflicted") {
      try $0.change("doc2") { $0[1] |= 2 }
    },
    Damage("a document is live and deleted", "document 'doc4': there is a live document with the same ID") {
      try $0.put("doc4", try $0.get("doc2"))
    },
    Damage("a change is missing", "document 'doc2': its change 3 is missing") {
      try $0.delete($0.sequence(3), "changes")
    },
    Damage("a change is another document's", "document 'doc2': the change 3 belongs to another document") {
      try $0.put($0.sequence(3), [0] + Array("doc9".utf8), "changes")
    },
    Damage("a change has other flags", "document 'doc2': the flags of its change 3 are different") {
      try $0.put($0.sequence(3), [1] + Array("doc2".utf8), "changes")
    },
    Damage(
      "a change is no document's",
      "keyspace changes: the entry 77 of 'ghost' isn't the latest change of a document"
    ) {
      try $0.put($0.sequence(77), [0] + Array("ghost".utf8), "changes")
    },
    Damage(
      "a document has two changes",
      "keyspace changes: the entry 1 of 'doc0' isn't the latest change of a document"
    ) {
      try $0.put($0.sequence(1), [0] + Array("doc0".utf8), "changes")
    },
    Damage("a change can't be read", "keyspace changes: ") { try $0.put($0.sequence(88), [], "changes") },
    Damage("a document is gone, its change isn't", "keyspace changes: the entry 3 of 'doc2'") {
      try $0.delete(Array("doc2".utf8), "docs")
    },
    Damage("two documents have one sequence", ": another document has the same sequence, 3") {
      try $0.put("doc22", try $0.get("doc2"))
    },
    Damage("the record of the last sequence can't be read", "keyspace meta: \"state\" can't be read") {
      try $0.put("state", [1, 2, 3], "meta")
    },
    Damage("the shared keys are gone", "keyspace meta: there are 0 shared keys") {
      try $0.delete(Array("sharedKeys".utf8), "meta")
    },
    Damage("a UUID is gone", "keyspace meta: \"privateUUID\" is missing") {
      try $0.delete(Array("privateUUID".utf8), "meta")
    },
    Damage("a conflicting revision's body is missing", "the body of the conflicting revision") {
      try $0.delete(try $0.first("conflicts"), "conflicts")
    },
    Damage("a conflicting revision's body can't be read", "keyspace conflicts: the body ") {
      try $0.put(try $0.first("conflicts"), [0, 0xFF], "conflicts")
    },
    Damage("a body is no revision's", "keyspace bodies: the body 99 belongs to no revision") {
      try $0.put($0.sequence(99), try $0.get(try $0.first("bodies"), "bodies"), "bodies")
    },
    Damage(
      "a replaced revision's body is flipped inside", "keyspace bodies: the body 1 can't be read",
      needsDeep: true
    ) {
      let key = try $0.first("bodies")
      var body = try $0.get(key, "bodies")
      if let at = body.indices.first(where: { body[$0...].starts(with: Array("three".utf8)) }) {
        body[at] = 0xFF
      }
      try $0.put(key, body, "bodies")
    },
    Damage(
      "an expired document's time is missing", "keyspace expirations: 'doc3' has an expiration, but no entry"
    ) {
      try $0.delete(try $0.first("expiry"), "expiry")
    },
    Damage(
      "a document that expires is gone",
      "keyspace expirations: 'doc3' has an expiration, but there is no such"
    ) {
      try $0.delete(Array("doc3".utf8), "docs")
    },
    Damage("a time is no document's", "keyspace expiry: it has 2 entries, but 1 documents have an expiration")
    {
      try $0.put($0.sequence(1) + Array("doc2".utf8), [], "expiry")
    },
    Damage("entries belong to no index", "indexes: there is no index for the keyspace index.99") {
      _ = try $0.transaction.createKeyspace("index.99", shape: .entries)
    },
    Damage("a blob is missing", "document 'blob': the blob sha1-") { unlink(try $0.blobFile("a blob")) },
    Damage("an attachment is missing", "at /_attachments/a.txt is missing") {
      unlink(try $0.blobFile("attached"))
    },
    Damage("a blob is cut", "document 'blob': the blob sha1-") {
      try $0.rewrite(try $0.blobFile("a blob")) { $0.removeLast() }
    },
    Damage("a blob is longer", "bytes instead of 6") {
      try $0.rewrite(try $0.blobFile("a blob")) { $0.append(0) }
    },
    Damage("a blob is flipped", "blob file ", needsDeep: true) {
      try $0.rewrite(try $0.blobFile("a blob")) { $0[$0.count - 1] ^= 1 }
    },
    Damage("a blob is another one", "blob file ", needsDeep: true) {
      let other = try Data(contentsOf: URL(fileURLWithPath: try $0.blobFile("attached")))
      try $0.rewrite(try $0.blobFile("a blob")) { $0 = [UInt8](other) }
    },
  ]

  @Test("each damage is found and named", arguments: damages)
  func planted(_ damage: Damage) throws {
    for engine in someEngines {
      try withDatabase(engine) { database in
        try fill(database)
        try expect(database.check(deep: true).map(\.description), equals: [], "\(engine)")
        let blobs = try database.blobStore
        try database.engine.writeEntries { (transaction: any WriteTransaction) throws -> Void in
          try damage.plant(Planter(transaction: transaction, blobs: blobs))
        }
        let shallow = try database.check().map(\.description)
        let deep = try database.check(deep: true).map(\.description)
        expect(deep.contains { $0.contains(damage.expected) }, "\(engine): \(deep)")
        expect(
          shallow.contains { $0.contains(damage.expected) }, equals: !damage.needsDeep,
          "\(engine): \(shallow)")
        expect(!deep.contains { $0.contains("\n") })
      }
    }
  }

  @Test("a document that says another length than its blob has is no fault", arguments: someEngines)
  func otherLength(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let blob = try database.makeBlob(Array("a blob".utf8))
      for length: UInt64 in [0, 5, 7, 1 << 40] {
        let wrong = Blob(digest: blob.digest, length: length, contentType: "text/plain")
        try database.save("blob \(length)", ["b": wrong.jsonValue])
      }
      try expect(database.check(deep: true) == [] && database.check() == [])
      let read = try #require(try database.document("blob 5")?.blob(forKey: "b"))
      try expect(read.length == 5 && read.content() == Array("a blob".utf8))
    }
  }

  @Test("a plain blob in an encrypted database is found")
  func plainInEncrypted() throws {
    try withDatabase(.sqlcipher) { database in
      try fill(database)
      let name = "2jmj7l5rSw0yVb_vlWAYkK_YBwk=.blob"
      try Data().write(to: URL(fileURLWithPath: database.path + "/Attachments/" + name))
      let faults = try database.check().map(\.description)
      expect(faults, equals: ["blob file \(name): it isn't encrypted, but the database is"])
    }
  }

  @Test(
    "what lies beside the documents is checked in the same snapshot, and may fail", arguments: someEngines)
  func checkers(_ engine: EngineName) throws {
    struct Checker: IntegrityChecker {
      let subject: String
      let body: @Sendable (IntegrityCheck) throws -> Void
      func check(_ check: IntegrityCheck) throws { try body(check) }
    }
    try withDatabase(engine) { database in
      try fill(database)
      try database.store.addIntegrityChecker(
        Checker(subject: "index 'a'") { check in
          let count = try check.documents.documentCount
          try check.report("index 'a'", "it lacks \(count) documents, deep \(check.isDeep)")
        })
      try database.store.addIntegrityChecker(
        Checker(subject: "index 'b'") { _ in throw DocumentError(.damaged, "a page is broken") })
      try database.store.addIntegrityChecker(
        Checker(subject: "index 'c'") { try $0.report("index 'c'", "last") })
      let faults = try database.check(deep: true).map(\.description)
      expect(
        faults,
        equals: [
          "index 'a': it lacks 6 documents, deep true", "index 'b': can't be read: a page is broken",
          "index 'c': last",
        ])
      try expect(database.check(limit: 1).count, equals: 1)
      for name in ["a", "b", "c"] { try database.store.removeIntegrityChecker("index '\(name)'") }
      try expect(database.check(), equals: [])
    }
  }

  @Test("a check can be stopped, tells its progress, and runs beside writers", arguments: someEngines)
  func stopping(_ engine: EngineName) throws {
    struct Stop: Error {}
    try withDatabase(engine) { database in
      try database.inBatch {
        for number in 0..<600 { try database.save("doc\(number)", ["n": .int(Int64(number))]) }
      }
      #expect(throws: Stop.self) { try database.check { _ in throw Stop() } }
      var calls = 0
      let faults = try database.check(deep: true) { count in
        calls += 1
        if count == 256 {
          // What is written and removed meanwhile is no fault.
          let blob = try database.makeBlob([1])
          try database.save("new", ["b": blob.jsonValue])
          try database.purge("doc1")
        }
      }
      expect(faults, equals: [])
      // 600 documents and 600 changes are looked at, and then their checksums. More where files are searched for plaintext.
      expect(calls == 9 || (database.isEncrypted && calls > 9))
    }
  }
}
