import FoundationEssentials
import Touchstone

/// `touchstone upgrade`: makes a database from a Couchbase Lite 1.x database.
struct UpgradeCommand: Subcommand {
  private static let source = Positional(
    "OLD", "The 1.x database: a NAME.cblite2 directory, or a NAME.cblite file with its attachments beside it")
  private static let target = Positional(
    "NEW", "Where the new one is made: nothing may be there. Not with --in-place", count: .optional)
  private static let engine = DatabaseArguments.engine(
    "The engine of the new one; sqlite when nothing is said, sqlcipher when there is a new key")
  private static let carry = Option<UpgradeOptions.Carry>(
    "carry", "full|winners", "What comes along: everything (full, the default), or winning revisions alone"
  ) { text in
    guard let carry = UpgradeOptions.Carry(rawValue: text) else {
      throw UsageError("--carry takes full or winners, not '\(text)'")
    }
    return carry
  }
  private static let strict = Flag("strict", "Makes nothing when something can't be carried over")
  private static let inPlace = Flag(
    "in-place", "Makes NAME.touchstone beside OLD, which stays as a backup")
  private static let removeOld = Flag(
    "remove-old", "With --in-place: removes OLD once the new one is on the disk")
  private static let verify = Flag("verify", "Reads OLD again at the end, and compares every document")

  static let usage = Usage(
    "upgrade", "Makes a database from one of Couchbase Lite 1.x",
    positionals: [source, target],
    options: [
      engine, carry, strict, inPlace, removeOld, verify, DatabaseArguments.json, Keys.file, Keys.newFile,
    ],
    examples: [
      "touchstone upgrade catalog.cblite2 catalog --engine lmdb --verify",
      "touchstone upgrade old.cblite --in-place --json",
    ],
    notes: """
      OLD is only read. Databases of iOS, Android and .NET from 1.0 to 1.4 with SQLite storage are understood,
      encrypted ones with their password (--key-file). What can't be carried over is listed, and the rest goes on.

      Status: 0 when everything was carried over or reported · 1 with --strict when something can't be, or when
      --verify finds a difference · 2 when OLD is something else, which the message tells · 3 when it is damaged or
      locked.
      """)

  private let source: String
  private let target: String?
  private let engine: EngineName?
  private let removesOld: Bool
  private let asJSON: Bool
  private let keys: Keys
  private var options = UpgradeOptions()

  init(_ arguments: Arguments) throws {
    source = try arguments.required(Self.source)
    target = arguments.optional(Self.target)
    engine = try arguments.value(Self.engine)
    removesOld = arguments[Self.removeOld]
    asJSON = arguments[DatabaseArguments.json]
    keys = try Keys(arguments)
    options.carry = try arguments.value(Self.carry) ?? .full
    options.isStrict = arguments[Self.strict]
    options.verifies = arguments[Self.verify]
    let isInPlace = arguments[Self.inPlace]
    guard isInPlace == (target == nil) else {
      throw UsageError(isInPlace ? "NEW can't be given with --in-place" : "NEW is missing, or --in-place")
    }
    guard isInPlace || !removesOld else { throw UsageError("--remove-old goes with --in-place") }
  }

  func run(_ output: StandardOutput) throws {
    var newKey = try keys.new()
    var options = options
    options.sourceKey = try keys.given()
    if let engine {
      let encrypts = try Engines.type(engine).encrypts
      if newKey != nil, !encrypts { throw UsageError("\(engine) can't encrypt, and a new key was given") }
      if encrypts, newKey == nil {
        newKey = try keys.requiredNew(for: target ?? source)
        guard newKey != nil else {
          throw UsageError(
            "\(engine) needs a key: give --new-key-file FILE or the variable \(Keys.newVariable)")
        }
      }
    }
    if !asJSON { options.onIssue = { StandardError.write("\($0)\n") } }
    let report: UpgradeReport
    do { report = try upgrade(options, newKey) } catch let error as UpgradeError
      where error.code == .keyRequired
    {
      guard let key = try keys.existing(for: source) else {
        throw UpgradeError(
          .keyRequired, "\(error.message) (--key-file FILE or the variable \(Keys.variable))",
          path: error.path)
      }
      options.sourceKey = key
      report = try upgrade(options, newKey)
    } catch let error as UpgradeError where error.code == .notEncrypted {
      // A key is used if the source is encrypted, and ignored if it isn't.
      options.sourceKey = nil
      report = try upgrade(options, newKey)
    }
    try write(report, output)
  }

  private func upgrade(_ options: UpgradeOptions, _ newKey: UserKey?) throws -> UpgradeReport {
    let line = UpgradeProgressLine()
    defer { line.end() }
    guard let target else {
      return try Database.upgradeInPlace(
        source, engine: engine, key: newKey, options: options, removesSource: removesOld,
        progress: line.update)
    }
    return try Database.upgrade(
      source, to: target, engine: engine, key: newKey, options: options, progress: line.update)
  }

  // MARK: The report

  private func write(_ report: UpgradeReport, _ output: StandardOutput) throws {
    guard !asJSON else {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try output.line(String(decoding: try encoder.encode(report), as: UTF8.self))
    }
    var table = TextTable([
      ("", .left), ("read", .right), ("carried over", .right), ("skipped", .right), ("not wanted", .right),
    ])
    for (name, count) in [
      ("documents", report.documents), ("  of them tombstones", report.tombstones),
      ("  of them in conflict", report.conflicts), ("revisions", report.revisions),
      ("  with bodies", report.bodies),
      ("local documents", report.localDocuments), ("expirations", report.expirations),
      ("views", report.views),
      ("checkpoints", report.checkpoints),
    ] {
      table.add([name] + [count.read, count.carried, count.skipped, count.unwanted].map(TextTable.grouped))
    }
    let files = report.attachments
    table.add(
      ["attachments"] + [files.read, files.carried, files.missing + files.damaged, 0].map(TextTable.grouped))
    for line in table.lines { try output.line(line) }
    if files.decoded > 0 { try output.line("attachments that were compressed: \(files.decoded), decoded") }
    if files.decrypted > 0 {
      try output.line("attachments that were encrypted: \(files.decrypted), decrypted")
    }
    if let verified = report.verifiedDocuments {
      try output.line("verified: \(TextTable.grouped(verified)) documents are what the source says")
    }
    for (kind, count) in report.issueCounts.sorted(by: { $0.key < $1.key }) {
      try output.line("\(kind): \(TextTable.grouped(count))")
    }
    try output.line(
      "made \(report.target); \(report.source) "
        + (removesOld ? "is removed" : target == nil ? "stays as a backup" : "is as it was"))
  }
}

/// The progress line of an upgrade. Ctrl-C ends the upgrade; then nothing has been made.
final class UpgradeProgressLine {
  private var line = Progress("upgrade", unit: "documents")
  private var phase: UpgradeProgress.Phase?

  init() { Interrupt.listen() }

  /// The progress handler of the operation.
  func update(_ progress: UpgradeProgress) throws {
    guard !Interrupt.isRequested else { throw Interrupted("nothing was made") }
    if progress.phase != phase {
      phase = progress.phase
      line.end()
      line = Progress("upgrade, \(progress.phase.rawValue)", unit: "documents")
    }
    line.update(progress.done)
  }

  func end() { line.end() }
}
