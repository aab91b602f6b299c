import TestSupport

@testable import Blobs
@testable import Touchstone

/// Named attachments in the shape of Couchbase Lite 1.x (spec/format-1x.md, section 6).
@Suite("Named attachments") struct AttachmentTests {
  private let databases = TestDatabases()

  @Test("they are listed, read, set and removed, with the revision that changed each", arguments: someEngines)
  func lifeCycle(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var document = MutableDocument(id: "doc", ["n": 1])
    document.setAttachment("a.txt", try database.makeBlob(Array("one".utf8), contentType: "text/plain"))
    try database.save(&document)
    var saved = try #require(try database.document("doc"))
    expect(saved.attachmentNames, equals: ["a.txt"])
    expect(saved.attachment("a.txt")?.revpos, equals: 1)
    expect(saved.attachment("none") == nil)
    let stored = try saved["_attachments"]["a.txt"].jsonValue()
    try expect(
      stored,
      equals: [
        "stub": true, "length": 3, "revpos": 1, "content_type": "text/plain",
        "digest": .string(try database.makeBlob(Array("one".utf8)).digest.text),
      ])

    // Another property changes: the attachment stays what it was.
    document = try MutableDocument(saved)
    document["n"] = 2
    document.setAttachment("b.bin", try database.makeBlob([1, 2]))
    try database.save(&document)
    saved = try #require(try database.document("doc"))
    expect(saved.attachments.mapValues(\.revpos), equals: ["a.txt": 1, "b.bin": 2])
    try expect(saved.attachment("b.bin").map { try database.contents(of: $0.blob) }, equals: [1, 2])

    // Set again with the same bytes it is the same; with others it is new.
    document = try MutableDocument(saved)
    document.setAttachment("a.txt", try database.makeBlob(Array("one".utf8), contentType: "text/plain"))
    document.setAttachment("b.bin", try database.makeBlob([3]))
    try database.save(&document)
    saved = try #require(try database.document("doc"))
    expect(saved.attachments.mapValues(\.revpos), equals: ["a.txt": 1, "b.bin": 3])

    document = try MutableDocument(saved)
    document.removeAttachment("a.txt")
    document.removeAttachment("none")
    expect(document.attachmentNames, equals: ["b.bin"])
    try database.save(&document)
    document.removeAttachment("b.bin")
    try database.save(&document)
    saved = try #require(try database.document("doc"))
    expect(saved.attachmentNames, equals: [])
    expect(!saved["_attachments"].exists)
    try database.compact()
    try expect(database.blobFileCount, equals: 0)
  }

