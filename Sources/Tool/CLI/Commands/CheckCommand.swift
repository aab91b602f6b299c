import Touchstone

/// `touchstone check`: checks a database for faults.
struct CheckCommand: Subcommand {
  private static let deep = Flag(
    "deep", "Also checks every body and blob, and searches an encrypted database for plaintext")

  static let usage = Usage(
    "check", "Checks a database for faults; status 1 if there are any",
    positionals: [DatabaseArguments.database],
    options: [deep, SuccessLine.quiet, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: ["touchstone check travel --deep"],
    notes: """
      Each fault is one line: where it is, and what is wrong. At most 1,000 faults are printed. First the engine
      checks its file, and the check ends if that finds faults. Then documents, revision trees, changes, bodies that are stored separately, counts, indexes
      and blobs are compared with each other. With --deep, the entropy of each file of an encrypted database is
      printed, and the files are searched for samples of the stored data.
      """)

  private let database: DatabaseArguments
  private let isDeep: Bool
  private let asJSON: Bool
  private let success: SuccessLine

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    isDeep = arguments[Self.deep]
    asJSON = arguments[DatabaseArguments.json]
    success = SuccessLine(arguments)
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database: Database
    do { database = try self.database.open(checksFile: true) } catch let damaged as DamagedFile {
      return try report(damaged.faults, of: damaged.path, output)
    }
    var files: [FileEntropy] = []
    let faults = try Self.faults(database, isDeep: isDeep) { files.append($0) }
    for file in files {
      try output.line(asJSON ? Self.json(file).jsonText : "file \(file.description)")
    }
    let count = try database.documentCount
    try database.close()
    try report(faults, of: database.path, output)
    if !asJSON, !files.isEmpty {
      // What these two hold is known.
      let files = files.filter { $0.name != "database.json" && !$0.name.hasPrefix("key") }
      let bytes = files.reduce(0) { $0 + $1.bytes }
      try success.write(
        "searched \(TextTable.counted(files.count, "file")), \(TextTable.counted(bytes, "byte")), for what the documents hold: "
          + "nothing can be read", to: output)
    }
    if !asJSON { try success.write("sound: \(SuccessLine.documents(count))", to: output) }
  }

  /// Prints the faults, and throws a `Refusal` if there are any.
  private func report(_ faults: [IntegrityFault], of path: String, _ output: StandardOutput) throws {
    for fault in faults {
      let object: JSONObjectText = ["subject": fault.subject, "problem": fault.problem]
      try output.line(asJSON ? object.jsonText : fault.description)
    }
    guard faults.isEmpty else {
      throw Refusal("\(faults.count == 1 ? "1 fault" : "\(faults.count) faults") in \(path)")
    }
  }

  private static func json(_ file: FileEntropy) -> JSONObjectText {
    [
      "file": file.name, "bytes": file.bytes, "entropy": file.entropy, "lowest": file.lowest,
      "plain": file.isPlain,
    ]
  }

  private static func faults(
    _ database: Database, isDeep: Bool, onFile: @escaping (FileEntropy) -> Void
  ) throws -> [IntegrityFault] {
    let progress = ProgressBox()
    defer { progress.line.end() }
    return try database.check(
      deep: isDeep,
      progress: { count in
        guard !Interrupt.isRequested else { throw Interrupted("nothing was changed") }
        progress.line.update(count)
      }, onFile: onFile)
  }

  private final class ProgressBox {
    var line = Progress("check", unit: "entries")
  }
}
