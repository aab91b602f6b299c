import TestSupport
import Touchstone

/// The commands on a whole database, over every engine.
@Suite struct DatabaseCommandTests {
  @Test("a limit on the size of files is an error that says so", arguments: ["sqlite", "lmdb"])
  func fileSizeLimit(_ engine: String) throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", engine)
      try tool.write(#"{"text":"\#(String(repeating: "x", count: 2_000_000))"}"# + "\n", to: "large.jsonl")
      let result = try tool.run(
        "/bin/bash", ["-c", "ulimit -f 500; exec \"$0\" import db large.jsonl", Tool.executable])
      let isSaid = ["file size limit", "File too large"].contains { result.errors.contains($0) }
      expect(result.status == 3 && isSaid, "\(result.errors)")
      try tool.succeed("check", "db", "--deep")
    }
  }

  /// A reader that may not make the file or read it locks the directory instead.
  @Test(arguments: TestEngine.some) func filesStayWhileAReaderWithoutALockFileReads(engine: TestEngine) throws
  {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", "{}")
      try FileManager.default.removeItem(atPath: tool.path("db.touchstone/lock"))
      var options = DatabaseOptions(creation: .openExisting, isReadOnly: true)
      if let file = tool.keyFile { options.key = try .raw(Array(Data(contentsOf: URL(filePath: file)))) }
      let reader = try Database.open(tool.path("db"), options: options)
      try expect(reader.document("a") != nil)
      let other = engine.encrypts ? "sqlcipher" : "lmdb"
      let refused = try tool("convert", "db", "--engine", other)
      expect(refused.status == 3 && refused.errors.contains("open in another process"), "\(refused.errors)")
      try tool.succeed("put", "db", "b", "{}")
      try expect(reader.document("b") != nil)
      try reader.close()
      try tool.succeed("convert", "db", "--engine", other)
    }
  }

  /// LMDB follows page numbers without a check of its own, and a wrong one ends the process.
  @Test(arguments: [TestEngine.lmdb, .sqlite]) func aCheckOfADamagedFileEndsWithAnAnswer(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      let lines = (0..<400).map {
        #"{"_id":"d\#($0)","n":\#($0),"p":"\#(String(repeating: "p", count: $0 * 2))"}"#
      }
      try tool.write(lines.joined(separator: "\n"), to: "in.jsonl")
      try tool.succeed("import", "db", "in.jsonl")
      try tool.succeed("index", "db", "create", "i", "n")
      let names = try FileManager.default.contentsOfDirectory(atPath: tool.path("db.touchstone"))
      let name = try #require(names.first { $0.hasSuffix(".mdb") || $0.hasSuffix(".sqlite") })
      let file = URL(filePath: tool.path("db.touchstone/" + name))
      let whole = try Data(contentsOf: file)
      let page = 4_096
      var random = SeededGenerator(seed: testSeed)
      var found = 0
      let pages = 2..<(whole.count / page)
      for number in stride(from: pages.lowerBound, to: pages.upperBound, by: max(1, pages.count / 16)) {
        var damaged = whole
        // With a whole header every other time.
        let start = number * page + (number % 2 == 0 ? 16 : 0)
        for offset in start..<((number + 1) * page) { damaged[offset] = UInt8(random.below(256)) }
        try damaged.write(to: file)
        let check = try tool("check", "db")
        expect([0, 1, 3].contains(check.status), "page \(number): \(check.status) \(check.errors)")
        if check.status == 1 {
          expect(!check.faults.isEmpty && check.errors.contains("fault"), "page \(number): \(check.output)")
        }
        if check.status != 0 { found += 1 }
      }
      expect(found > 0)
      try whole.write(to: file)
      try expect(tool.succeed("check", "db").faults, equals: [])
    }
  }

  @Test(arguments: TestEngine.some) func infoTellsWhatItIs(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", "{}")
      try tool.succeed("rm", "db", "a")
      try tool.succeed("put", "db", "b", "{}")
      let json = try tool.succeed("info", "db", "--json").json()
      expect(
        Set(json.keys),
        equals: [
          "engine", "library", "encrypted", "documents", "lastSequence", "publicUUID", "privateUUID", "files",
          "indexes",
        ])
      expect(json["engine"] as? String, equals: engine.rawValue)
      expect(json["encrypted"] as? Bool, equals: engine.encrypts)
      expect(json["documents"] as? Int, equals: 1)
      expect(json["lastSequence"] as? Int, equals: 3)
      let uuid = try #require(json["publicUUID"] as? String)
      expect(UUID(uuidString: uuid) != nil)
      expect(json["privateUUID"] as? String != uuid)
      let files = try #require(json["files"] as? [[String: Any]])
      let names = files.compactMap { $0["name"] as? String }
      expect(names.contains("database.json"))
      expect(names.contains("key.json"), equals: engine.encrypts)
      for file in files {
        let name = try #require(file["name"] as? String)
        let size = try FileManager.default.attributesOfItem(atPath: tool.path("db.touchstone/\(name)"))[.size]
        expect(file["bytes"] as? Int, equals: size as? Int, "\(name)")
      }
      let again = try tool.succeed("info", "db.touchstone", "--read-only", "--json").json()
      expect(again["publicUUID"] as? String, equals: uuid)
      try expect(tool.succeed("info", "db").output.contains(uuid))
    }
  }

  @Test(arguments: TestEngine.some) func whatIsThereIsNotMadeAgain(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", "{}")
      try expect(tool("create", "db", "--engine", engine.rawValue).status, equals: 2)
      let nowhere = try tool("create", "x/y/db", "--engine", engine.rawValue)
      expect(nowhere.status == 2 && nowhere.errors.contains("the parent directory"))
      try tool.succeed("create", "x/y/db", "--engine", engine.rawValue, "--parents")
      try tool.succeed("info", "x/y/db")
      try expect(tool.succeed("ls", "db").lines, equals: ["a"])
    }
  }

  @Test(arguments: TestEngine.some) func deletingLeavesNothing(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try tool.succeed("delete", "db")
      expect(!FileManager.default.fileExists(atPath: tool.path("db.touchstone")))
      try expect(tool("delete", "db").status, equals: 3)
    }
  }

  @Test(arguments: TestEngine.some) func compactionKeepsTheDocumentsAndDropsOldBodies(
    engine: TestEngine
  ) throws {
    try engine.withDatabase { tool in
      let filler = String(repeating: "lorem ipsum ", count: 40)
      let lines = (0..<500).map { #"{"_id":"d\#($0)","text":"\#(filler)"}"# }.joined(separator: "\n")
      try tool.succeed("import", "db", "-", input: lines)
      let old = try tool.succeed("get", "db", "d7", "--json").json()["rev"] as? String ?? ""
      try tool.succeed("import", "db", "-", input: lines)
      let before = try tool.succeed("export", "db", "--metadata").output
      try expect(tool.succeed("get", "db", "d7", "--rev", old).output.contains("lorem"))
      try tool.succeed("compact", "db")
      try expect(tool.succeed("export", "db", "--metadata").output, equals: before)
      try expect(tool("get", "db", "d7", "--rev", old).status, equals: 1)
      try expect(tool.succeed("check", "db", "--deep").faults, equals: [])
    }
  }

  @Test(arguments: TestEngine.some) func aSoundDatabaseHasNoFaultsAndABrokenOneHas(engine: TestEngine)
    throws
  {
    try engine.withDatabase { tool in
      let filler = String(repeating: "lorem ipsum ", count: 40)
      let lines = (0..<2_000).map { #"{"_id":"d\#($0)","text":"\#(filler)"}"# }.joined(separator: "\n")
      try tool.succeed("import", "db", "-", input: lines)
      try tool.succeed("rm", "db", "d5")
      for arguments in [
        ["check", "db"], ["check", "db", "--deep"], ["check", "db", "--deep", "--read-only"],
      ] {
        let result = try tool.run(Tool.executable, arguments)
        expect(result.status, equals: 0, "\(arguments): \(result.output)\(result.errors)")
        expect(result.faults, equals: [])
        // A deep check of an encrypted database says of each file how random it looks.
        let saysOfFiles = engine.encrypts && arguments.contains("--deep")
        expect(result.lines.contains { $0.hasPrefix("file ") }, equals: saysOfFiles)
        let searched = result.lines.first { $0.hasPrefix("searched ") }
        expect(
          (searched != nil) == saysOfFiles && searched?.hasSuffix(": nothing can be read") ?? true,
          "\(result.output)")
      }
      let name = try #require(
        FileManager.default.contentsOfDirectory(atPath: tool.path("db.touchstone")).filter {
          $0.hasPrefix("data-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") && !$0.hasSuffix("-lock")
        }.sorted().first)
      let file = try #require(FileHandle(forUpdatingAtPath: tool.path("db.touchstone/\(name)")))
      let size = try file.seekToEnd()
      try file.seek(toOffset: size / 2)
      try file.write(contentsOf: Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 37 >> 3) }))
      try file.close()
      let broken = try tool("check", "db", "--deep")
      expect(broken.status == 1 || broken.status == 3, "\(broken.output)\(broken.errors)")
      expect(!broken.errors.isEmpty)
    }
  }

  @Test func datasetsAreListed() throws {
    try Tool.run { tool in
      let table = try tool.succeed("datasets").output
      expect(table.contains("travel-sample"))
      expect(table.contains("synthetic-travel"))
      for line in try tool.succeed("datasets", "--json").lines {
        let dataset = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        expect(dataset["license"] as? String != "")
      }
    }
  }
}
