import Datasets
import TestSupport

/// `touchstone upgrade`: what it prints, and what it ends with.
@Suite struct UpgradeCommandTests {
  private func make(_ tool: Tool, _ change: (inout LegacyDatabase) -> Void = { _ in }) throws -> String {
    var settings = LegacyDatabase()
    settings.documents = 30
    settings.history = 2
    settings.attachments = 50
    change(&settings)
    return try LegacyDatabaseMaker(settings).make("old", in: tool.directory)
  }

  private func names(_ tool: Tool) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: tool.directory).filter { !$0.hasPrefix(".") }.sorted()
  }

  @Test func theReportIsATableAndJSONWhoseCountsAddUp() throws {
    try Tool.run { tool in
      _ = try make(tool)
      let table = try tool.succeed("upgrade", "old.cblite2", "table", "--engine", "lmdb", "--verify")
      expect(table.lines[0].contains("carried over"))
      expect(table.lines.contains("verified: 30 documents are equal to the source"))
      expect(table.lines.last, equals: "made \(tool.path("table.touchstone")); old.cblite2 is unchanged")
      let report = try tool.succeed("upgrade", "old.cblite2", "json", "--verify", "--json").json()
      expect(report["target"] as? String, equals: tool.path("json.touchstone"))
      expect(report["verifiedDocuments"] as? Int, equals: 30)
      for name in ["documents", "tombstones", "conflicts", "revisions", "bodies", "localDocuments"] {
        let count = try #require(report[name] as? [String: Int])
        let ways = ["carried", "skipped", "unwanted"].map { count[$0] ?? 0 }
        expect(count["read"], equals: ways.reduce(0, +))
      }
      let files = try #require(report["attachments"] as? [String: Any])
      expect(files["read"] as? Int ?? 0 > 0 && files["read"] as? Int == files["carried"] as? Int)
      try tool.succeed("verify", "table", "json", "--sequences")
    }
  }

  @Test func whatCannotBeCarriedOverIsListedAndRefusedWhenStrict() throws {
    try Tool.run { tool in
      let source = try make(tool)
      let blobs = source + "/attachments/"
      let lost = try #require(try FileManager.default.contentsOfDirectory(atPath: blobs).first)
      try FileManager.default.removeItem(atPath: blobs + lost)
      let strict = try tool("upgrade", "old.cblite2", "new", "--strict")
      expect(strict.status == 1 && strict.errors.contains("no database was made"))
      try expect(names(tool), equals: ["old.cblite2"])
      let report = try tool("upgrade", "old.cblite2", "new")
      expect(report.status == 1 && report.errors.contains("the new database was made, but not everything"))
      expect(report.errors.contains("its file is missing"))
      expect(report.output.contains("missingAttachment: 1\n"))
      try expect(tool.succeed("info", "new", "--json").json()["documents"] as? Int, equals: 30)
    }
  }

  @Test func whatIsMissingIsCountedSaidOnceAndKeepsTheOldDatabase() throws {
    try Tool.run { tool in
      let source = try make(tool)
      let id = String(repeating: "x", count: 2_000)
      let sql = "UPDATE docs SET docid = '\(id)' WHERE doc_id = (SELECT min(doc_id) FROM docs)"
      let file = try #require(
        try FileManager.default.contentsOfDirectory(atPath: source).first { $0.hasSuffix("sqlite3") })
      let changed = try tool.run("/usr/bin/sqlite3", [source + "/" + file, sql])
      try #require(changed.status == 0, "\(changed.errors)")
      let report = try tool("upgrade", "old.cblite2", "--in-place", "--verify", "--remove-old")
      expect(report.status, equals: 1)
      expect(
        report.lines.contains(
          "verified: 29 of 30 documents are equal to the source; 1 couldn't be carried over"))
      expect(report.lines.last?.hasSuffix("old.cblite2 stays as a backup"), equals: true)
      let told = report.errors.split(separator: "\n").filter { $0.contains("xxx") }
      expect(told.count, equals: 1)
      expect(told.first?.contains("xxx…': ") == true && (told.first?.utf8.count ?? 0) < 300)
      try expect(names(tool), equals: ["old.cblite2", "old.touchstone"])
    }
  }

  @Test func inPlaceKeepsTheOldOneUntilItIsToBeRemoved() throws {
    try Tool.run { tool in
      _ = try make(tool)
      let first = try tool.succeed("upgrade", "old.cblite2", "--in-place")
      expect(first.lines.last?.hasSuffix("old.cblite2 stays as a backup"), equals: true)
      try expect(names(tool), equals: ["old.cblite2", "old.touchstone"])
      try expect(tool("upgrade", "old.cblite2", "--in-place").status, equals: 2)
      try tool.succeed("delete", "old")
      let second = try tool.succeed("upgrade", "old.cblite2", "--in-place", "--remove-old")
      expect(second.lines.last?.hasSuffix("old.cblite2 was removed"), equals: true)
      try expect(names(tool), equals: ["old.touchstone"])
      try expect(tool.succeed("info", "old", "--json").json()["documents"] as? Int, equals: 30)
    }
  }

  @Test func aWrongPasswordAndSomethingElseAreToldApart() throws {
    try Tool.run { tool in
      _ = try make(tool) { $0.key = LegacyDatabase.key(password: "letmein", platform: .ios) }
      try tool.write("letmein\n", to: "right")
      try tool.write("other\n", to: "wrong")
      let without = try tool("upgrade", "old.cblite2", "new")
      expect(without.status == 3 && without.errors.contains("--key-file"))
      let wrong = try tool("upgrade", "old.cblite2", "new", "--key-file", "wrong")
      expect(wrong.status == 3 && wrong.errors.contains("the password is wrong"))
      try tool.succeed("upgrade", "old.cblite2", "new", "--key-file", "right", "--verify")
      try tool.write("notes", to: "notes.cblite")
      let notes = try tool("upgrade", "notes.cblite", "other")
      expect(notes.status == 2 && notes.errors.contains("neither a plain nor an encrypted SQLite file"))
      let missing = try tool("upgrade", "old", "other")
      expect(missing.status == 3 && missing.errors.contains("old.cblite2?"))
      try expect(names(tool), equals: ["new.touchstone", "notes.cblite", "old.cblite2", "right", "wrong"])
    }
  }

  @Test func aCheckSaysWhatWouldBeCarriedOverAndMakesNothing() throws {
    try Tool.run { tool in
      var tool = tool
      tool.environment["TMPDIR"] = tool.path("tmp")
      try FileManager.default.createDirectory(atPath: tool.path("tmp"), withIntermediateDirectories: false)
      let source = try make(tool)
      let sound = try tool.succeed("upgrade", "old.cblite2", "--check", "--verify")
      expect(
        sound.lines.last?.hasPrefix("nothing was made; an upgrade of old.cblite2 takes about "), equals: true)
      expect(sound.lines.contains("verified: 30 documents are equal to the source"))
      let blobs = source + "/attachments/"
      let lost = try #require(try FileManager.default.contentsOfDirectory(atPath: blobs).first)
      try FileManager.default.removeItem(atPath: blobs + lost)
      let report = try tool("upgrade", "old.cblite2", "--check", "--json")
      expect(report.status == 1 && report.errors.contains("not everything could be carried over: "))
      try expect(report.json()["target"] as? String, equals: "")
      try expect(names(tool), equals: ["old.cblite2", "tmp"])
      // Added to the call that is meant, it also looks at where the new database will be.
      try tool.succeed("create", "there")
      for (arguments, status, text) in [
        (["new", "--engine", "lmdb"], 1, "an upgrade of old.cblite2 to new.touchstone takes about "),
        (["--in-place"], 1, "to old.touchstone takes about "),
        (["--into", "a/b", "--parents"], 1, "to a/b/old.touchstone takes about "),
        (["there"], 2, "a file or directory with this name exists: there.touchstone"),
        (["a/b"], 2, "doesn't exist; make it first: a/b.touchstone"),
        (["--into", "a"], 2, "doesn't exist; make it first: a/old.touchstone"),
        (["nwe.cblite2"], 3, "nwe.cblite2"),
      ] {
        let result = try tool.run(Tool.executable, ["upgrade", "old.cblite2", "--check"] + arguments)
        expect(Int(result.status), equals: status, "\(arguments): \(result.errors)")
        expect(
          (result.output + result.errors).contains(text), "\(arguments): \(result.output) \(result.errors)")
      }
      try expect(names(tool), equals: ["old.cblite2", "there.touchstone", "tmp"])
      try expect(FileManager.default.contentsOfDirectory(atPath: tool.path("tmp")), equals: [])
    }
  }

  @Test func severalDatabasesAreUpgradedAtOnce() throws {
    try Tool.run { tool in
      _ = try make(tool)
      try FileManager.default.copyItem(atPath: tool.path("old.cblite2"), toPath: tool.path("new.cblite2"))
      try tool.write("no database", to: "bad.cblite")
      let result = try tool(
        "upgrade", "old.cblite2", "bad.cblite", "new.cblite2", "--into", "a/b", "--parents", "--engine",
        "lmdb")
      expect(result.status, equals: 2)
      expect(result.errors.hasPrefix("touchstone upgrade: this is neither a plain"), "\(result.errors)")
      expect(result.errors.contains("of Couchbase Lite 1.x: bad.cblite\n"), "\(result.errors)")
      expect(result.errors.contains("1 of 3 databases had faults: bad.cblite"), "\(result.errors)")
      let made = try FileManager.default.contentsOfDirectory(atPath: tool.path("a/b")).sorted()
      expect(made, equals: ["new.touchstone", "old.touchstone"])
      try tool.succeed("verify", "a/b/old", "a/b/new")
      for arguments in [
        ["old.cblite2"], ["old.cblite2", "x", "y"], ["old.cblite2", "--into", "d", "--in-place"],
        ["old.cblite2", "c/old.cblite2", "--into", "d"],
      ] { try expect(tool.run(Tool.executable, ["upgrade"] + arguments).status, equals: 2, "\(arguments)") }
    }
  }
}
