import TestSupport

@testable import Blobs
@testable import Touchstone

@Suite("Documents with blobs") struct DocumentBlobTests {
  private let databases = TestDatabases()

  private let directory = TemporaryDirectory()

  @Test(
    "a blob is saved with the document that names it, and read whole and in pieces", arguments: someEngines)
  func saveAndRead(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    let bytes = random.bytes(200_000)
    var database = try Database.open("test", in: directory.path, options: try options(engine))
    expect(!FileManager.default.fileExists(atPath: database.path + "/Attachments"))
    let blob = try database.makeBlob(bytes, contentType: "image/jpeg")
    try expect(database.blobFileCount, equals: 0)
    var task = MutableDocument(id: "task", ["title": "Buy"])
    task["avatar"] = blob.jsonValue
    task["photos"] = [["deep": blob.jsonValue]]
    try database.save(&task)
    try expect(database.blobFileCount, equals: 1)
    try database.close()
    database = try Database.open("test", in: directory.path, options: try options(engine))
    let saved = try #require(try database.document("task"))
    let found = try #require(saved["avatar"].blob)
    expect(found, equals: blob)
    expect(found.contentType, equals: "image/jpeg")
    expect(saved["photos"][0]["deep"].blob, equals: blob)
    expect(saved["title"].blob == nil)
    expect(saved["photos"].blob == nil)
    try expect(database.contents(of: found), equals: bytes)
    let reader = try database.open(found)
    try reader.seek(to: 100_000)
    try expect(reader.read(upTo: 10), equals: Array(bytes[100_000..<100_010]))
    try expect(storageCode { _ = try database.contents(of: found, limit: 1_000) }, equals: .valueTooLarge)
    try expect(
      MutableDocument(saved)["avatar"],
      equals: [
        "@type": "blob", "digest": .string(blob.digest.text), "length": 200_000,
        "content_type": "image/jpeg",
      ])
    // A document that is saved again keeps it, and another can name it.
    var again = try MutableDocument(saved)
    again["title"] = "Sell"
    try database.save(&again)
    try database.save("other", ["copy": blob.jsonValue])
    try expect(database.blobFileCount, equals: 1)
    try expect(database.contents(of: blob), equals: bytes)
    try database.close()
  }

