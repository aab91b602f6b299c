import Touchstone

/// `touchstone check`: whether a database is sound.
struct CheckCommand: Subcommand {
  private static let deep = Flag(
    "deep", "Also reads every document, and compares documents with changes and counts")

  static let usage = Usage(
    "check", "Looks for faults; status 1 when there are any",
    positionals: [DatabaseArguments.database], options: [deep] + DatabaseArguments.readingOptions,
    examples: ["touchstone check travel --deep"])

  private let database: DatabaseArguments
  private let isDeep: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    isDeep = arguments[Self.deep]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    var faults = try database.checkIntegrity()
    if isDeep && faults.isEmpty { faults = try Self.faultsOfDocuments(database) }
    for fault in faults { try output.line(fault) }
    try database.close()
    guard faults.isEmpty else {
      throw Refusal("\(faults.count == 1 ? "a fault" : "\(faults.count) faults") in \(database.path)")
    }
  }

  /// Reads all that a snapshot holds. Faults past the hundredth are left out.
  private static func faultsOfDocuments(_ database: Database) throws -> [String] {
    var faults: [String] = []
    var sequences: [UInt64: String] = [:]
    var counts = (live: 0, deleted: 0)
    var progress = Progress("check", unit: "documents")
    defer { progress.end() }

    func look(at document: DocumentView, isTombstone: Bool) throws -> Bool {
      guard !Interrupt.isRequested else { throw Interrupted("nothing was changed") }
      do {
        var json: [UInt8] = []
        try document.writeJSON(into: &json)
        _ = try document.revisionID()
      } catch { faults.append("document '\(document.id)': \(error)") }
      if document.isDeleted != isTombstone {
        faults.append(
          "document '\(document.id)': stored among the \(isTombstone ? "tombstones" : "live ones")")
      }
      if let other = sequences.updateValue(document.id, forKey: document.sequence) {
        faults.append("documents '\(other)' and '\(document.id)': both have sequence \(document.sequence)")
      }
      progress.update(sequences.count)
      return faults.count < 100
    }
    try database.read { snapshot in
      try snapshot.forEachDocument {
        counts.live += 1
        return try look(at: $0, isTombstone: false)
      }
      try snapshot.forEachTombstone {
        counts.deleted += 1
        return try look(at: $0, isTombstone: true)
      }
    }
    guard faults.isEmpty else { return faults }
    // What was written since the snapshot has a later sequence.
    let last = sequences.keys.max() ?? 0
    try database.forEachChange { change in
      guard change.sequence <= last else { return false }
      if sequences.removeValue(forKey: change.sequence) != change.documentID {
        faults.append("change \(change.sequence) of '\(change.documentID)': no document has that sequence")
      }
      return faults.count < 100
    }
    if faults.isEmpty, let missing = sequences.min(by: { $0.key < $1.key }) {
      faults.append("document '\(missing.value)': its change, \(missing.key), is missing")
    }
    return faults
  }
}
