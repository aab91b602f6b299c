import ChildProcesses
import StorageConformance
import TestSupport

@Suite("Several processes with a database on a server", .enabled(if: hasServer)) struct ServerProcessTests {
  @Test("commits of another process are seen, by reads, by writes and by observers")
  func foreignCommits() throws {
    try withServerDatabase({ $0.watchesOtherProcesses = true }) { database, location in
      let heard = Lock<[String]>([])
      let observer = try database.observe { change in heard.withLock { $0 += change.documentIDs } }
      try database.save("mine", ["n": 1])
      let put = try touchstone("put", location, "theirs", #"{"n": 2}"#)
      expect(put.status, equals: 0, "\(put.errors)")
      try expect(database.document("theirs")?["n"].int, equals: 2)
      try eventually { heard.withLock { $0.contains("theirs") } }
      // The writer's memory is of its own commit.
      try database.save("theirs", ["n": 3])
      let got = try touchstone("get", location, "theirs")
      expect(got.output.contains("3"), "\(got.output) \(got.errors)")
      observer.cancel()
    }
  }

  @Test("many processes that write at once lose nothing")
  func writers() throws {
    try withServerDatabase { database, location in
      let path = try #require(builtExecutable("touchstone"))
      let children = try (0..<4).map { writer in
        try ChildProcess.start(
          "/bin/sh",
          [
            "-c",
            "for n in 1 2 3 4 5 6 7 8; do \"$0\" put \"$1\" \"$2-$n\" \"{\\\"n\\\": $n}\" || exit 1; done",
            path, location, "w\(writer)",
          ])
      }
      for n in 0..<40 { try database.save("here\(n)", ["n": .int(Int64(n))]) }
      for child in children { try expect(child.wait() == .exited(0), "\(child.errorText)") }
      try expect(database.documentCount, equals: 72)
      try expect(database.lastSequence, equals: 72)
      try expect(database.check(deep: true).map(\.description), equals: [])
    }
  }

  @Test("several processes that make a database make one")
  func creation() throws {
    let location = try newLocation()
    let path = try #require(builtExecutable("touchstone"))
    let children = try (0..<4).map { _ in try ChildProcess.start(path, ["create", location]) }
    let endings = try children.map { try $0.wait() }
    expect(endings.filter { $0 == .exited(0) }.count, equals: 1)
    expect(endings.filter { $0 == .exited(2) }.count, equals: 3, "\(children.map(\.errorText))")
    try Database.delete(location)
  }

  @Test("a database that another process has open isn't removed, and one whose process was killed is")
  func removal() throws {
    let location = try newLocation()
    let made = try touchstone("create", location)
    expect(made.status, equals: 0, "\(made.errors)")
    let path = try #require(builtExecutable("touchstone"))
    let child = try ChildProcess.start(path, ["changes", location, "--follow"])
    let database = try Database.open(location)
    try database.save("a", ["n": 1])
    try database.close()
    try eventually { child.outputText.contains("a") }
    try expect(databaseCode { try Database.delete(location) }, equals: .inUse)
    child.kill(SIGKILL)
    _ = try child.wait()
    try eventually { (try? Database.delete(location)) != nil }
    expect(!Database.exists(location))
  }

  @Test("the command takes locations everywhere, and shows no password")
  func command() throws {
    try withTemporaryDirectory { directory in
      let location = try newLocation()
      let secret = location.replacingOccurrences(
        of: "&user=touchstone", with: "&user=touchstone&password=hidden-word")
      try "{\"_id\":\"one\",\"n\":1}\n{\"_id\":\"two\",\"n\":2}\n".write(
        toFile: directory + "/in.jsonl", atomically: true, encoding: .utf8)
      var shown = ""
      func run(_ status: Int32, _ arguments: String..., contains text: String = "") throws {
        let path = try #require(builtExecutable("touchstone"))
        let child = try ChildProcess.start(path, arguments)
        let ending = try child.wait()
        expect(ending.shellStatus, equals: status, "\(arguments) \(child.outputText) \(child.errorText)")
        expect(
          text.isEmpty || (child.outputText + child.errorText).contains(text),
          "\(arguments): \(child.outputText) \(child.errorText)")
        shown += child.outputText + child.errorText
      }
      try run(0, "create", secret, contains: location)
      try run(2, "create", secret, contains: "exists already")
      try run(0, "import", secret, directory + "/in.jsonl")
      try run(0, "put", secret, "three", #"{"n": 3}"#)
      try run(0, "get", secret, "one", contains: "1")
      try run(1, "get", secret, "none", contains: "none")
      try run(0, "ls", secret, contains: "three")
      try run(0, "query", secret, "SELECT COUNT(*) AS c FROM _", "--format", "json", contains: "3")
      try run(0, "index", secret, "create", "byN", "n")
      try run(1, "index", secret, "delete", "nothing", contains: "nothing")
      try run(0, "info", secret, contains: "postgres")
      try run(0, "check", secret, "--deep", contains: "sound")
      try run(0, "compact", secret)
      try run(0, "export", secret, directory + "/out.jsonl")
      try run(0, "convert", secret, "--engine", "lmdb", "--output", directory + "/file")
      try run(0, "verify", secret, directory + "/file", "--sequences")
      try run(0, "convert", directory + "/file", "--output", try newLocation())
      try run(0, "copy", secret, directory + "/copy", contains: "")
      try run(0, "sync", directory + "/copy", secret)
      try run(2, "convert", secret, "--engine", "lmdb", contains: "in place")
      try run(2, "get", "mysql://me:hidden-word@host/db#x", "a", contains: "mysql://")
      try run(
        3, "get", "postgres://me:hidden-word@127.0.0.1:1/db#x", "a",
        contains: "postgres://me@127.0.0.1:1/db#x")
      try run(0, "delete", secret)
      try run(3, "info", secret, contains: "there is no database")
      expect(!shown.contains("hidden-word"), "\(shown)")
      try expect(String(contentsOfFile: directory + "/out.jsonl", encoding: .utf8).contains("\"three\""))
    }
  }

  @Test("killed writers and a server that crashes lose and double no document that was saved")
  func kills() throws {
    try withTemporaryDirectory { directory in
      let server = try PostgresServer()
      let location = server.location("kills")
      try Database.open(location).close()
      let path = try #require(builtExecutable("touchstone"))
      try Data(randomBytes(300_000)).write(to: URL(filePath: directory + "/blob"))
      // Each document that was saved is a line of output.
      let script = """
        n=0; while :; do n=$((n + 1))
        "$0" put "$1" "$2-$n" "{\\"n\\": $n}" --attachment "x=$3" >/dev/null 2>&1 && echo "$2-$n"; done
        """
      func writer(_ name: String) throws -> ChildProcess {
        try ChildProcess.start("/bin/sh", ["-c", script, path, location, name, directory + "/blob"])
      }
      var saved: [String] = []
      func end(_ writer: ChildProcess) throws {
        writer.kill(SIGKILL)
        _ = try writer.wait()
        saved += writer.outputText.split(separator: "\n").map(String.init)
      }
      for round in 0..<3 {
        let writers = try (0..<2).map { try writer("w\(round)\($0)") }
        try eventually { writers.allSatisfy { $0.outputText.contains("-2\n") } }
        try end(writers[0])
        try server.stop(.crash)
        try server.start()
        try eventually { writers[1].outputText.split(separator: "\n").count > 4 }
        try end(writers[1])
      }
      let database = try Database.open(location)
      let found = Set(
        try database.query("SELECT META().id FROM _").run().map { $0[0].string ?? "" })
      expect(saved.filter { !found.contains($0) }, equals: [])
      expect(Set(saved).count, equals: saved.count)
      try expect(database.lastSequence, equals: UInt64(database.documentCount))
      try expect(database.check(deep: true).map(\.description), equals: [])
      try database.close()
    }
  }

  @Test("two servers over one database have the same documents, for clients of both protocols")
  func servers() throws {
    try withTemporaryDirectory { directory in
      let location = try newLocation()
      try Database.open(location).close()
      let path = try #require(builtExecutable("touchstone"))
      let servers = try (0..<2).map { _ in
        try ChildProcess.start(path, ["serve", location, "--listen", "127.0.0.1:0"])
      }
      defer { for server in servers { server.kill(SIGKILL) } }
      let ports = try servers.map { server in
        try eventually { server.outputText.contains("ws://") }
        return server.outputText.split(separator: "/")[1].split(separator: ":")[1]
      }
      let (first, second) = (directory + "/first", directory + "/second")
      var database = try Database.open(first)
      for n in 0..<30 {
        try database.save(
          "doc\(n)",
          ["n": .int(Int64(n)), "file": database.makeBlob(randomBytes(2_000, seed: UInt64(n))).jsonValue])
      }
      try database.close()
      database = try Database.open(second)
      try database.save("other", ["n": 1])
      try database.close()
      func sync(_ path: String, _ scheme: String, _ server: Int) throws {
        let run = try touchstone("sync", path, "\(scheme)://127.0.0.1:\(ports[server])/\(location.schema)")
        expect(run.status, equals: 0, "\(run.output) \(run.errors)")
      }
      try sync(first, "ws", 0)
      try sync(second, "http", 1)
      try sync(first, "ws", 0)
      for server in servers {
        server.kill(SIGTERM)
        _ = try server.wait()
      }
      for (left, right) in [(first, location), (second, location)] { try expectSame(left, right) }
      try Database.delete(location)
    }
  }

  /// Compares the documents. Each side has checkpoints of its own.
  private func expectSame(_ left: String, _ right: String) throws {
    let (left, right) = (try Database.open(left), try Database.open(right))
    let found = try differences(left, right).filter { $0.kind != .local }
    expect(found.map(\.description), equals: [])
    try left.close()
    try right.close()
  }

  @Test("the list of processes shows no password")
  func arguments() throws {
    let location = try newLocation()
    try Database.open(location).close()
    let secret = location.replacingOccurrences(
      of: "&user=touchstone", with: "&user=touchstone&password=hidden-word")
    let path = try #require(builtExecutable("touchstone"))
    let child = try ChildProcess.start(path, ["changes", secret, "--follow"])
    let other = try Database.open(location)
    try other.save("a", ["n": 1])
    try other.close()
    try eventually { child.outputText.contains("a") }
    let line = String(
      decoding: try AtomicFile.read("/proc/\(child.identifier)/cmdline", limit: 1 << 16), as: UTF8.self)
    expect(line.contains("changes") && line.contains(location.schema))
    expect(!line.contains("hidden-word"), "\(line)")
    child.kill(SIGKILL)
    _ = try child.wait()
    try eventually { (try? Database.delete(location)) != nil }
  }
}
