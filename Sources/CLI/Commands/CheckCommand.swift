import Touchstone

/// `touchstone check`: whether a database is sound.
struct CheckCommand: Subcommand {
  private static let deep = Flag("deep", "Also looks into every body, and reads every blob")

  static let usage = Usage(
    "check", "Looks for faults; status 1 when there are any",
    positionals: [DatabaseArguments.database],
    options: [deep, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: ["touchstone check travel --deep"],
    notes: """
      One line a fault, at most 1,000: what it is about, and what is wrong. The engine checks its file; then
      documents, their revision trees, changes, bodies kept aside, counts, indexes and blobs are held against
      each other.
      """)

  private let database: DatabaseArguments
  private let isDeep: Bool
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    isDeep = arguments[Self.deep]
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    let faults = try Self.faults(database, isDeep: isDeep)
    for fault in faults {
      if asJSON {
        var object = JSONObject()
        object.add("subject", fault.subject)
        object.add("problem", fault.problem)
        try output.line(object.text)
      } else {
        try output.line(fault.description)
      }
    }
    try database.close()
    guard faults.isEmpty else {
      throw Refusal("\(faults.count == 1 ? "a fault" : "\(faults.count) faults") in \(database.path)")
    }
  }

  private static func faults(_ database: Database, isDeep: Bool) throws -> [IntegrityFault] {
    let progress = ProgressBox()
    defer { progress.line.end() }
    return try database.check(deep: isDeep) { count in
      guard !Interrupt.isRequested else { throw Interrupted("nothing was changed") }
      progress.line.update(count)
    }
  }

  private final class ProgressBox {
    var line = Progress("check", unit: "entries")
  }
}
