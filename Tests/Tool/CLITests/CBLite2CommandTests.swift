import TestSupport

/// `.cblite2` databases in and out, over every engine.
@Suite struct CBLite2CommandTests {
  @Test(arguments: TestEngine.some) func whatIsExportedIsImported(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.write(#"{"_id":"a","n":1}"# + "\n" + #"{"_id":"b","n":2}"# + "\n", to: "in.jsonl")
      try tool.succeed("import", "db", "in.jsonl")
      try tool.succeed("rm", "db", "b")
      try tool.succeed("export", "db", "out.cblite2", "--format", "cblite2")
      let report = try tool.succeed("export", "db", "again.cblite2", "--json").json()
      expect(report["documents"] as? Int == 1 && report["tombstones"] as? Int == 1)
      try tool.succeed("create", "back", "--engine", engine.rawValue)
      let imported = try tool.succeed("import", "back", "out.cblite2", "--json").json()
      expect(imported["documents"] as? Int == 1 && imported["tombstones"] as? Int == 1)
      expect(imported["skipped"] as? Int == 0 && imported["version"] as? Int == 201)
      try tool.succeed("verify", "db", "back", "--sequences")
      let lines = try tool.succeed("import", "back", "again.cblite2").lines
      expect(lines.contains { $0.contains("already stored") })
    }
  }

  @Test func aZipFileIsKnownByItsBytes() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "lmdb")
      try tool.succeed("put", "db", "a", #"{"n":1}"#)
      try tool.succeed("export", "db", "out.cblite2")
      let entries = try files(below: tool.path("out.cblite2")).map { ("out.cblite2/" + $0.key, $0.value) }
      for (number, name) in ["out.zip", "OUT.CBLITE2.ZIP", "out"].enumerated() {
        try storedZip(entries).write(to: URL(filePath: tool.path(name)))
        try tool.succeed("create", "back\(number)")
        let report = try tool.succeed("import", "back\(number)", name, "--json").json()
        expect(report["documents"] as? Int, equals: 1, "\(name)")
      }
    }
  }

  @Test func anotherDatabaseOfTouchstoneIsNoFile() throws {
    try TestEngine.sqlite.withDatabase { tool in
      try tool.succeed("create", "other")
      let result = try tool("import", "db", "other.touchstone")
      expect(result.status, equals: 2)
      expect(
        result.errors.contains("other.touchstone is a database of Touchstone; 'touchstone sync' brings"),
        "\(result.errors)")
    }
  }

  @Test func whatCantBeReadIsSaid() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "lmdb")
      let missing = try tool("import", "db", "nothing.cblite2")
      expect(missing.status == 3 && missing.errors.contains("there is no database"))
      try FileManager.default.createDirectory(
        atPath: tool.path("e.cblite2"), withIntermediateDirectories: true)
      var header = [UInt8](repeating: 0xA5, count: 4_096)
      header.replaceSubrange(16..<24, with: [0x10, 0, 2, 2, 32, 64, 32, 32])
      try Data(header).write(to: URL(filePath: tool.path("e.cblite2/db.sqlite3")))
      let encrypted = try tool("import", "db", "e.cblite2")
      expect(
        encrypted.status == 3 && encrypted.errors.contains("encrypted")
          && encrypted.errors.contains("decrypt"))
      try tool.succeed("export", "db", "out.cblite2")
      let there = try tool("export", "db", "out.cblite2")
      expect(there.status == 2 && there.errors.contains("exists"))
      try expect(tool("export", "db", "--format", "cblite2").status, equals: 2)
      try expect(tool("import", "db", "out.cblite2", "--collection", "a.b").status, equals: 2)
    }
  }
}