  @Test(
    "the same saves give the same revisions, whether a compaction comes between them or not",
    arguments: someEngines)
  func revisionsDontDependOnCompaction(_ engine: EngineName) throws {
    func history(compacting: Bool) throws -> [RevisionID] {
      var ids: [RevisionID] = []
      try withDatabase(engine) { database in
        func compact() throws { if compacting { try database.compact() } }
        var document = MutableDocument(id: "doc", ["n": 1])
        document.setAttachment("a", try database.makeBlob([1]))
        document.setAttachment("b", try database.makeBlob([2]))
        ids.append(try database.save(&document).revisionID)
        document = try MutableDocument(try #require(try database.document("doc")))
        let first = document
        document.removeAttachment("a")
        ids.append(try database.save(&document).revisionID)
        try compact()
        // Removed and added again, with the same bytes: new.
        document.setAttachment("a", try database.makeBlob([1]))
        ids.append(try database.save(&document).revisionID)
        var saved = try #require(try database.document("doc"))
        expect(saved.attachments.mapValues(\.revpos), equals: ["a": 3, "b": 1])
        try compact()
        // On top of a revision that was replaced: as they were read with it.
        var branch = first
        branch["n"] = 2
        branch.setAttachment("b", try database.makeBlob([3]))
        ids.append(try database.save(&branch, onConflict: .allowConflict).revisionID)
        let leaf = try #require(try database.leaves(of: "doc").first { $0.id == ids[3] }?.body)
        expect(leaf["_attachments"]["a"]["revpos"] == 1 && leaf["_attachments"]["b"]["revpos"] == 2)
        try compact()
        branch["n"] = 3
        ids.append(try database.save(&branch).revisionID)
        saved = try #require(try database.document("doc"))
        // A stub is of what the parent has, and not of what any older one had.
        try compact()
        let stub: JSONValue = ["_attachments": ["c": ["stub": true, "revpos": 1]]]
        #expect(throws: DocumentError.self) { try database.save("doc", .value(stub)) }
      }
      return ids
    }
    let reference = try history(compacting: false)
    expect(reference.count, equals: 5)
    try expect(history(compacting: true), equals: reference)
  }

  @Test("names of attachments are told apart by their bytes")
  func normalizedNames() throws {
    let database = try databases.open(.sqlite)
    var document = MutableDocument(id: "doc")
    document.setAttachment("caf\u{e9}", try database.makeBlob([1]))
    document.setAttachment("cafe\u{301}", try database.makeBlob([2]))
    try database.save(&document)
    let saved = try #require(try database.document("doc"))
    expect(saved.attachmentNames.map { $0.utf8.count }, equals: [6, 5])
    try expect(saved.attachment("caf\u{e9}").map { try database.contents(of: $0.blob) }, equals: [1])
    try expect(saved.attachment("cafe\u{301}").map { try database.contents(of: $0.blob) }, equals: [2])
  }

  @Test(
    "a document that is saved over a tombstone has new attachments; a tombstone has none",
    arguments: someEngines)
  func overTombstone(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var document = MutableDocument(id: "doc")
    document.setAttachment("a", try database.makeBlob([1]))
    try database.save(&document)
    let kept = try #require(try database.document("doc")?.value())
    try database.delete("doc", keeping: .value(kept))
    let tombstone = try #require(try database.document("doc", includeDeleted: true))
    expect(tombstone.isDeleted)
    expect(tombstone.attachmentNames, equals: [])
    try database.save("doc", .value(kept))
    try expect(database.document("doc")?.attachment("a")?.revpos, equals: 3)
  }

  @Test(
    "reserved properties beside the attachments are refused, and what can't be attachments",
    arguments: someEngines)
  func refused(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let digest = try database.makeBlob([1]).digest.text
    let good: JSONValue = ["a": ["digest": .string(digest), "stub": true, "length": 1]]
    for name in ["_id", "_rev", "_zebra", "_attachment"] {
      let code = try documentCode {
        try database.save("doc", .value(.object(JSONObject([("_attachments", good), (name, JSONValue(1))]))))
      }
      expect(code, equals: .reservedProperty, "\(name)")
    }
    try expect(documentCode { try database.save("doc", ["_attachments": [1]]) }, equals: .invalidBody)
    try expect(documentCode { try database.save("doc", ["_attachments": ["a": 1]]) }, equals: .invalidBody)
    try expect(
      documentCode { try database.save("doc", ["_attachments": ["a": ["stub": true]]]) }, equals: .missingBlob
    )
    try expect(
      documentCode { try database.save("doc", ["_attachments": ["a": ["data": "%%%"]]]) },
      equals: .invalidBody)
    try expect(
      documentCode {
        try database.save(
          "doc", ["_attachments": ["a": ["stub": true, "digest": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="]]])
      }, equals: .missingBlob)
    try expect(database.lastSequence, equals: 0)
    try database.save("doc", .value(["_attachments": good]))
    try database.save("empty", ["_attachments": [:], "n": 1])
    try expect(database.document("empty")?.value(), equals: ["n": 1])
  }

  @Test("bytes may come in the document, in base64", arguments: someEngines)
  func inline(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save(
      "doc", DocumentBody(json: #"{"_attachments":{"a":{"data":"YWJj","content_type":"text/x"}}}"#))
    let attachment = try #require(try database.document("doc")?.attachment("a"))
    expect(attachment.blob.digest.text, equals: "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=")
    expect(attachment.blob.length, equals: 3)
    expect(attachment.revpos, equals: 1)
    try expect(database.contents(of: attachment.blob), equals: Array("abc".utf8))
    try expect(!database.blobStore.hasUnsaved)
  }

  @Test(
    "revisions from elsewhere bring attachments: stored before, inline, or stubs of what is here",
    arguments: someEngines)
  func pulled(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let blob = try database.makeBlob(Array("followed".utf8))
    try database.apply(
      PulledRevision(
        id: "doc", history: ["1-aa"],
        body: .value([
          "_attachments": [
            "f": ["follows": true, "digest": .string(blob.digest.text), "length": 8, "revpos": 1],
            "i": ["data": "YWJj", "content_type": "text/plain"],
          ]
        ])))
    var document = try #require(try database.document("doc"))
    expect(document.attachments.mapValues(\.revpos), equals: ["f": 1, "i": 1])
    try expect(document["_attachments"]["f"].jsonValue()?["follows"].isNull, equals: true)
    expect(document["_attachments"]["f"]["stub"].bool, equals: true)
    // A stub of an attachment that an earlier revision has.
    try database.apply(
      PulledRevision(
        id: "doc", history: ["3-cc", "2-bb", "1-aa"],
        body: .value(["_attachments": ["i": ["stub": true, "revpos": 1]], "n": 2])))
    document = try #require(try database.document("doc"))
    expect(document.revisionID.description, equals: "3-cc")
    try expect(document.attachment("i").map { try database.contents(of: $0.blob) }, equals: Array("abc".utf8))
    expect(document.attachment("i")?.blob.contentType, equals: "text/plain")
    expect(document.attachment("i")?.revpos, equals: 1)
    // And of one that no revision has (491 in 1.x).
    let code = try documentCode {
      try database.apply(
        PulledRevision(
          id: "doc", history: ["4-dd", "3-cc"],
          body: .value(["_attachments": ["x": ["stub": true, "revpos": 2]]])))
    }
    expect(code, equals: .missingBlob)
    // A user changes what was pulled: the attachments stay.
    var mutable = try MutableDocument(document)
    mutable["n"] = 3
    try database.save(&mutable)
    try expect(database.document("doc")?.attachment("i")?.revpos, equals: 1)
    // Of a conflicting branch too.
    try database.apply(
      PulledRevision(
        id: "doc", history: ["2-ff", "1-aa"],
        body: .value(["_attachments": ["f": ["stub": true, "revpos": 1]]])))
    let other = try database.save(
      "doc", .value(["_attachments": ["f": ["stub": true]], "n": 4]), basedOn: RevisionID("2-ff"))
    let revisions = try #require(try database.revisions(of: "doc"))
    let body = try #require(revisions.first { $0.id == other.revisionID }?.body)
    expect(Attachment(body["_attachments"]["f"])?.revpos, equals: 1)
    try database.compact()
    try expect(database.blobFileCount, equals: 2)
  }

  @Test("an attachment of 1.x reads as a blob", arguments: someEngines)
  func legacyBlob(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let digest = "sha1-P1i5kI/sosq745/9BDR7kEghKps="
    var revision = PulledRevision(
      id: "doc", history: ["2-b9a637ed67d8bd3a34eb85d1ceb2a4b6"],
      body: .value([
        "_attachments": [
          "attach1": [
            "content_type": "text/plain; charset=utf-8", "digest": .string(digest), "length": 7,
            "revpos": 2,
            "stub": true,
          ]
        ]
      ]))
    revision.allowsMissingBlobs = true
    try database.apply(revision)
    let blob = try #require(try database.document("doc")?["_attachments"]["attach1"].blob)
    expect(blob.digest.text, equals: digest)
    expect(blob.length, equals: 7)
    expect(blob.contentType, equals: "text/plain; charset=utf-8")
  }

  @Test(
    "what is saved is what clients of CouchDB can have: a type, and no other members", arguments: someEngines)
  func members(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save(
      "doc",
      .value([
        "_attachments": [
          "a": ["data": "YWJj", "content_type": 1, "encoded_length": 9, "name": "a"],
          "b": ["data": "YWJj", "content_type": "text/plain", "encoding": "gzip"],
        ]
      ]))
    let stored = try #require(try database.document("doc")?["_attachments"].jsonValue())
    let digest: JSONValue = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
    expect(
      stored["a"],
      equals: [
        "content_type": "application/octet-stream", "digest": digest, "length": 3, "revpos": 1,
        "stub": true,
      ])
    expect(stored["b"]["encoding"] == "gzip" && stored["b"]["encoded_length"] == 3)
    try expect(
      documentCode {
        try database.save("other", .value(["_attachments": ["a": ["data": "YWJj", "encoding": "deflate"]]]))
      }, equals: .invalidBody)
    // Documents of other databases keep theirs, also when they are edited.
    try database.apply(
      PulledRevision(
        id: "foreign", history: ["1-aa"],
        body: .value([
          "_attachments": ["a": ["data": "YWJj", "encoding": "deflate", "revpos": 7], "b": ["data": "YWJj"]]
        ])))
    var document = try MutableDocument(#require(try database.document("foreign")))
    expect(document["_attachments"]["a"]["encoding"].string, equals: "deflate")
    expect(document.attachments.mapValues(\.revpos), equals: ["a": 7, "b": 1])
    document["n"] = 1
    try database.save(&document)
    let edited = try #require(try database.document("foreign"))
    expect(edited.attachments.mapValues(\.revpos), equals: ["a": 7, "b": 1])
    expect(edited.attachment("a")?.encoding, equals: "deflate")
    expect(edited.attachment("b")?.blob.contentType, equals: "application/octet-stream")
  }

  @Test("of thousands of attachments each keeps its generation", arguments: someEngines)
  func thousands(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let names = (0..<3_000).map { "file-\($0)" }
    let entry: JSONValue = ["data": "YWJj"]
    let all = JSONValue.object(JSONObject(names.map { ($0, entry) }))
    try database.save("doc", .value(["_attachments": all]))
    let first = try #require(try database.document("doc"))
    var attachments = try #require(try first["_attachments"].jsonValue())
    var document = try MutableDocument(first)
    attachments["file-7"] = ["data": "YWJk"]
    document["_attachments"] = attachments
    try database.save(&document)
    let saved = try #require(try database.document("doc"))
    expect(saved.attachments.filter { $0.value.revpos == 2 }.keys.sorted(), equals: ["file-7"])
    expect(saved.attachmentNames.count, equals: names.count)
  }
}
