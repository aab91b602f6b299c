import Blobs
import TestSupport

@Suite("Blobs on a server", .enabled(if: hasServer)) struct ServerBlobTests {
  /// The number of rows of a table of the database.
  private func count(_ table: String, _ location: String) throws -> Int {
    try server().sql("SELECT count(*) FROM \"\(location.schema)\".\(table)").first.flatMap { Int($0) } ?? -1
  }

  @Test(
    "bytes of any length come back, in pieces",
    arguments: [0, 1, 65_536, 262_143, 262_144, 262_145, 2_000_001])
  func lengths(_ length: Int) throws {
    try withServerDatabase { database, location in
      let bytes = randomBytes(length)
      try database.save("a", ["file": database.makeBlob(bytes).jsonValue])
      try expect(count("pieces", location), equals: (length + 262_143) / 262_144)
      let blob = try #require(try database.document("a")?.blob(forKey: "file"))
      expect(blob.length, equals: UInt64(length))
      try expect(blob.content() == bytes)
      let reader = try blob.open()
      if length > 100 {
        try reader.seek(to: UInt64(length - 100))
        try expect(reader.read(upTo: 200), equals: Array(bytes[(length - 100)...]))
      }
    }
  }

  @Test("the same content is stored once, and one of many writers may end first")
  func sameContent() throws {
    try withServerDatabase { database, location in
      let bytes = randomBytes(300_000)
      let blobs = try (0..<3).map { _ in try database.makeBlob(bytes) }
      try database.save("a", ["file": blobs[0].jsonValue])
      try database.save("b", ["file": blobs[1].jsonValue])
      try expect(count("blobs", location), equals: 1)
      try expect(count("pieces", location), equals: 2)
      try database.purge("a")
      try database.purge("b")
      // The third writer still needs it.
      try database.compact()
      try database.save("c", ["file": blobs[2].jsonValue])
      try database.compact()
      try expect(database.document("c")?.blob(forKey: "file")?.content() == bytes)
      try expect(count("blobs", location), equals: 1)
    }
  }

  @Test("a compaction removes what no revision has, and keeps the rest")
  func collection() throws {
    try withServerDatabase({ $0.compaction = .off }) { database, location in
      for n in 0..<3 {
        try database.save(
          "doc\(n)", ["file": database.makeBlob(randomBytes(1_000, seed: UInt64(n))).jsonValue])
      }
      try database.save("doc0", ["n": 1])
      try database.purge("doc1")
      try expect(count("blobs", location), equals: 3)
      try database.compact()
      try expect(count("blobs", location), equals: 1)
      try expect(count("pieces", location), equals: 1)
      try expect(database.document("doc2")?.blob(forKey: "file")?.content().count, equals: 1_000)
      try expect(database.check(deep: true).map(\.description), equals: [])
    }
  }

  @Test("blobs stay while a copy reads them, and go with the next compaction")
  func held() throws {
    try withServerDatabase({ $0.compaction = .off }) { database, location in
      for n in 0..<3 {
        try database.save(
          "doc\(n)", ["file": database.makeBlob(randomBytes(1_000, seed: UInt64(n))).jsonValue])
      }
      let target = try newLocation()
      var isCompacted = false
      let report = try Database.copy(location, to: target) { progress in
        guard progress.phase == .blobs, !isCompacted else { return }
        isCompacted = true
        for n in 0..<3 { try database.purge("doc\(n)") }
        try database.compact()
      }
      expect(isCompacted && report.isComplete, "\(report)")
      try expect(count("blobs", target), equals: 3)
      try expect(count("blobs", location), equals: 3)
      try database.compact()
      try expect(count("blobs", location), equals: 0)
      let copy = try Database.open(target)
      try expect(copy.check(deep: true).map(\.description), equals: [])
      let blob = try #require(try copy.document("doc0")?.blob(forKey: "file"))
      try copy.holdingBlobs {
        try copy.purge("doc0")
        try copy.compact()
        try expect(blob.content().count, equals: 1_000)
      }
      try copy.compact()
      try expect(count("blobs", target), equals: 2)
      try copy.close()
      try Database.delete(target)
    }
  }

  @Test("what was never saved goes with its process, or after a day")
  func unsaved() throws {
    let location = try newLocation()
    let database = try Database.open(location)
    _ = try database.makeBlob(randomBytes(10_000))
    try expect(count("blobs", location), equals: 1)
    try database.close()
    try expect(count("blobs", location), equals: 0)
    // As a process that was killed leaves it.
    let schema = "\"\(location.schema)\""
    try server().sql(
      "INSERT INTO \(schema).blobs VALUES ('\\x01', NULL, 3, 0, now()), ('\\x02', NULL, 3, 0, now() - interval '25 hours');"
        + "INSERT INTO \(schema).pieces VALUES ('\\x01', 0, 'abc'), ('\\x02', 0, 'abc')")
    let again = try Database.open(location)
    try again.compact()
    try expect(server().sql("SELECT encode(id, 'hex') FROM \(schema).blobs"), equals: ["01"])
    try expect(count("pieces", location), equals: 1)
    try again.delete()
  }

  @Test("a missing, a short and a changed piece are noticed")
  func damage() throws {
    try withServerDatabase { database, location in
      try database.save("a", ["file": database.makeBlob(randomBytes(600_000)).jsonValue])
      let pieces = "\"\(location.schema)\".pieces"
      try server().sql("CREATE TABLE kept AS SELECT * FROM \(pieces)")
      defer { _ = try? server().sql("DROP TABLE kept") }
      for change in [
        "DELETE FROM \(pieces) WHERE number = 1",
        "UPDATE \(pieces) SET bytes = substring(bytes FROM 1 FOR 1000) WHERE number = 2",
        "UPDATE \(pieces) SET bytes = overlay(bytes PLACING '\\xffffffff' FROM 10) WHERE number = 0",
      ] {
        try server().sql(change)
        let blob = try #require(try database.document("a")?.blob(forKey: "file"))
        try expect(storageCode { try blob.content() }, equals: .damaged, "\(change)")
        try expect(!database.check(deep: true).isEmpty)
        try server().sql("TRUNCATE \(pieces); INSERT INTO \(pieces) SELECT * FROM kept")
      }
      try expect(database.check(deep: true).map(\.description), equals: [])
    }
  }

  @Test("a blob whose document can't be saved isn't left behind")
  func failedSave() throws {
    try withServerDatabase { database, location in
      struct Refused: Error {}
      #expect(throws: Refused.self) {
        try database.inBatch {
          try database.save("a", ["file": database.makeBlob(randomBytes(5_000)).jsonValue])
          throw Refused()
        }
      }
      try expect(database.documentCount, equals: 0)
      try database.close()
      let again = try Database.open(location)
      try again.compact()
      try expect(count("blobs", location), equals: 0)
      try again.close()
    }
  }

  @Test("a large blob goes through in pieces, without being whole in memory")
  func stream() throws {
    try withServerDatabase { database, location in
      let piece = randomBytes(1 << 20)
      let writer = try database.makeBlobWriter()
      for _ in 0..<40 { try writer.write(piece) }
      let stored = try writer.finish()
      try database.save("a", ["file": Blob(stored).jsonValue])
      let reader = try #require(try database.document("a")?.blob(forKey: "file")).open()
      let before = residentBytes()
      var hash = 0
      while case let bytes = try reader.read(upTo: 100_000), !bytes.isEmpty { hash += bytes.count }
      expect(hash, equals: 40 << 20)
      expect(residentBytes() - before < 16 << 20)
    }
  }
}

/// The resident memory of this process, in bytes.
private func residentBytes() -> Int {
  let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
  return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
}