  @Test("a document that names a blob that isn't here is refused and changes nothing", arguments: someEngines)
  func missing(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let absent: JSONValue = [
      "@type": "blob", "digest": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "length": 0,
    ]
    try expect(documentCode { try database.save("doc", ["a": [1, absent]]) }, equals: .missingBlob)
    var pulled = PulledRevision(id: "doc", history: ["1-aa"], body: .value(["a": absent]))
    try expect(documentCode { try database.apply(pulled) }, equals: .missingBlob)
    try expect(database.documentCount, equals: 0)
    try expect(database.lastSequence, equals: 0)
    // What only looks like one is no blob.
    try database.save("text", ["a": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="])
    try database.save("odd", ["a": ["@type": "blob", "digest": "none"]])
    pulled.allowsMissingBlobs = true
    try database.apply(pulled)
    let blob = try #require(try database.document("doc")?["a"].blob)
    try expect(!database.contains(blob))
    try expect(storageCode { _ = try database.contents(of: blob) }, equals: .notFound)
  }

  @Test("a batch that fails leaves no document, and its blobs can be saved again", arguments: someEngines)
  func failedBatch(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let blob = try database.makeBlob(Array("in a batch".utf8))
    try database.inUndoneBatch { try database.save("doc", ["blob": blob.jsonValue]) }
    try expect(database.documentCount, equals: 0)
    try database.compact()
    try expect(database.blobFileCount, equals: 0)
    try database.inBatch {
      // One that is refused, and one that isn't.
      try expect(
        documentCode { try database.save("_bad", ["blob": blob.jsonValue]) }, equals: .invalidDocumentID)
      try database.save("doc", ["blob": blob.jsonValue])
    }
    try expect(database.contents(of: blob), equals: Array("in a batch".utf8))
    try expect(!database.blobStore.hasUnsaved)
  }

  @Test(
    "without hard links databases are made, and blobs put in place", arguments: someEngines, [true, false])
  func withoutHardLinks(_ engine: EngineName, exclusiveRenames: Bool) throws {
    try withFileSystem(exclusiveRenames: exclusiveRenames) {
      // With its key file.
      try withDatabase(engine) { database in
        let blob = try database.makeBlob([1, 2, 3])
        try database.inUndoneBatch { try database.save("a", ["blob": blob.jsonValue]) }
        // It has its name by now, and no other: a save finds it, and a compaction takes it.
        try expect(database.contents(of: blob), equals: [1, 2, 3])
        try database.save("a", ["blob": blob.jsonValue])
        try expect(database.contents(of: blob), equals: [1, 2, 3])
        try database.purge("a")
        let other = try database.makeBlob([4])
        try database.inUndoneBatch { try database.save("b", ["blob": other.jsonValue]) }
        try database.compact()
        try expect(database.blobFileCount, equals: 0)
        try expect(documentCode { try database.save("b", ["blob": other.jsonValue]) }, equals: .missingBlob)
        try database.save("b", ["blob": database.makeBlob([4]).jsonValue])
        try expect(database.contents(of: other), equals: [4])
        try expect(database.check(deep: true), equals: [])
      }
    }
  }

  @Test("compaction removes the blobs that no revision names, and no others", arguments: someEngines)
  func compaction(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var blobs: [String: Blob] = [:]
    func blob(_ name: String) throws -> JSONValue {
      let blob = try database.makeBlob(Array(name.utf8))
      blobs[name] = blob
      return blob.jsonValue
    }
    try database.save("doc", ["b": try blob("replaced")])
    try database.save("doc", ["b": try blob("current")])
    try database.apply(
      PulledRevision(id: "doc", history: ["2-0a", "1-0b"], body: .value(["b": try blob("conflict")])))
    try database.save("gone", ["b": try blob("purged")])
    try database.purge("gone")
    try database.save("tomb", ["b": try blob("deleted")])
    try database.delete("tomb", keeping: .value(["why": try blob("tombstone")]))
    try database.save("text", ["b": .string("as text: \(try blob("text")["digest"].string ?? "")")])
    try database.save("shared", ["b": try blob("shared")])
    try database.save("shared2", ["b": try blob("shared")])
    try database.purge("shared")
    let unsaved = try database.makeBlob(Array("unsaved".utf8))
    try expect(database.blobFileCount, equals: 8)
    try database.compact()
    let left = try blobs.filter { try database.contains($0.value) }.keys.sorted()
    expect(left, equals: ["conflict", "current", "shared", "text", "tombstone"])
    try expect(database.blobFileCount, equals: 5)
    try database.save("late", ["b": unsaved.jsonValue])
    try expect(database.contents(of: unsaved), equals: Array("unsaved".utf8))
    try database.compact()
    try expect(database.blobFileCount, equals: 6)
    for id in ["doc", "tomb", "text", "shared2", "late"] { try database.purge(id) }
    try database.compact()
    try expect(database.blobStore.files().count, equals: 0)
  }

  @Test(
    "a content that was stored twice can be saved after the first document with it is gone",
    arguments: someEngines)
  func storedTwice(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let bytes = Array("the same content".utf8)
    let first = try database.makeBlob(bytes)
    let second = try database.makeBlob(bytes)
    // The document names its blob twice, which is one save.
    try database.save("first", ["a": first.jsonValue, "b": first.jsonValue])
    try database.purge("first")
    try database.compact()
    try database.save("second", ["blob": second.jsonValue])
    try expect(database.contents(of: second), equals: bytes)
    try expect(!database.blobStore.hasUnsaved)
  }

  @Test(
    "saves beside compactions lose no blob",
    arguments: [EngineName.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted])
  func besideCompaction(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let isDone = Lock(false)
    try onThreads(4) { thread in
      guard thread > 0 else {
        var rounds = 0
        while !isDone.withLock({ $0 }) || rounds == 0 {
          try database.compact()
          rounds += 1
        }
        return
      }
      defer { if thread == 1 { isDone.withLock { $0 = true } } }
      for number in 0..<(isLong ? 400 : 60) {
        // Contents come again and again, so that what is removed is wanted the next moment.
        let bytes = Array("content \(number % 7)".utf8)
        let blob = try database.makeBlob(bytes)
        let id = "doc\(thread)"
        try database.save(id, ["b": blob.jsonValue])
        let read = try database.contents(of: blob)
        if read != bytes { throw ConformanceFailure("\(number) of \(thread)") }
        if number % 5 == 4 { try database.purge(id) }
      }
    }
  }

  @Test("a read-only database gives blobs and takes none", arguments: someEngines)
  func readOnly(_ engine: EngineName) throws {
    var database = try Database.open("test", in: directory.path, options: try options(engine))
    let blob = try database.makeBlob([1, 2, 3])
    try database.save("doc", ["b": blob.jsonValue])
    try database.close()
    var readOnly = try options(engine)
    readOnly.isReadOnly = true
    database = try Database.open("test", in: directory.path, options: readOnly)
    try expect(database.contents(of: blob), equals: [1, 2, 3])
    try expect(storageCode { _ = try database.makeBlob([4]) }, equals: .readOnly)
    try database.close()
  }

  @Test("blobs of an encrypted database are encrypted, with names that don't tell their digests")
  func encrypted() throws {
    let database = try databases.open(.sqlcipher)
    let text = "nobody reads this without the key"
    let blob = try database.makeBlob(Array(text.utf8))
    try database.save("doc", ["b": blob.jsonValue])
    let names = try database.blobStore.names()
    let name = try #require(names.first { $0.hasSuffix(".sealed") })
    let bytes = try Data(contentsOf: URL(fileURLWithPath: database.path + "/Attachments/" + name))
    expect(bytes.range(of: Data(text.utf8)) == nil)
    expect(bytes.range(of: Data(blob.digest.bytes)) == nil)
    var changed = bytes
    changed[changed.count - 20] ^= 1
    unlink(database.path + "/Attachments/" + name)
    try changed.write(to: URL(fileURLWithPath: database.path + "/Attachments/" + name))
    try expect(storageCode { _ = try database.contents(of: blob) }, equals: .damaged)
  }

  @Test("the same revision IDs come of the same blobs on every engine")
  func revisionIDs() throws {
    var ids: Set<String> = []
    for engine in someEngines {
      try withDatabase(engine) { database in
        var document = MutableDocument(id: "doc", ["b": try database.makeBlob([1, 2, 3]).jsonValue])
        document.setAttachment("a.bin", try database.makeBlob([4, 5], contentType: "application/x"))
        ids.insert(try database.save(&document).revisionID.description)
      }
    }
    expect(ids.count, equals: 1)
  }
}
