import TestSupport

/// Each command that writes a file, over a file that somebody has: a link, a pipe, a private file, another user's
/// database (docs/permissions.md).
@Suite("Commands that write over files of others") struct FilesOfOthersTests {
  /// The commands that write one file, with the arguments before and behind its name.
  enum Writer: String, CaseIterable {
    case export, user, bench

    func run(_ tool: Tool, _ file: String) throws {
      switch self {
      case .export: try tool.succeed("export", "db", file)
      case .user: try tool.succeed("user", file, "me", "--password-file", "password")
      case .bench:
        try tool.succeed(
          "bench", "harness", "--samples", "1", "--engines", "sqlite", "--output", file)
      }
    }
  }

  private func withTool(_ body: (Tool) throws -> Void) throws {
    try Tool.run { tool in
      try tool.succeed("create", "db")
      try tool.succeed("put", "db", "a", #"{"v":1}"#)
      try tool.write("secret\n", to: "password")
      try body(tool)
    }
  }

  @Test("keep a link and write what it leads to", arguments: Writer.allCases)
  func link(_ writer: Writer) throws {
    try withTool { tool in
      expect(symlink("target", tool.path("link")), equals: 0)
      for _ in 1...2 {
        try writer.run(tool, "link")
        try expect(FileManager.default.destinationOfSymbolicLink(atPath: tool.path("link")), equals: "target")
        try expect(!tool.read("target").isEmpty)
      }
    }
  }

  @Test("keep the permissions, the owner and the group", arguments: Writer.allCases)
  func permissions(_ writer: Writer) throws {
    try withTool { tool in
      try writer.run(tool, "file")
      let isRoot = getuid() == 0
      if isRoot { expect(chown(tool.path("file"), 54_321, 12_345), equals: 0) }
      expect(chmod(tool.path("file"), 0o640), equals: 0)
      try writer.run(tool, "file")
      let access = try #require(FileAccess(of: tool.path("file")))
      expect(access.mode, equals: 0o640)
      if isRoot { expect(access.owner == 54_321 && access.group == 12_345) }
    }
  }

  @Test("write pipes and devices straight, and leave FILE.part alone")
  func straight() throws {
    try withTool { tool in
      try tool.write("precious", to: "pipe.part")
      expect(mkfifo(tool.path("pipe"), 0o600), equals: 0)
      let reader = open(tool.path("pipe"), O_RDONLY | O_NONBLOCK)
      defer { close(reader) }
      try tool.succeed("export", "db", "pipe")
      var bytes = [UInt8](repeating: 0, count: 100)
      let count = read(reader, &bytes, bytes.count)
      expect(
        String(decoding: bytes.prefix(max(0, count)), as: UTF8.self), equals: "{\"_id\":\"a\",\"v\":1}\n")
      let full = try tool("export", "db", "/dev/full")
      expect(full.status != 0 && full.errors.contains("No space left on device"))
      expect(symlink("/proc/self/fd/1", tool.path("stdout")), equals: 0)
      try expect(tool.succeed("export", "db", "stdout").lines.first, equals: "{\"_id\":\"a\",\"v\":1}")
      try expect(tool.read("pipe.part"), equals: "precious")
      let left = try FileManager.default.contentsOfDirectory(atPath: tool.directory).filter {
        !$0.hasPrefix(".")
      }
      expect(left.sorted(), equals: ["db.touchstone", "password", "pipe", "pipe.part", "stdout"])
    }
  }

  @Test(
    "leave another user's database usable for that user", .enabled(if: getuid() == 0),
    arguments: [TestEngine.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted])
  func anotherUser(_ engine: TestEngine) throws {
    try engine.withDatabase { tool in
      let database = tool.path("db.touchstone")
      for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: database)) {
        expect(chown(database + "/" + name, 54_321, 54_321), equals: 0)
      }
      try tool.write("hello", to: "file")
      try tool.succeed("put", "db", "a", #"{"v":1}"#, "--attachment", "x=file")
      try tool.succeed("compact", "db")
      let other: TestEngine =
        switch engine {
        case .sqlite, .sqlcipherPlain: .lmdb
        case .lmdb: .sqlite
        case .sqlcipher: .lmdbEncrypted
        case .lmdbEncrypted: .sqlcipher
        }
      try tool.succeed("convert", "db", "--engine", other.rawValue)
      for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: database)) {
        let access = try #require(FileAccess(of: database + "/" + name))
        expect(access.owner == 54_321 && access.group == 54_321, "\(name)")
      }
    }
  }

  @Test("say in the command's words what would help")
  func words() throws {
    try withTool { tool in
      let results = [
        try tool("put", "db", "a", "{}", "--rev", "1-abc"), try tool("create", "missing/db"),
        try tool("query", "db", "SELECT * FROM _, _ AS b", "--row-limit", "0"),
        try tool(
          "put", "db", "b",
          #"{"f":{"@type":"blob","digest":"sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=","length":3}}"#),
      ]
      for result in results {
        expect(result.status != 0)
        // A name of the library's API: somethingLikeThis, or a member.of
        let text = result.errors.replacing(/sha1-\S+/, with: "")
        let isSwift = text.contains(/\b[a-z]+[A-Z][a-zA-Z]+\b|Query\.Options/)
        expect(!isSwift, "\(result.errors)")
      }
    }
  }

  @Test(
    "print nothing into the database where their output is closed",
    arguments: [">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
  func closedDescriptors(_ redirections: String) throws {
    try withTool { tool in
      let before = try tool.read("db.touchstone/lock")
      let script = "exec \(redirections); exec '\(Tool.executable)' export db"
      let status = try tool.run("/bin/sh", ["-c", script]).status
      // What nobody can read isn't written.
      expect((status == 0) == (redirections == "2>&-"))
      try expect(tool.read("db.touchstone/lock"), equals: before)
      try tool.succeed("check", "db", "--deep")
    }
  }

  /// What runs a program as a user who has nothing.
  private static let asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]

  /// Whether the tool can be run as that user.
  private static let hasNobody: Bool = {
    let launch = ProgramLaunch("/usr/bin/setpriv", asNobody + [Tool.executable, "version"])
    return getuid() == 0 && (try? ChildProcess(launch).end()) == .exited(0)
  }()

  @Test("say that a private database can't be looked for", .enabled(if: hasNobody, "this isn't root"))
  func privateDatabase() throws {
    try withTool { tool in
      expect(chmod(tool.directory, 0o755) == 0 && chmod(tool.path("db.touchstone"), 0o700) == 0)
      for command in [["get", "db", "a"], ["put", "db", "b", "{}"], ["copy", "db", "copy"]] {
        let result = try tool.run("/usr/bin/setpriv", Self.asNobody + [Tool.executable] + command)
        expect(result.status == 3 && result.errors.contains("Permission denied"), "\(command): \(result)")
      }
    }
  }
}
