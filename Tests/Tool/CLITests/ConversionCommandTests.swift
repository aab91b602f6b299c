import TestSupport

@Suite("convert, encrypt, decrypt, rekey, copy") struct ConversionCommandTests {
  @Test("a database goes round all of them and stays what it was")
  func round() throws {
    try Tool.run { plain in
      var tool = plain
      // A raw key: each run would take half a second to derive it from a passphrase, as it does from the other one.
      try Data(0..<32).write(to: URL(filePath: tool.path("old.key")))
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

      try expect(
        tool.succeed("convert", "db", "--engine", "lmdb").output, equals: "converted to lmdb: 20 documents\n")
      try expect(engine("db", "old.key"), equals: "lmdb")
      try expect(Set(export("db").split(separator: "\n")), equals: Set(before.split(separator: "\n")))
      try expect(
        tool.succeed("convert", "db", "--engine", "sqlite", "--output", "beside", "--quiet").output,
        equals: "")
      try expect(tool.succeed("check", "beside").output, equals: "sound: 20 documents\n")
      try expect(export("beside"), equals: before)
      try expect(tool("convert", "db", "--engine", "sqlite", "--output", "beside").status, equals: 2)
      try expect(tool("convert", "db").status, equals: 2)
      try expect(tool("convert", "db", "--engine", "forestdb").status, equals: 2)
      try expect(tool("convert", "db", "--engine", "sqlite", "--new-key-file", "new.key").status, equals: 2)
      // There is no key.
      try expect(tool("encrypt", "beside").status, equals: 2)

      try expect(
        tool.succeed("encrypt", "beside", "--new-key-file", "old.key").output,
        equals: "encrypted with sqlcipher: 20 documents\n")
      try expect(engine("beside", "old.key"), equals: "sqlcipher")
      try expect(export("beside", "old.key"), equals: before)
      try expect(tool("encrypt", "beside", "--new-key-file", "old.key").status, equals: 2)
      try expect(
        tool("rekey", "beside", "--key-file", "new.key", "--new-key-file", "old.key").status, equals: 3)
      try expect(tool("rekey", "beside", "--key-file", "old.key").status, equals: 2)
      try expect(tool("rekey", "db", "--key-file", "old.key", "--new-key-file", "new.key").status, equals: 2)
      try tool.succeed("rekey", "beside", "--key-file", "old.key", "--new-key-file", "new.key")
      try expect(tool("export", "beside", "--key-file", "old.key").status, equals: 3)
      try expect(export("beside", "new.key"), equals: before)
      try expect(
        tool.succeed("rekey", "beside", "--rotate", "--key-file", "new.key").output,
        equals: "encrypted anew, on sqlcipher: 20 documents\n")
      try expect(export("beside", "new.key"), equals: before)
      tool.environment = ["TOUCHSTONE_KEY": "another one", "TOUCHSTONE_NEW_KEY": "a third"]
      try tool.succeed("rekey", "beside")
      tool.environment = ["TOUCHSTONE_KEY": "a third"]
      try tool.succeed("copy", "beside", "copied")
      try expect(export("copied"), equals: before)
      try expect(tool("copy", "beside", "copied").status, equals: 2)
      try expect(tool("copy", "nothing", "copied2").status, equals: 3)
      let uuids = try ["beside", "copied"].map {
        try tool.succeed("info", $0, "--json").json()["privateUUID"] as? String
      }
      expect(uuids[0] != uuids[1])
      try expect(tool.succeed("decrypt", "beside").output, equals: "decrypted to sqlite: 20 documents\n")
      tool.environment = [:]
      try expect(export("beside"), equals: before)
      try expect(tool("decrypt", "beside", "--key-file", "old.key").status, equals: 2)
    }
  }

  @Test("what a database lacks is named by each command that makes another one of it, with status 1")
  func missingBlobs() throws {
    try Tool.run { tool in
      try Data(0..<32).write(to: URL(filePath: tool.path("my.key")))
      try tool.succeed("create", "db", "--engine", "sqlite")
      try tool.write("abc", to: "a.txt")
      for id in ["one", "two"] {
        try tool.succeed("put", "db", id, "{}", "--attachment", "a.txt=\(tool.path("a.txt"))")
      }
      let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
      try FileManager.default.removeItem(
        atPath: tool.path("db.touchstone/Attachments/qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob"))
      for (command, done) in [
        (["copy", "db", "copied"], "the copy was made"),
        (["convert", "db", "--engine", "lmdb", "--output", "beside"], "the database was converted"),
        (["convert", "db", "--engine", "lmdb"], "the database was converted"),
        (["encrypt", "db", "--new-key-file", "my.key"], "the database was encrypted"),
        (["rekey", "db", "--rotate", "--key-file", "my.key"], "the database was encrypted anew"),
        (["decrypt", "db", "--key-file", "my.key"], "the database was decrypted"),
      ] {
        let result = try tool.run(Tool.executable, command)
        expect(result.status, equals: 1, "\(command)")
        let lines = ["one", "two"].map {
          "document '\($0)': the blob \(digest) at /_attachments/a.txt is missing\n"
        }
        expect(
          result.errors,
          equals: lines.joined()
            + "touchstone \(command[0]): \(done), but 1 blob that 2 documents name was missing before\n")
      }
      for name in ["db", "copied", "beside"] {
        try expect(tool.succeed("ls", name).output, equals: "one\ntwo\n", "\(name)")
      }
    }
  }
}
