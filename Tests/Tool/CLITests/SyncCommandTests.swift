import Foundation
import TestSupport
import Testing

/// Replication on the command line: between databases, and with `touchstone serve`.
@Suite struct SyncCommandTests {
  /// Runs `touchstone serve` while `body` runs. Gives the lines of its output.
  private func serving(
    _ tool: Tool, _ arguments: String..., body: ([String]) throws -> Void
  ) throws {
    let server = try Child(
      tool, Tool.executable, ["serve", "--listen", "127.0.0.1:0"] + arguments)
    defer { server.kill() }
    let databases = arguments.prefix { !$0.hasPrefix("--") }.count
    try server.wait { server.output.split(separator: "\n").count > databases }
    try body(server.output.split(separator: "\n").map(String.init))
    server.kill(SIGTERM)
    let result = try server.wait()
    expect(result.status, equals: 0, "\(result.errors)")
  }

  @Test(arguments: TestEngine.some) func aServedDatabaseReplicates(engine: TestEngine) throws {
    try engine.withDatabase { tool in
      for number in 0..<30 { try tool.succeed("put", "db", "a\(number)", #"{"n":\#(number)}"#) }
      var plain = tool
      plain.keyFile = nil
      try plain.succeed("create", "other", "--engine", "sqlite")
      try plain.succeed("put", "other", "b", #"{"n":-1}"#)
      try serving(tool, "db") { lines in
        expect(lines[0].hasPrefix("http://127.0.0.1:") && lines[0].hasSuffix("/"))
        expect(lines[1], equals: "ws" + lines[0].dropFirst(4) + "db")
        let first = try plain.succeed("sync", "other", lines[1], "--json").json()
        expect(first["pushed"] as? Int == 1 && first["pulled"] as? Int == 30)
        expect(first["conflicts"] as? Int == 0 && first["errors"] as? Int == 0)
        expect(first["bytesSent"] as? Int ?? 0 > 100 && first["bytesReceived"] as? Int ?? 0 > 1_000)
        expect(first["seconds"] as? Double ?? -1 >= 0)
        // The server has the same database open.
        try plain.succeed("put", "other", "a1", #"{"n":"changed"}"#)
        try expect(
          plain.succeed("sync", "other", lines[1], "--push").output.hasPrefix("1 pushed, 0 pulled, "))
        let again = try plain.succeed("sync", "other", lines[1], "--json").json()
        expect(again["pushed"] as? Int == 0 && again["pulled"] as? Int == 0)
      }
      try expect(tool.succeed("get", "db", "a1").output.contains("changed"))
      try expect(tool.succeed("verify", "db", "other").status, equals: 0)
      try expect(tool("check", "db").faults, equals: [])
    }
  }

  @Test("a folder's key opens what is encrypted, and the rest is served without it") func mixedFolder() throws
  {
    try Tool.run { tool in
      try Data(0..<32).write(to: URL(filePath: tool.path("key")))
      try tool.succeed("create", "local", "--engine", "lmdb")
      try FileManager.default.createDirectory(atPath: tool.path("dbs"), withIntermediateDirectories: true)
      for (name, options) in [
        ("plain", ["sqlite"]), ("secret", ["lmdb-encrypted", "--new-key-file", "key"]),
      ] {
        try expect(
          tool.run(Tool.executable, ["create", "dbs/\(name)", "--engine"] + options).status, equals: 0)
        try tool.succeed("put", "dbs/\(name)", name, "{}", "--key-file", "key")
      }
      try serving(tool, "dbs", "--key-file", "key") { lines in
        for name in ["plain", "secret"] {
          try tool.succeed("sync", "local", lines[0] + name, "--pull")
          try tool.succeed("get", "local", name)
        }
      }
    }
  }

  @Test func conflictsAreCounted() throws {
    try Tool.run { tool in
      for name in ["a", "b"] {
        try tool.succeed("create", name, "--engine", "lmdb")
        try tool.succeed("put", name, "doc", #"{"from":"\#(name)"}"#)
      }
      try serving(tool, "b") { lines in
        let result = try tool.succeed("sync", "a", lines[1], "--json").json()
        expect(result["conflicts"] as? Int == 1 && result["errors"] as? Int == 0)
      }
      try expect(tool("verify", "a", "b").status, equals: 1)
      try expect(tool.succeed("verify", "--current", "a", "b").status, equals: 0)
      try tool.succeed("put", "a", "doc", #"{"from":"nobody"}"#)
      try expect(tool("verify", "--current", "a", "b").output.contains("doc"))
    }
  }

  @Test func anErrorOfADocumentIsNamed() throws {
    try Tool.run { tool in
      for name in ["a", "b"] {
        try tool.succeed("create", name, "--engine", "lmdb")
        try tool.succeed("put", name, "doc", #"{"from":"\#(name)"}"#)
      }
      try serving(tool, "b") { lines in
        let result = try tool("sync", "a", lines[1], "--push")
        expect(result.status == 1 && result.output.contains("1 failed"))
        expect(result.errors.contains("doc 1-") && result.errors.contains("(http 409)"))
      }
    }
  }

  @Test func usersNeedTheirPasswords() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "lmdb")
      try tool.succeed("put", "db", "doc", "{}")
      try tool.succeed("create", "copy", "--engine", "lmdb")
      try tool.write("secret\n", to: "password")
      try tool.write("wrong\n", to: "other")
      try expect(
        tool.succeed("user", "users", "me", "--password-file", "password").output,
        equals: "added me in users\n")
      try expect(
        tool.succeed("user", "users", "you", "--password-file", "other").output,
        equals: "added you in users\n")
      try expect(
        tool.succeed("user", "users", "me", "--password-file", "password").output,
        equals: "changed me in users\n")
      try expect(tool.succeed("user", "users", "you", "--remove").output, equals: "removed you in users\n")
      try expect(tool("user", "users", "you", "--remove").status, equals: 1)
      let file = try tool.read("users")
      expect(file.hasPrefix("me:") && !file.contains("secret"))
      try serving(tool, "db", "--user-file", "users", "--tls", "self-signed") { lines in
        expect(lines[0].hasPrefix("https://"))
        let nobody = try tool("sync", "copy", lines[1], "--trust-self-signed")
        expect(nobody.status == 3 && nobody.errors.contains("401"))
        try expect(
          tool(
            "sync", "copy", lines[1], "--trust-self-signed", "--user", "me", "--password-file", "other"
          ).status, equals: 3)
        try expect(
          tool("sync", "copy", lines[1], "--user", "me", "--password-file", "password").status, equals: 3)
        let pinned = try tool.succeed(
          "sync", "copy", lines[1], "--pinned-cert", "server-cert.pem", "--user", "me", "--password-file",
          "password")
        expect(pinned.output.hasPrefix("0 pushed, 1 pulled"))
      }
    }
  }

  @Test func databasesReplicateOverHTTP() throws {
    try Tool.run { tool in
      for name in ["a", "db"] {
        try tool.succeed("create", name, "--engine", "lmdb")
        try tool.succeed("put", name, "from \(name)", #"{"n":1}"#)
      }
      try tool.write("secret\n", to: "password")
      try tool.write("wrong\n", to: "other")
      try tool.succeed("user", "users", "me", "--password-file", "password")
      try serving(tool, "db", "--user-file", "users", "--tls", "self-signed") { lines in
        let url = lines[0].replacing("https://", with: "https://me@") + "db"
        func sync(_ more: String...) throws -> Tool.Result {
          try tool.run(Tool.executable, ["sync", "a", url, "--trust-self-signed"] + more)
        }
        let first = try sync("--password-file", "password", "--json")
        expect(first.status, equals: 0)
        try expect(first.json()["pushed"] as? Int == 1 && first.json()["pulled"] as? Int == 1)
        try expect(sync("--password-file", "password").output.hasPrefix("0 pushed, 0 pulled, "))
        try expect(sync("--password-file", "password", "--pull", "--ids", "from a").status, equals: 0)
        try expect(sync("--password-file", "other").status, equals: 3)
        try expect(sync().status, equals: 2)
        try expect(
          tool("sync", "a", lines[0] + "db", "--trust-self-signed", "--bearer-file", "other").status,
          equals: 3)
        try expect(sync("--password-file", "password", "--bearer-file", "other").status, equals: 2)
        try expect(sync("--password-file", "password", "--filter", "a/b").status, equals: 2)
        try expect(sync("--password-file", "password", "--pull", "--param", "a=b").status, equals: 2)
        try expect(sync("--password-file", "password", "--pull", "--selector", "[]").status, equals: 2)
        let absent = try tool(
          "sync", "a", lines[0] + "none", "--trust-self-signed", "--user", "me", "--password-file", "password"
        )
        expect(absent.status == 3 && absent.errors.contains("404"))
      }
      try expect(tool.succeed("verify", "--current", "a", "db").status, equals: 0)
      try expect(tool("sync", "a", "ftp://h/db").status, equals: 2)
    }
  }

  @Test(arguments: [TestEngine.lmdb, .sqlcipher]) func aDatabaseThatIsNotThereIsMadeOrSaidHow(
    engine: TestEngine
  ) throws {
    try engine.withDatabase { tool in
      try tool.succeed("put", "db", "a", "{}")
      let missing = try tool("sync", "db", "other")
      expect(missing.status == 2 && missing.errors.contains("touchstone create other"))
      expect(missing.errors.contains("--create-target"))
      let noSource = try tool("sync", "other", "db", "--create-target")
      expect(noSource.status == 2 && noSource.errors.contains("DB: "))
      for pushed in [1, 0] {
        let lines = try tool.succeed("sync", "db", "other", "--create-target").lines
        expect(lines.first?.hasPrefix("\(pushed) pushed, 0 pulled"), equals: true)
      }
      try expect(tool.succeed("info", "other", "--json").json()["engine"] as? String, equals: engine.rawValue)
      try tool.succeed("verify", "--current", "db", "other")
    }
  }

  @Test func theTargetIsMadeIfThatIsWanted() throws {
    try Tool.run { tool in
      try tool.succeed("create", "a", "--engine", "lmdb")
      try tool.succeed("put", "a", "doc", #"{"n":1}"#)
      /// Serves a directory while `body` runs. Gives the URL.
      func servingDirectory(_ name: String, _ arguments: String..., body: (String) throws -> Void) throws {
        try FileManager.default.createDirectory(atPath: tool.path(name), withIntermediateDirectories: false)
        let server = try Child(
          tool, Tool.executable, ["serve", name, "--listen", "127.0.0.1:0"] + arguments)
        defer { server.kill() }
        try server.wait { server.output.contains("\n") }
        try body(server.output.split(separator: "\n").first.map(String.init) ?? "")
        server.kill(SIGTERM)
        try expect(server.wait().status, equals: 0)
      }
      try servingDirectory("open", "--create", "--engine", "sqlite") { server in
        let absent = try tool("sync", "a", server + "new")
        expect(absent.status == 3 && absent.errors.contains("404"), "\(absent)")
        try expect(tool("info", "open/new").status != 0)
        func sync(_ more: String...) throws -> String {
          let result = try tool.run(Tool.executable, ["sync", "a", server + "new"] + more)
          expect(result.status, equals: 0, "\(result)")
          return result.output
        }
        try expect(sync("--create-target").hasPrefix("1 pushed, 0 pulled"))
        // It isn't made anew.
        try expect(sync("--create-target").hasPrefix("0 pushed, 0 pulled"))
        try expect(sync().hasPrefix("0 pushed, 0 pulled"))
        let wrong = try tool("sync", "a", server + "Wrong", "--create-target")
        expect(wrong.status == 3 && wrong.errors.contains("400"), "\(wrong)")
      }
      try expect(tool.succeed("verify", "--current", "a", "open/new").status, equals: 0)
      try servingDirectory("closed") { server in
        let refused = try tool("sync", "a", server + "new", "--create-target")
        expect(refused.status == 3 && refused.errors.contains("403"), "\(refused)")
      }
      try expect(tool("sync", "a", "ws://127.0.0.1:1/new", "--create-target").status, equals: 2)
    }
  }

  @Test func whatIsTooLargeThereIsAFailedDocument() throws {
    try Tool.run { tool in
      try tool.succeed("create", "a", "--engine", "lmdb")
      let large = #"{"text":"\#(String(repeating: "x", count: 8_000_001))"}"#
      try tool.succeed("put", "a", "large", "-", input: large)
      for number in 0..<3 { try tool.succeed("put", "a", "small\(number)", #"{"n":\#(number)}"#) }
      try tool.succeed("create", "b", "--engine", "sqlite")
      try serving(tool, "b") { lines in
        let first = try tool("sync", "a", lines[0] + "b")
        expect(first.status == 1 && first.output.hasPrefix("3 pushed, 0 pulled, 1 failed"), "\(first)")
        expect(first.errors.contains("large 1-") && first.errors.contains("(http 413)"), "\(first)")
        // It counts as done.
        try expect(tool.succeed("sync", "a", lines[0] + "b").output.hasPrefix("0 pushed, 0 pulled, "))
        let again = try tool("sync", "a", lines[0] + "b", "--reset", "--json")
        try expect(again.status == 1 && again.json()["errors"] as? Int == 1, "\(again)")
      }
      // Whoever pulls it may have it.
      try tool.succeed("create", "c", "--engine", "lmdb")
      try serving(tool, "a") { lines in
        let pulled = try tool.succeed("sync", "c", lines[0] + "a")
        expect(pulled.output.hasPrefix("0 pushed, 4 pulled, "), "\(pulled)")
      }
      try expect(tool.succeed("verify", "--current", "a", "c").status, equals: 0)
    }
  }

  @Test func whatAServerAnswersIsNoWrongUsage() throws {
    try Tool.run { tool in
      try tool.succeed("create", "a", "--engine", "lmdb")
      try tool.succeed("put", "a", "doc", "{}")
      for garbage in [
        "\u{1}\u{2}\u{3}\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "<html></html>\r\n", "SSH-2.0-x\r\n",
      ] {
        let server = try ByteServer { _, _ in garbage }
        let result = try tool("sync", "a", "http://127.0.0.1:\(server.port)/db")
        expect(result.status, equals: 3, "\(garbage): \(result)")
        // Later, too.
        let later = try ByteServer { line, _ in
          line.hasPrefix("GET /db HTTP") ? ByteServer.json(200, "{\"db_name\":\"db\"}") : garbage
        }
        try expect(tool("sync", "a", "http://127.0.0.1:\(later.port)/db").status, equals: 3)
      }
      try expect(tool("sync", "a", "http://127.0.0.1:x/db").status, equals: 2)
    }
  }

  @Test func whatARetryMendsIsNoFailure() throws {
    try Tool.run { tool in
      try tool.succeed("create", "a", "--engine", "lmdb")
      let page =
        #"{"results":[{"seq":1,"id":"x","changes":[{"rev":"1-a"}]},{"seq":2,"id":"y","changes":[{"rev":"1-a"}]}],"last_seq":2}"#
      let entry =
        #"{"digest":"md5-kAFQmDzST7DWlj99KOF/cg==","length":3,"content_type":"a/b","revpos":1,"stub":true}"#
      let documents =
        #"{"results":[{"id":"x","docs":[{"ok":{"_id":"x","_rev":"1-a","_attachments":{"a":\#(entry)}}}]},"#
        + #"{"id":"y","docs":[{"ok":{"_id":"y","_rev":"1-a"}}]}]}"#
      func server(failures: Int) throws -> ByteServer {
        let failed = Lock(0)
        return try ByteServer { line, _ in
          if line.hasPrefix("GET /db HTTP") { return ByteServer.json(200, "{}") }
          if line.contains("_changes") {
            return ByteServer.json(200, line.contains("since=0") ? page : #"{"results":[],"last_seq":2}"#)
          }
          if line.contains("_bulk_get") { return ByteServer.json(200, documents) }
          if line.hasPrefix("GET /db/x/a") {
            let isFailing = failed.withLock { failed in
              failed += 1
              return failed <= failures
            }
            return isFailing
              ? ByteServer.json(503, #"{"error":"busy"}"#)
              : "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
          }
          if line.hasPrefix("PUT") { return ByteServer.json(201, #"{"ok":true,"rev":"0-1"}"#) }
          return ByteServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
        }
      }
      // The three tries of the first connection fail.
      let busy = try server(failures: 3)
      let result = try tool("sync", "a", "http://127.0.0.1:\(busy.port)/db", "--pull", "--json")
      expect(result.status, equals: 0, "\(result)")
      try expect(result.json()["errors"] as? Int == 0 && result.json()["pulled"] as? Int == 2)
      expect(result.errors.contains("offline") && !result.errors.contains("x 1-a"))
      try expect(tool.succeed("get", "a", "x").output.contains("_attachments"))
    }
  }

  @Test func theCertificateIsReadAgainWhenAsked() throws {
    try Tool.run { tool in
      for name in ["first", "second"] {
        try FileManager.default.createDirectory(atPath: tool.path(name), withIntermediateDirectories: false)
        try tool.succeed("create", "\(name)/db", "--engine", "lmdb")
        try serving(tool, "\(name)/db", "--tls", "self-signed") { expect($0[0].hasPrefix("https://")) }
      }
      try tool.succeed("create", "copy", "--engine", "lmdb")
      func take(_ name: String) throws {
        try tool.write(tool.read("\(name)/server-cert.pem"), to: "cert.pem")
        try tool.write(tool.read("\(name)/server-key.pem"), to: "key.pem")
      }
      try take("first")
      let server = try Child(
        tool, Tool.executable,
        ["serve", "first/db", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"])
      defer { server.kill() }
      func lines() -> [String] { server.output.split(separator: "\n").map(String.init) }
      try server.wait { lines().count == 3 }
      func sync(_ pinned: String) throws -> Int32 {
        try tool("sync", "copy", lines()[1], "--pinned-cert", "\(pinned)/server-cert.pem").status
      }
      try expect(sync("first"), equals: 0)
      try expect(sync("second"), equals: 3)
      // What is wrong changes nothing.
      try tool.write("nothing", to: "cert.pem")
      server.kill(SIGHUP)
      try server.wait { server.errors.contains("keeps its certificate") }
      try expect(sync("first"), equals: 0)
      try take("second")
      server.kill(SIGHUP)
      try server.wait { lines().count == 4 }
      expect(lines()[3].hasPrefix("certificate SHA-256: ") && lines()[3] != lines()[2])
      try expect(sync("second"), equals: 0)
      try expect(sync("first"), equals: 3)
      server.kill(SIGTERM)
      try expect(server.wait().status, equals: 0)
    }
  }

  @Test func continuousGoesOnUntilItIsStopped() throws {
    try Tool.run { tool in
      try tool.succeed("create", "a", "--engine", "lmdb")
      try serving(tool, "b", "--create", "--engine", "lmdb") { lines in
        let sync = try Child(
          tool, Tool.executable, ["sync", "a", lines[1], "--continuous"])
        defer { sync.kill() }
        try tool.succeed("put", "a", "doc", "{}")
        try tool.succeed("create", "c", "--engine", "lmdb")
        func pullsOne() throws {
          try sync.wait {
            try tool.succeed("sync", "c", lines[1], "--pull", "--json").json()["pulled"] as? Int == 1
          }
        }
        try pullsOne()
        // Other processes change what is replicated, on either side.
        try tool.succeed("put", "a", "later", "{}")
        try pullsOne()
        try tool.succeed("put", "b", "there", "{}")
        try sync.wait { try tool("get", "a", "there").status == 0 }
        sync.kill(SIGINT)
        let result = try sync.wait()
        expect(result.status == 0 && result.output.hasPrefix("2 pushed, 1 pulled"), "\(result)")
      }
    }
  }

  @Test func whatIsWrongIsSaid() throws {
    try Tool.run { tool in
      try tool.succeed("create", "db", "--engine", "lmdb")
      func sync(_ arguments: String...) throws -> Tool.Result {
        try tool.run(Tool.executable, ["sync", "db"] + arguments)
      }
      try expect(sync("ftp://127.0.0.1/x").status, equals: 2)
      try expect(sync("ws://me:secret@127.0.0.1/x").status, equals: 2)
      try expect(sync("ws://127.0.0.1:1/x", "--user", "me").errors.contains("--password-file"))
      try expect(sync("ws://127.0.0.1:1/x", "--header", "no colon").status, equals: 2)
      try expect(sync("ws://127.0.0.1:1/x", "--pinned-cert", "missing").status, equals: 2)
      let refused = try sync("ws://127.0.0.1:1/x")
      expect(refused.status == 3 && refused.errors.contains("refused"))
      func serve(_ arguments: String...) throws -> Tool.Result {
        try tool.run(Tool.executable, ["serve"] + arguments)
      }
      try expect(serve().errors.contains("DB is missing"))
      try expect(serve("missing").status, equals: 3)
      try expect(serve("db", "--listen", "127.0.0.1").status, equals: 2)
      try expect(serve("db", "--listen", "0.0.0.0:0").errors.contains("--user-file"))
      try expect(serve("db", "--listen", "127.0.0.1:0", "--tls-cert", "x").status, equals: 2)
      try expect(serve("db", "--listen", "127.0.0.1:0", "--user-file", "missing").errors.contains("missing"))
      try expect(serve("db", "./db", "--listen", "127.0.0.1:0").status, equals: 2)
    }
  }
}
