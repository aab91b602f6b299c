import Documents
import Touchstone

/// `touchstone verify`: compares the content of two databases.
struct VerifyCommand: Subcommand {
  private static let left = Positional(
    "DB1", "A database: a NAME.touchstone directory; the suffix may be left out")
  private static let right = Positional("DB2", "The database to compare it with, on any engine")
  private static let sequences = Flag("sequences", "Compares sequences too")
  private static let current = Flag(
    "current", "Compares only the current revision of each document and its blobs")

  private static let limit = Option(
    "limit", "N", in: 0...Int.max, "Prints at most N differences; 0 for all (1,000; with --json all)")
  private static let standardLimit = 1_000

  static let usage = Usage(
    "verify", "Compares two databases, revision by revision; status 1 if they differ",
    positionals: [left, right],
    options: [sequences, current, limit, SuccessLine.quiet, DatabaseArguments.json]
      + DatabaseArguments.readingOptions,
    examples: ["touchstone verify travel travel-on-lmdb", "touchstone verify --current travel copy"],
    notes: """
      Compares documents, tombstones, revision trees, flags, bodies, local documents, expirations, indexes, and the
      bytes of blobs. Each difference is one line: the document, what differs, and the values in DB1 and DB2. All are
      counted. The key opens each encrypted database and is ignored for a plain one. Databases that replicate have the same
      current revisions; the other branches of resolved conflicts stay where they are. Of a document that was deleted on
      both sides they may show different tombstones (docs/conflicts.md), which is a difference here.
      """)

  private let databases: [DatabaseArguments]
  private let comparesSequences: Bool
  private let onlyCurrent: Bool
  private let limit: Int
  private let asJSON: Bool
  private let success: SuccessLine

  init(_ arguments: Arguments) throws {
    databases = [
      try DatabaseArguments(arguments, Self.left), try DatabaseArguments(arguments, Self.right),
    ]
    comparesSequences = arguments[Self.sequences]
    onlyCurrent = arguments[Self.current]
    asJSON = arguments[DatabaseArguments.json]
    success = SuccessLine(arguments)
    let limit = try arguments.value(Self.limit) ?? (asJSON ? 0 : Self.standardLimit)
    self.limit = limit == 0 ? .max : limit
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let opened = try databases.map { try $0.open() }
    let writer = DifferenceWriter(output, asJSON: asJSON, limit: limit)
    let compared = try opened[0].compareCounting(
      with: opened[1], sequences: comparesSequences, onlyCurrent: onlyCurrent
    ) { count in
      guard !Interrupt.isRequested else { throw Interrupted("nothing was changed") }
      writer.progress.update(count)
    } report: { difference in
      try writer.write(difference)
    }
    try writer.finish(compared)
    let documents = min(try opened[0].documentCount, compared.documents)
    for database in opened { try database.close() }
    guard writer.count == 0 else {
      let shown =
        writer.count > limit
        ? "; the first \(TextTable.grouped(limit)) are shown, and --limit 0 shows all" : ""
      throw Refusal(
        "\(TextTable.counted(writer.count, "difference")) between \(opened[0].path) and \(opened[1].path)\(shown)"
      )
    }
    if !asJSON { try success.write("equal: \(Self.counted(documents, of: compared))", to: output) }
  }

  /// `7,303 documents, 2 tombstones, 8,012 revisions`. Others may have changed the database meanwhile.
  private static func counted(_ documents: Int, of compared: ComparedCounts) -> String {
    let tombstones = compared.documents - documents
    return SuccessLine.documents(documents)
      + (tombstones > 0 ? ", \(TextTable.counted(tombstones, "tombstone"))" : "")
      + ", \(TextTable.counted(compared.revisions, "revision"))"
  }

  /// Writes differences as they come, in constant memory.
  private final class DifferenceWriter {
    private let output: StandardOutput
    private let asJSON: Bool
    private let limit: Int
    private(set) var count = 0
    var progress = Progress("verify", unit: "documents")

    init(_ output: StandardOutput, asJSON: Bool, limit: Int) {
      self.output = output
      self.asJSON = asJSON
      self.limit = limit
    }

    func write(_ difference: DocumentDifference) throws {
      defer { count += 1 }
      guard count < limit else { return }
      guard asJSON else { return try output.line(difference.description) }
      let object: JSONObjectText = [
        "id": difference.id, "kind": difference.kind.rawValue, "left": difference.left,
        "right": difference.right,
      ]
      // The output is one object. The members that aren't known yet come at its end.
      try output.write((count == 0 ? "{\"differences\": [\n" : ",\n") + object.jsonText)
    }

    func finish(_ compared: ComparedCounts) throws {
      progress.end()
      guard asJSON else { return }
      try output.line(
        (count == 0 ? "{\"differences\": [" : "\n")
          + "], \"compared\": \(compared.documents), \"revisions\": \(compared.revisions), "
          + "\"equal\": \(count == 0)}")
    }
  }
}
