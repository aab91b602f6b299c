import Datasets
import TestSupport

@testable import touchstone

/// The commands that the README and the help show are run as they are written, in a directory with the files that they name.
///
/// What can't run here is named with its reason. In the README that is a comment before the block,
/// `<!-- shell: not run: REASON -->`; for the help it is `notRun` below. A reason without a command fails the test.
@Suite struct ShownCommandTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL

  /// Commands in the help that aren't run, by their beginning.
  private static let notRun: [(beginning: String, reason: String)] = [
    ("touchstone bench travel", "it takes a minute"), ("touchstone bench engine", "it takes a minute"),
    ("touchstone bench endure", "it takes minutes"),
    ("touchstone bench cluster", "it needs a server; ServerSuiteTests runs the suite"),
    ("touchstone bench mine", "it takes minutes; MineCommandTests runs it for less time"),
    ("touchstone gate", "it takes minutes; BenchCommandTests runs it with fewer samples"),
    ("touchstone sync --discover", "it needs Avahi, and a server in the network"),
    ("touchstone sync --list https:", "it needs a server"),
    ("touchstone sync travel wss:", "it needs a server"),
    ("touchstone sync travel https:", "it needs a server"),
    ("touchstone create 'postgres:", "it needs a server"),
    ("touchstone convert travel --output 'postgres:", "it needs a server"),
    ("touchstone changes travel --follow", "it goes on until Ctrl-C"),
  ]

  /// Commands whose examples follow each other. The examples of the others begin anew.
  private static let followed: Set<String> = [
    "index", "view", "local", "expire", "user", "users", "schema", "version",
  ]

  /// What must be done before an example of a command, as a shell script.
  private static let preparations = [
    "copy": "mkdir assets; mv travel.touchstone assets; "
      + "(cd assets; python3 -m zipfile -c ../travel.zip travel.touchstone)",
    "completions": "mkdir -p .zsh/completions .config/fish/completions "
      + ".local/share/bash-completion/completions",
    "create": "rm -r travel.touchstone secret.touchstone", "convert": "rm -r secret.touchstone",
    "export": "rm -r travel.cblite2", "import": "touchstone convert travel --engine lmdb --quiet",
    "sync": "rm -r copy.touchstone",
    "trend": "mkdir nightly; cp new.json nightly/1.json; cp new.json nightly/2.json",
  ]

  // MARK: What commands find

  private static let lines = """
    {"_id":"airline_10","type":"airline","name":"40-Mile Air","country":"United States"}
    {"_id":"airline_11","type":"airline","name":"Texas Wings","country":"United States"}
    {"_id":"airline_112","type":"airline","name":"Astraeus","country":"United Kingdom"}
    {"_id":"hotel_1","type":"hotel","name":"Apple Droid","geo":{"lat":51.5},"content":"A castle by the river."}
    {"_id":"hotel_10025","type":"hotel","name":"Medway Youth Hostel","country":"United Kingdom"}
    {"_id":"session_1","type":"session"}
    {"_id":"session_2","type":"session"}

    """

  /// Makes the files that the commands name.
  private static func fill(_ tool: Tool) throws {
    try tool.write(lines, to: "travel-sample.jsonl")
    _ = try tool.run("/usr/bin/env", ["gzip", "-k", tool.path("travel-sample.jsonl")])
    try tool.write(#"{"_id":"hotel_2","type":"hotel"}"#, to: "more.jsonl")
    try tool.write("id,type,stars\nhotel_3,hotel,4\n", to: "hotels.csv")
    try tool.write("function (doc) { emit(doc.type) }", to: "types.js")
    try tool.write(#"{"type":"airline","name":"Forty-Mile Air"}"#, to: "merged.json")
    try tool.write("SELECT COUNT(*) AS n FROM _", to: "report.n1ql")
    try tool.write("-- hotels\nSELECT name FROM _ WHERE type = 'hotel';\n", to: "queries.n1ql")
    try tool.write("password\n", to: "secret")
    try tool.write("\u{89}PNG", to: "logo.png")
    for name in ["my.key", "old.key"] { try Data(0..<32).write(to: URL(filePath: tool.path(name))) }
    try Data(32..<64).write(to: URL(filePath: tool.path("new.key")))
    for name in ["old", "catalog", "songs"] {
      _ = try LegacyDatabaseMaker(LegacyDatabase()).make(name, in: tool.directory)
    }
  }

  /// Makes the databases that the examples of the help name.
  private static func fillDatabases(_ tool: Tool) throws {
    for (name, engine) in [("travel", EngineName.sqlite), ("other", .lmdb), ("databases/hotels", .lmdb)] {
      let database = try Database.open(
        name, in: tool.directory, options: .init(engine: engine, makesParents: true))
      for line in lines.split(separator: "\n") {
        var body = try JSONValue(json: String(line))
        let id = body.object?["_id"]?.string ?? ""
        body.remove("_id")
        // Branches of which one has the revision ID of the examples.
        for revision in id == "airline_10" ? ["3-abc", "3-abd"] : ["1-abc"] {
          try database.apply(
            PulledRevision(id: id, history: [revision], isDeleted: false, body: .value(body)))
        }
      }
      try database.close()
    }
    try tool.succeed(
      "put", "travel", "airline_10", #"{"type":"airline"}"#, "--attachment", "logo.png=logo.png")
    for (name, source) in [("travel-on-lmdb", "travel"), ("copy", "travel"), ("hotels", "databases/hotels")] {
      try FileManager.default.copyItem(
        atPath: tool.path(source + ".touchstone"), toPath: tool.path(name + ".touchstone"))
    }
    try tool.succeed("create", "secret", "--new-key-file", "my.key")
    try tool.succeed("export", "travel", "travel.cblite2")
    try tool.succeed("export", "travel", "travel-sample.cblite2")
    try tool.succeed("user", "users", "me", "--password-file", "secret")
    try FileManager.default.createDirectory(atPath: tool.path("results"), withIntermediateDirectories: true)
    for name in ["results/baseline.json", "results/travel.json", "new.json"] {
      try FileManager.default.copyItem(
        at: root.appending(path: "results/harness.json"), to: URL(filePath: tool.path(name)))
    }
  }

  /// A tool in its directory whose commands are found by a shell, with a home of its own.
  private static func prepared(_ tool: Tool) -> Tool {
    var tool = tool
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let folder = URL(filePath: Tool.executable).deletingLastPathComponent().path
    tool.environment = ["PATH": "\(folder):\(path)", "HOME": tool.directory]
    return tool
  }

  /// A line of a shell, run to its end. Servers run on any free port until the object is gone.
  private final class Lines {
    private let tool: Tool
    private var servers: [Child] = []
    /// What stands for the address that the examples name.
    private var address: String?

    init(_ tool: Tool) { self.tool = tool }

    deinit { for server in servers { server.kill() } }

    func run(_ line: String) throws -> Tool.Result {
      let line = address.map { line.replacing("127.0.0.1:4984", with: $0) } ?? line
      guard line.hasPrefix("touchstone serve ") else {
        return try tool.run("/usr/bin/env", ["bash", "-c", line])
      }
      let server = try Child(
        tool, "/usr/bin/env", ["bash", "-c", "exec \(line.prefix { $0 != "#" }) --listen 127.0.0.1:0"])
      servers.append(server)
      try server.wait { server.output.contains("\n") || !server.isRunning }
      guard let url = server.output.split(separator: "\n").first, url.contains("://127.0.0.1:") else {
        return try server.wait()
      }
      address = String(url.split(separator: "/")[1])
      return Tool.Result(status: 0, output: server.output, errors: "")
    }
  }

  // MARK: The README

  /// The blocks of a shell in a page, each with the reason why it isn't run.
  private static func blocks(_ page: String) -> [(lines: [String], reason: String?)] {
    var blocks: [(lines: [String], reason: String?)] = []
    var reason: String?
    var block: [String]?
    for line in page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if let open = block {
        if line == "```" {
          blocks.append((open, reason))
          (block, reason) = (nil, nil)
        } else if !line.isEmpty {
          block = open + [line]
        }
      } else if line == "```sh" {
        block = []
      } else if let comment = line.firstMatch(of: /^<!-- shell: not run: (.+) -->$/) {
        reason = String(comment.1)
      }
    }
    return blocks
  }

  @Test func everyLineOfTheReadmeRuns() throws {
    let page = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
    // A block without its language wouldn't be found.
    let fences = page.split(separator: "\n").filter { $0.hasPrefix("```") }
    for (number, fence) in fences.enumerated() where number % 2 == 0 {
      expect(fence != "```", "block \(number / 2 + 1) of the README has no language")
    }
    let blocks = Self.blocks(page)
    let reasons = blocks.compactMap(\.reason)
    expect(page.components(separatedBy: "<!-- shell:").count - 1, equals: reasons.count)
    expect(blocks.count > reasons.count)
    try Tool.run { tool in
      let tool = Self.prepared(tool)
      try Self.fill(tool)
      let lines = Lines(tool)
      for block in blocks where block.reason == nil {
        for line in block.lines {
          let result = try lines.run(line)
          expect(result.status, equals: 0, "\(line): \(result.output) \(result.errors)")
        }
      }
    }
  }

  // MARK: The help

  @Test func everyExampleOfTheHelpRuns() throws {
    var unused = Set(Self.notRun.map(\.beginning))
    try Tool.run { tool in
      let model = Self.prepared(Tool(directory: tool.path("model")))
      try FileManager.default.createDirectory(atPath: model.directory, withIntermediateDirectories: true)
      try Self.fill(model)
      try Self.fillDatabases(model)
      for command in Subcommands.all {
        let name = command.usage.name
        var lines: Lines?
        for (number, example) in command.usage.examples.enumerated() {
          if let known = Self.notRun.first(where: { example.hasPrefix($0.beginning) }) {
            unused.remove(known.beginning)
            continue
          }
          if lines == nil || !Self.followed.contains(name) {
            let copy = Self.prepared(Tool(directory: tool.path("\(name)-\(number)")))
            try FileManager.default.copyItem(atPath: model.directory, toPath: copy.directory)
            lines = Lines(copy)
            if let script = Self.preparations[name] {
              try expect(lines?.run(script).status, equals: 0, "\(script)")
            }
            if example.contains("127.0.0.1:4984") { _ = try lines?.run("touchstone serve travel") }
          }
          let result = try lines?.run(example)
          expect(
            result?.status, equals: 0, "\(example): \(result?.output ?? "") \(result?.errors ?? "")")
        }
      }
    }
    expect(unused, equals: [])
  }
}
