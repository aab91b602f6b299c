import Touchstone

/// `touchstone depth`: shows or sets how many revisions of a branch are kept.
struct DepthCommand: Subcommand {
  private static let depth = Positional(
    "N", "The new depth, from 1 up; without it, the depth is shown", count: .optional)

  static let usage = Usage(
    "depth", "Shows or sets how many revisions of a branch a document keeps",
    positionals: [DatabaseArguments.database, depth],
    options: [DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: ["touchstone depth travel", "touchstone depth travel 100"],
    notes: """
      Older revisions are removed from a document's tree when the document is saved the next time, so a lower depth takes
      effect document by document. A new database has a depth of 20, and one made by 'touchstone serve' has 1,000, as
      in CouchDB. A replication needs a common ancestor: with a small depth, documents that changed often on both
      sides get conflicts that a deeper tree would have spared them.
      """)

  private let database: DatabaseArguments
  private let depth: Int?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    depth = try arguments.optional(Self.depth).map { text in
      guard let depth = Int(text), depth > 0, depth <= Int(Int32.max) else {
        throw UsageError("N: '\(text)' is not an integer from 1 to \(Int32.max)")
      }
      return depth
    }
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    if let depth { try database.setMaximumTreeDepth(depth) }
    let depth = try database.maximumTreeDepth
    try output.line(asJSON ? (["depth": depth] as JSONObjectText).jsonText : "\(depth)")
    try database.close()
  }
}
