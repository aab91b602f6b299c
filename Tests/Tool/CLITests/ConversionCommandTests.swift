import TestSupport

@Suite("convert, encrypt, decrypt, rekey, copy") struct ConversionCommandTests {
  @Test("a database goes round all of them and stays what it was")
  func round() throws {
    try Tool.run { plain in
      var tool = plain
      try tool.write("a passphrase\n", to: "old.key")
      try tool.write("another one\n", to: "new.key")
      try tool.succeed("create", "db", "--engine", "sqlite")
      for n in 0..<20 { try tool.succeed("put", "db", "doc\(n)", "{\"n\": \(n)}") }
      let before = try tool.succeed("export", "db", "--metadata").output
      func export(_ name: String, _ key: String? = nil) throws -> String {
        if let key { return try tool.succeed("export", name, "--metadata", "--key-file", key).output }
        return try tool.succeed("export", name, "--metadata").output
      }
      func engine(_ name: String, _ key: String) throws -> String? {
        try tool.succeed("info", name, "--json", "--key-file", key).json()["engine"] as? String
      }

      try tool.succeed("convert", "db", "--engine", "lmdb")
      #expect(try engine("db", "old.key") == "lmdb")
      #expect(try Set(export("db").split(separator: "\n")) == Set(before.split(separator: "\n")))
      try tool.succeed("convert", "db", "--engine", "sqlite", "--output", "beside")
      #expect(try export("beside") == before)
      #expect(try tool("convert", "db", "--engine", "sqlite", "--output", "beside").status == 2)
      #expect(try tool("convert", "db").status == 2)
      #expect(try tool("convert", "db", "--engine", "forestdb").status == 2)
      #expect(try tool("convert", "db", "--engine", "sqlite", "--new-key-file", "new.key").status == 2)
      // There is no key.
      #expect(try tool("encrypt", "beside").status == 2)

      try tool.succeed("encrypt", "beside", "--new-key-file", "old.key")
      #expect(try engine("beside", "old.key") == "sqlcipher")
      #expect(try export("beside", "old.key") == before)
      #expect(try tool("encrypt", "beside", "--new-key-file", "old.key").status == 2)
      #expect(try tool("rekey", "beside", "--key-file", "new.key", "--new-key-file", "old.key").status == 3)
      #expect(try tool("rekey", "beside", "--key-file", "old.key").status == 2)
      #expect(try tool("rekey", "db", "--key-file", "old.key", "--new-key-file", "new.key").status == 2)
      try tool.succeed("rekey", "beside", "--key-file", "old.key", "--new-key-file", "new.key")
      #expect(try tool("export", "beside", "--key-file", "old.key").status == 3)
      #expect(try export("beside", "new.key") == before)
      try tool.succeed("rekey", "beside", "--rotate", "--key-file", "new.key")
      #expect(try export("beside", "new.key") == before)
      tool.environment = ["TOUCHSTONE_KEY": "another one", "TOUCHSTONE_NEW_KEY": "a third"]
      try tool.succeed("rekey", "beside")
      tool.environment = ["TOUCHSTONE_KEY": "a third"]
      try tool.succeed("copy", "beside", "copied")
      #expect(try export("copied") == before)
      #expect(try tool("copy", "beside", "copied").status == 2)
      #expect(try tool("copy", "nothing", "copied2").status == 3)
      let uuids = try ["beside", "copied"].map {
        try tool.succeed("info", $0, "--json").json()["privateUUID"] as? String
      }
      #expect(uuids[0] != uuids[1])
      try tool.succeed("decrypt", "beside")
      tool.environment = [:]
      #expect(try export("beside") == before)
      #expect(try tool("decrypt", "beside", "--key-file", "old.key").status == 2)
    }
  }
}
