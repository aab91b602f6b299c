import TestSupport

@Suite("Blobs that a database lacks when it is converted") struct LostBlobTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("a.touchstone") }
  /// Blobs of documents, of a replaced revision, of branches that conflict, and of a tombstone.
  private static let lost = [
    "'a': one at /again", "'b': one at /photos/0", "'b': two at /photos/1", "'conflict': four at /file",
    "'replaced': three at /file", "'gone': five at /file",
  ]

  /// Returns the contents of the blobs by their digests.
  private func makeFixture(_ engine: EngineName) throws -> [String: String] {
    let database = try Database.open(
      path, options: DatabaseOptions(engine: engine, creation: .createNew, key: try key(of: engine)))
    var names: [String: String] = [:]
    func blob(_ text: String) throws -> JSONValue {
      let blob = try database.makeBlob(Array(text.utf8))
      names["\(blob.digest)"] = text
      return blob.jsonValue
    }
    try database.save("b", ["photos": .array([try blob("one"), try blob("two")])])
    try database.save("a", ["again": try blob("one"), "file": try blob("one")])
    try database.save("replaced", ["file": try blob("three")])
    try database.save("replaced", ["n": 2])
    try database.save("plain", ["text": "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="])
    for side in ["1-aa", "1-bb"] {
      let body: JSONValue = ["file": try blob("four"), "side": .string(side)]
      try database.apply(PulledRevision(id: "conflict", history: [side], body: .value(body)))
    }
    let body: JSONValue = ["file": try blob("five")]
    try database.apply(PulledRevision(id: "gone", history: ["1-aa"], isDeleted: true, body: .value(body)))
    try database.close()
    return names
  }

  /// What a report says, with the contents in the place of the digests.
  private func lines(_ report: ConversionReport, _ names: [String: String]) -> [String] {
    report.missingBlobs.map { blob in
      expect(
        blob.description,
        equals: "document '\(blob.documentID)': the blob \(blob.digest) at \(blob.path) is missing")
      return "'\(blob.documentID)': \(names[blob.digest] ?? blob.digest) at \(blob.path)"
    }
  }

  private func expectAll(_ report: ConversionReport, _ names: [String: String], _ what: String) {
    expect(lines(report, names), equals: Self.lost, "\(what)")
    expect(report.missingBlobCount, equals: 5, "\(what)")
    expect(report.documentCount, equals: 5, "\(what)")
    expect(!report.isComplete, "\(what)")
  }

  private func removeBlobs() throws {
    let blobs = path + "/Attachments"
    for name in try FileManager.default.contentsOfDirectory(atPath: blobs) {
      try FileManager.default.removeItem(atPath: blobs + "/" + name)
    }
  }

  @Test("each way to make another database of it names them, and makes it", arguments: someEngines)
  func all(_ engine: EngineName) throws {
    let names = try makeFixture(engine)
    let old = try key(of: engine)
    let target: EngineName =
      try Engines.type(engine).encrypts ? .sqlcipher : engine == .lmdb ? .sqlite : .lmdb
    // Nothing is missing yet.
    let whole = try Database.copy(path, to: directory.file("whole"), key: old)
    expect(whole.isComplete && whole.missingBlobs.isEmpty && whole.documentCount == 0, "\(whole)")
    try removeBlobs()
    try expectAll(Database.copy(path, to: directory.file("copy"), key: old), names, "a copy")
    try expectAll(Database.convert(path, to: target, at: directory.file("other"), key: old), names, "beside")
    let zip = directory.file("a.zip")
    let files = try TestSupport.files(below: path).map { ("a.touchstone/" + $0.key, $0.value) }
    try storedZip(files).write(to: URL(fileURLWithPath: zip))
    try expectAll(Database.copy(zip, to: directory.file("unpacked"), key: old), names, "a zip file")
    try expectAll(Database.convert(path, to: target, key: old), names, "in place")
    if try !Engines.type(target).encrypts {
      try expectAll(Database.encrypt(path, key: newKey()), names, "encrypted")
      try expectAll(Database.rotateKey(path, key: newKey()), names, "with a new data key")
      try expectAll(Database.decrypt(path, key: newKey()), names, "decrypted")
    }
    for name in ["copy", "other", "unpacked"] {
      let database = try Database.open(
        directory.file(name), options: DatabaseOptions(creation: .openExisting, key: old))
      try expect(database.documentCount, equals: 5, "\(name)")
      let faults = try database.check(deep: true).map { "\($0)" }
      expect(!faults.isEmpty && faults.allSatisfy { $0.contains("is missing") }, "\(name): \(faults)")
      try database.close()
    }
  }

  @Test("a copy from a database in which blobs were lost says only what is still missing")
  func restored() throws {
    let names = try makeFixture(.sqlite)
    try removeBlobs()
    let database = try Database.open(path, options: DatabaseOptions(creation: .openExisting))
    try database.save("another", ["file": try database.makeBlob(Array("one".utf8)).jsonValue])
    try database.close()
    let report = try Database.copy(path, to: directory.file("copy"))
    expect(lines(report, names), equals: Self.lost.filter { !$0.contains(": one at") })
    expect(report.missingBlobCount, equals: 4)
  }

  @Test(
    "a copy takes along what its snapshot names, though others remove it meanwhile", arguments: someEngines)
  func removedMeanwhile(_ engine: EngineName) throws {
    let key = try key(of: engine)
    let database = try Database.open(path, options: DatabaseOptions(engine: engine, key: key))
    defer { try? database.close() }
    for n in 0..<3 {
      let blob = try database.makeBlob([UInt8](repeating: UInt8(n), count: 100_000))
      try database.save("doc\(n)", ["file": blob.jsonValue])
    }
    var isCompacted = false
    let report = try Database.copy(path, to: directory.file("copy"), key: key) { progress in
      guard progress.phase == .blobs, !isCompacted else { return }
      isCompacted = true
      for n in 0..<3 { try database.purge("doc\(n)") }
      try database.compact()
    }
    expect(isCompacted)
    expect(report.isComplete, "\(report)")
    let copy = try Database.open(
      directory.file("copy"), options: DatabaseOptions(creation: .openExisting, key: key))
    try expect(copy.documentCount, equals: 3)
    try expect(copy.check(deep: true).map { "\($0)" }, equals: [])
    try copy.close()
    // Nobody holds them any more.
    try database.compact()
    let left = try FileManager.default.contentsOfDirectory(atPath: path + "/Attachments")
    expect(left.filter { !$0.hasPrefix("incoming-") }, equals: [])
  }

  @Test("blobs stay while somebody holds them, and go with the next compaction", arguments: someEngines)
  func held(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let blob = try database.makeBlob(Array("held".utf8))
      try database.save("doc", ["file": blob.jsonValue])
      try database.holdingBlobs {
        // Holds don't exclude each other.
        try database.holdingBlobs {}
        try database.purge("doc")
        try database.compact()
        try expect(database.contents(of: blob), equals: Array("held".utf8))
      }
      try database.compact()
      try expect(!database.contains(blob))
    }
  }
}
