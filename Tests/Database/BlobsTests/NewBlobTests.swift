import Foundation
import Storage
import TestSupport
import Testing

@testable import Blobs
@testable import Touchstone

@Suite("Blobs made without a database") struct NewBlobTests {
  private struct Stop: Error {}

  private func random(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: testSeed &+ UInt64(count))
    return generator.bytes(count)
  }

  /// The bytes of `blob` read in odd pieces.
  private func pieces(_ blob: Blob) throws -> [UInt8] {
    let reader = try blob.open()
    var bytes: [UInt8] = []
    while true {
      let piece = try reader.read(upTo: 99_991)
      guard !piece.isEmpty else { return bytes }
      bytes += piece
    }
  }

  @Test(
    "bytes, files and streams give the same blob, with its content", arguments: [0, 1, 70_000, 2_500_000])
  func making(_ count: Int) throws {
    let bytes = random(count)
    let directory = TemporaryDirectory()
    let path = directory.path + "/file"
    try Data(bytes).write(to: URL(filePath: path))
    var position = 0
    let blobs = [
      try Blob(bytes, contentType: "image/png"), try Blob(contentsOfFile: path, contentType: "image/png"),
      try Blob(contentType: "image/png") { buffer in
        let count = min(buffer.count, bytes.count - position, 60_001)
        buffer.copyBytes(from: bytes[position..<(position + count)])
        position += count
        return count
      },
    ]
    let digest = try makeStore(directory, encrypted: false).store(bytes).digest
    for blob in blobs {
      expect(blob.digest == digest && blob.length == UInt64(count) && blob.contentType == "image/png")
      expect(blob == blobs[0] && Blob(blob.jsonValue) == blob)
      try expect(blob.content(), equals: bytes)
      try expect(pieces(blob), equals: bytes)
      try expect(Blob(blob.jsonValue)?.content(), equals: bytes)
      let reader = try blob.open()
      try reader.seek(to: UInt64(count / 2))
      try expect(reader.read(upTo: 10), equals: Array(bytes[(count / 2)...].prefix(10)))
      if count > 10 { try expect(storageCode { _ = try blob.content(limit: 10) }, equals: .valueTooLarge) }
    }
  }

  @Test("a stream that fails makes no blob, and a temporary file goes with the last copy")
  func streams() throws {
    #expect(throws: Stop.self) { try Blob { _ in throw Stop() } }
    try expect(storageCode { _ = try Blob { _ in -1 } }, equals: .invalidArgument)
    try expect(storageCode { _ = try Blob { $0.count + 1 } }, equals: .invalidArgument)
    try expect(storageCode { _ = try Blob(contentsOfFile: "/nowhere/at/all") }, equals: .notFound)
    let bytes = random(3_000_000)
    func spool() throws -> Blob {
      var position = 0
      return try Blob { buffer in
        let count = min(buffer.count, bytes.count - position)
        buffer.copyBytes(from: bytes[position..<(position + count)])
        position += count
        return count
      }
    }
    var blob: Blob? = try spool()
    let digest = try #require(blob?.digest)
    let place = try #require(BlobSpool.store)
    try expect(place.contains(digest) && place.isEncrypted)
    var document = MutableDocument(id: "d")
    document.set(blob, forKey: "blob")
    blob = nil
    try expect(place.contains(digest))
    // The same content, made twice.
    var again: Blob? = try spool()
    document["blob"] = nil
    try expect(again?.content(), equals: bytes)
    again = nil
    try expect(!place.contains(digest))
  }

  @Test("a blob is stored with its document, from wherever it is set", arguments: someEngines)
  func saving(_ engine: EngineName) throws {
    struct Photo: Codable { var title: String; var blob: Blob; var more: [Blob?] }
    try withDatabase(engine) { database in
      let contents = (0..<8).map { random(40_000 + $0) }
      func blob(_ number: Int) throws -> Blob { try Blob(contents[number], contentType: "image/jpeg") }
      var document = MutableDocument(id: "d", ["title": "x"])
      document.set(try blob(0), forKey: "set")
      document["subscript"]["deep"] = try blob(1).jsonValue
      document["list"].append(try blob(2))
      document.set(["a": [try blob(3)]], forKey: "nested")
      document.setAttachment("attached.jpg", try blob(4))
      try document.encode(Photo(title: "t", blob: blob(5), more: [nil, blob(6)]), forKey: "codable")
      try database.save(&document)
      // Another form of saving.
      try database.save("body", ["blob": try blob(7).jsonValue])
      try expect(database.blobFileCount, equals: 8)
      try expect(!database.blobStore.hasUnsaved)
      let read = try #require(try database.document("d"))
      try expect(read.blob(forKey: "set")?.content(), equals: contents[0])
      try expect(read["subscript"]["deep"].blob?.content(), equals: contents[1])
      try expect(read.array(forKey: "list")?.blob(at: 0)?.content(), equals: contents[2])
      try expect(read["nested"]["a"][0].blob?.content(), equals: contents[3])
      try expect(read.attachment("attached.jpg")?.blob.content(), equals: contents[4])
      let photo = try #require(try read["codable"].decode(Photo.self))
      try expect(photo.blob.content(), equals: contents[5])
      try expect(photo.more.map { try $0?.content() }, equals: [nil, contents[6]])
      // Before and after the save, and in a copy.
      try expect(document.blob(forKey: "set")?.content(), equals: contents[0])
      try expect(read.toMutable()["subscript"]["deep"].blob?.content(), equals: contents[1])
      var viewed: [UInt8]?
      try database.enumerate(AllDocuments(keys: ["body"])) { view in
        viewed = try view.document().blob(forKey: "blob")?.content()
        return true
      }
      expect(viewed, equals: contents[7])
      try expect(database.check(deep: true).isEmpty)
    }
  }

  @Test("a document takes its blobs to another database", arguments: someEngines)
  func moving(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let large = random(1_500_000)
    let small = random(10)
    var other = try Database.open(
      "other", in: directory.path, options: DatabaseOptions(engine: .sqlite, durability: .none))
    try withDatabase(engine) { database in
      var document = MutableDocument(id: "d", ["n": 1])
      document.set(try Blob(large), forKey: "large")
      document.setAttachment("small", try Blob(small))
      try other.save(&document)
      let read = try #require(try other.document("d"))
      // As a whole, by a blob, by a value, and by a revision.
      var copy = MutableDocument(id: "whole", try read.value())
      try database.save(&copy)
      var blobs = MutableDocument(id: "blobs")
      blobs.set(read.blob(forKey: "large"), forKey: "x")
      blobs["y"] = try read["_attachments"]["small"].jsonValue()
      try database.inBatch { try database.save(&blobs) }
      let revisions = try #require(try other.revisions(of: "d"))
      try database.apply(
        PulledRevision(id: "pulled", history: ["1-a"], body: .value(try #require(revisions[0].body))))
      for id in ["whole", "pulled"] {
        let found = try #require(try database.document(id))
        try expect(found.blob(forKey: "large")?.content(), equals: large)
        try expect(found.attachment("small")?.blob.content(), equals: small)
      }
      try expect(database.document("blobs")?.blob(forKey: "x")?.content(), equals: large)
      try expect(database.blobFileCount, equals: 2)
      try expect(!database.blobStore.hasUnsaved)
      // What can't be found says what to do.
      let kept = try #require(read.blob(forKey: "large"))
      let json = String(decoding: try read.json(), as: UTF8.self)
      for id in ["whole", "blobs", "pulled"] { try database.purge(id) }
      try database.compact()
      try expect(database.blobFileCount, equals: 0)
      let refusal = try thrown(DocumentError.self) { try database.save("json", DocumentBody(json: json)) }
      expect(refusal?.code == .missingBlob && refusal?.message.contains("makeBlob") == true)
      try other.close()
      try expect(storageCode { _ = try kept.content() }, equals: .closed)
      try expect(documentCode { try database.save("late", ["x": kept.jsonValue]) }, equals: .missingBlob)
      try expect(
        documentCode { _ = try Blob(digest: kept.digest, length: 1).content() }, equals: .missingBlob)
      try expect(database.documentCount == 0 && !database.blobStore.hasUnsaved)
      try expect(database.check(deep: true).isEmpty)
      other = try Database.open(
        "other", in: directory.path, options: DatabaseOptions(engine: .sqlite, durability: .none))
      try expect(other.document("d")?.blob(forKey: "large")?.content(), equals: large)
      try other.close()
    }
  }

  @Test(
    "a refused or rolled back save leaves nothing, and the blob can be saved again", arguments: someEngines)
  func undone(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let bytes = random(100_000)
      var document = MutableDocument(id: "d")
      document.set(try Blob(bytes), forKey: "blob")
      try database.save("d", ["n": 1])
      try expect(documentCode { try database.save(&document, onConflict: .fail) }, equals: .conflict)
      try expect(!database.blobStore.hasUnsaved)
      #expect(throws: Stop.self) {
        try database.inBatch {
          try database.save(&document)
          try expect(database.document("d")?.blob(forKey: "blob")?.content(), equals: bytes)
          throw Stop()
        }
      }
      try expect(!database.blobStore.hasUnsaved)
      try database.inBatch {
        try expect(documentCode { try database.save(&document, onConflict: .fail) }, equals: .conflict)
        try database.save("e", ["blob": document["blob"]])
      }
      try expect(!database.blobStore.hasUnsaved)
      try database.purge("e")
      try database.compact()
      try expect(database.blobFileCount, equals: 0)
      // It is still in the document.
      try database.save(&document)
      try expect(database.document("d")?.blob(forKey: "blob")?.content(), equals: bytes)
    }
  }

  @Test("a save doesn't use up the claim of another writer of the same content", arguments: someEngines)
  func claims(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let bytes = random(1_000)
      let made = try database.makeBlob(bytes)
      var document = MutableDocument(id: "d")
      document.set(try Blob(bytes), forKey: "blob")
      try database.save(&document)
      try database.purge("d")
      try database.compact()
      try database.save("made", ["blob": made.jsonValue])
      try expect(database.contents(of: made), equals: bytes)
      try expect(!database.blobStore.hasUnsaved)
      // Two documents of one transaction, and one that fails.
      try database.inBatch {
        try database.save("one", ["blob": document["blob"]])
        try database.save("two", ["blob": document["blob"]])
        _ = try documentCode { try database.save("_three", ["blob": document["blob"]]) }
      }
      try expect(!database.blobStore.hasUnsaved)
      try expect(database.blobFileCount, equals: 1)
    }
  }

  @Test("the file of a large blob must stay as it is", arguments: someEngines)
  func changedFile(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let path = directory.path + "/file"
    try withDatabase(engine) { database in
      try Data(random(2_000_000)).write(to: URL(filePath: path))
      let blob = try Blob(contentsOfFile: path)
      try Data(random(2_000_001)).write(to: URL(filePath: path))
      try expect(storageCode { try database.save("d", ["blob": blob.jsonValue]) }, equals: .damaged)
      try expect(storageCode { _ = try blob.content() }, equals: .damaged)
      try FileManager.default.removeItem(atPath: path)
      try expect(storageCode { try database.save("d", ["blob": blob.jsonValue]) }, equals: .notFound)
      try expect(database.documentCount == 0 && !database.blobStore.hasUnsaved)
      // A small file has been read.
      try Data([1, 2]).write(to: URL(filePath: path))
      let small = try Blob(contentsOfFile: path)
      try FileManager.default.removeItem(atPath: path)
      try database.save("d", ["blob": small.jsonValue])
      try expect(database.document("d")?.blob(forKey: "blob")?.content(), equals: [1, 2])
    }
  }

  @Test("blobs are members of other encoders' values by their reference")
  func coding() throws {
    let blob = try Blob([1, 2, 3], contentType: "text/plain")
    let json = try JSONEncoder().encode(["b": blob])
    let read = try #require(try JSONDecoder().decode([String: Blob].self, from: json)["b"])
    expect(read, equals: blob)
    try expect(documentCode { _ = try read.content() }, equals: .missingBlob)
    #expect(throws: DecodingError.self) { try JSONDecoder().decode([Blob].self, from: Data("[{}]".utf8)) }
    expect("\(blob)", equals: blob.jsonValue.description)
  }
}
