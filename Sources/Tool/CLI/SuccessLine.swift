import Touchstone

/// The line that a command prints when all went well, unless `--quiet` is given.
struct SuccessLine {
  static let quiet = Flag("quiet", "Prints nothing if all went well")

  private let isQuiet: Bool

  init(_ arguments: Arguments) { isQuiet = arguments[Self.quiet] }

  func write(_ text: String, to output: StandardOutput) throws {
    if !isQuiet { try output.line(text) }
  }

  /// Writes the engine and the number of documents of a database that has just been made.
  func write(_ done: String, _ path: String, key: UserKey?, to output: StandardOutput) throws {
    guard !isQuiet else { return }
    var options = DatabaseOptions(creation: .openExisting, isReadOnly: true)
    if try Database.isEncrypted(path) { options.key = key }
    do {
      let database = try Database.open(path, options: options)
      let count = try database.documentCount
      let engine = database.engineName
      try database.close()
      try output.line("\(done) \(engine): \(Self.documents(count))")
    } catch let error as any TouchstoneError where error.kind == .busy {
      // The work is done, and somebody else goes on with the database already.
      try output.line("done; the documents aren't counted, since another process has the database open")
    }
  }

  static func documents(_ count: Int) -> String {
    count == 1 ? "1 document" : "\(TextTable.grouped(count)) documents"
  }
}
