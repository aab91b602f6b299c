import TestSupport

/// Where keys come from, and what is said about wrong ones.
@Suite struct KeyTests {
  @Test func aDatabaseOpensWithItsKeyAlone() throws {
    try Tool.run { tool in
      var tool = tool
      try tool.write("open sesame\n", to: "key")
      try tool.write("open barley\n", to: "wrong")
      try tool.succeed("create", "db", "--new-key-file", "key")
      try tool.succeed("put", "db", "a", #"{"text":"a readable string"}"#, "--key-file", "key")

      let none = try tool("get", "db", "a")
      expect(none.status, equals: 3)
      expect(none.errors.contains("--key-file"))
      let wrong = try tool("get", "db", "a", "--key-file", "wrong")
      expect(wrong.status, equals: 3)
      expect(wrong.errors.contains("the key doesn't open"))
      try expect(tool("get", "db", "a", "--key-file", "absent").status != 0)
      try expect(tool("get", "db", "a", "--key-file", "key").status, equals: 0)

      tool.environment["TOUCHSTONE_KEY"] = "open sesame"
      try expect(tool("get", "db", "a").status, equals: 0)
      try expect(tool("get", "db", "a", "--key-file", "wrong").status, equals: 3)

      // A damaged key file is told apart from a wrong key.
      var text = try tool.read("db.touchstone/key.json")
      text.replace("\"wrappedKey\": \"", with: "\"wrappedKey\": \"A")
      try tool.write(text, to: "db.touchstone/key.json")
      let damaged = try tool("get", "db", "a")
      expect(damaged.status, equals: 3)
      expect(damaged.errors.contains("damaged"))
    }
  }

  @Test("a key's variable is gone once it is read") func variables() throws {
    try Tool.run { tool in
      var tool = tool
      tool.environment["TOUCHSTONE_KEY"] = "open sesame"
      try tool.succeed("create", "db", "--engine", "lmdb-encrypted")
      let server = try Child(tool, Tool.executable, ["serve", "db", "--listen", "127.0.0.1:0"])
      defer { server.kill() }
      try server.wait { server.output.contains("\n") }
      let environment = try Data(contentsOf: URL(filePath: "/proc/\(server.identifier)/environ"))
      expect(environment.firstRange(of: Data("PATH=".utf8)) != nil)
      expect(environment.firstRange(of: Data("sesame".utf8)) == nil)
    }
  }

  @Test("a server for reading makes no certificate") func readOnlyCertificate() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db")
      let before = try FileManager.default.contentsOfDirectory(atPath: tool.path(".")).sorted()
      let result = try tool("serve", "db", "--read-only", "--tls", "self-signed", "--listen", "127.0.0.1:0")
      expect(result.status, equals: 2)
      expect(result.errors.contains("--tls-cert"))
      try expect(FileManager.default.contentsOfDirectory(atPath: tool.path(".")).sorted(), equals: before)
    }
  }

  @Test func aFileOf32BytesIsARawKey() throws {
    try Tool.run { tool in
      try Data((0..<32).map { UInt8($0) }).write(to: URL(filePath: tool.path("raw")))
      try tool.succeed("create", "db", "--new-key-file", "raw")
      try expect(tool.read("db.touchstone/key.json").contains("HKDF-SHA256"))
      try expect(tool("info", "db", "--key-file", "raw").status, equals: 0)
    }
  }

  @Test(arguments: [TestEngine.sqlite, .lmdb, .sqlcipherPlain])
  func whatIsNotEncryptedIgnoresTheKey(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      var tool = tool
      tool.environment["TOUCHSTONE_KEY"] = "open sesame"
      try tool.succeed("info", "db")
      try expect(tool("key", "show", "db").status, equals: 1)
    }
  }

  @Test func anEngineThatCantEncryptRefusesANewKeyAndOneThatHasToNeedsOne() throws {
    try Tool.run { tool in
      try tool.write("open sesame\n", to: "key")
      for engine in ["sqlite", "sqlcipher-plain"] {
        let result = try tool("create", "db", "--engine", engine, "--new-key-file", "key")
        expect(result.status, equals: 2)
        expect(result.errors.contains("encrypt"))
      }
      let result = try tool("create", "db", "--engine", "sqlcipher")
      expect(result.status, equals: 2)
      expect(result.errors.contains("--new-key-file"))
      expect(!FileManager.default.fileExists(atPath: tool.path("db.touchstone")))
    }
  }

  @Test func theSQLCipherToolOpensTheFileWithWhatKeyShowPrints() throws {
    try TestEngine.sqlcipher.withDatabase { tool in
      let lines = (0..<100).map { #"{"_id":"d\#($0)","text":"a readable string"}"# }.joined(separator: "\n")
      try tool.succeed("import", "db", "-", input: lines)
      let shown = try tool.succeed("key", "show", "db").output
      let file = try #require(tool.succeed("key", "show", "db", "--json").json()["file"] as? String)
      let count = try tool.run(
        "sqlcipher", [file], input: shown + "SELECT count(*) > 0 FROM sqlite_master;\n")
      expect(count.lines.last, equals: "1", "\(count.output)\(count.errors)")
      let tables = try tool.run("sqlcipher", [file], input: "SELECT count(*) FROM sqlite_master;\n")
      expect(tables.errors.contains("encrypted"))
      for name in try FileManager.default.contentsOfDirectory(atPath: tool.path("db.touchstone")) {
        let bytes = try Data(contentsOf: URL(filePath: tool.path("db.touchstone/\(name)")))
        expect(bytes.range(of: Data("readable".utf8)) == nil, "\(name)")
      }
    }
  }
}
