import BenchmarkKit
import CBuild
import FoundationEssentials
import Touchstone

/// `touchstone version`: the version, the commit it was built from, and the libraries it uses.
struct VersionCommand: Subcommand {
  static let usage = Usage(
    "version", "Shows the version, the commit, and the versions of the engines' libraries",
    positionals: [], options: [DatabaseArguments.json],
    examples: ["touchstone version", "touchstone version --json"],
    notes: """
      The commit is that of the build, if the build was told (make build tells it). With --json, there is one
      object: version, commit, swift, and libraries by engine.
      """)

  private let asJSON: Bool

  init(_ arguments: Arguments) throws { asJSON = arguments[DatabaseArguments.json] }

  func run(_ output: StandardOutput) throws {
    let commit = String(cString: build_commit())
    var libraries = JSONObjectText()
    var table = TextTable(["", ""])
    for engine in Engines.names {
      // A library that is opened at run time may not be installed.
      let library = Result { try Self.library(engine) }
      libraries.add(engine.rawValue, try? library.get())
      switch library {
      case .success(let name): table.add(engine.rawValue, name)
      case .failure(let error as DatabaseError): table.add(engine.rawValue, "can't be used: \(error.message)")
      case .failure(let error): table.add(engine.rawValue, "can't be used: \(error)")
      }
    }
    let object: JSONObjectText = [
      "version": touchstoneVersion, "commit": commit.isEmpty ? nil : commit, "swift": Self.compiler,
      "libraries": libraries,
    ]
    guard !asJSON else { return try output.line(object.jsonText) }
    try output.line("touchstone \(touchstoneVersion)" + (commit.isEmpty ? "" : " (\(commit))"))
    try output.lines(table.lines)
  }

  /// The library as an open database names it, since engines open some of theirs at run time.
  private static func library(_ engine: EngineName) throws -> String {
    if let server = try Engines.type(engine).server { return server.library }
    let directory = try TrialDirectory(in: FileManager.default.temporaryDirectory.path)
    defer { directory.remove() }
    let isEncrypted = try Engines.type(engine).encrypts
    let key = try isEncrypted ? UserKey.raw([UInt8](repeating: 0, count: 32)) : nil
    let database = try Database.open(
      directory.path + "/version", options: .init(engine: engine, creation: .createNew, key: key))
    defer { try? database.close() }
    return database.engineLibrary
  }

  private static var compiler: String {
    #if swift(>=6.4)
      "6.4 or later"
    #elseif swift(>=6.3)
      "6.3"
    #else
      "6.0 or later"
    #endif
  }
}
